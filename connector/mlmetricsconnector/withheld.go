package mlmetricsconnector

import (
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// withheldFor is how long after the last refusal nothing is concluded from silence:
// as long as senders go on sending what was refused.
const withheldFor = 5 * time.Minute

// withheld is since when nothing is concluded from silence, because this process
// refuses data: what is missing may be what it refused. The zero value is ready.
type withheld struct {
	mu    sync.Mutex
	since time.Time
}

// settle reports whether nothing is concluded now.
func (w *withheld) settle(now time.Time) bool {
	refused := shared.LastRefusal()
	after := now.Sub(refused)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case refused.IsZero(), after < 0, after >= withheldFor:
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = refused
	}
	return !w.since.IsZero()
}

// notices says what is withheld, and why.
func (w *withheld) notices(now time.Time) []shared.Notice {
	if !w.settle(now) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var kinds []string
	for _, kind := range mlattr.Problems {
		if kind.FromSilence {
			kinds = append(kinds, kind.Title)
		}
	}
	return []shared.Notice{{
		Key: "withheld", Kind: "withheld", Since: w.since, What: "Withholds problems of silence",
		Why: "The collector refused data, last at " + clockTime(shared.LastRefusal()) + ", so what is missing may be what it refused. None of these begins until 5 minutes after the last refusal: " + strings.Join(kinds, ", ") + ".",
	}}
}
