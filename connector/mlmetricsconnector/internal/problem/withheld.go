package problem

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// WithheldFor is how long after the last refusal nothing is concluded from silence:
// as long as senders go on sending what was refused.
const WithheldFor = 5 * time.Minute

// Withheld is since when nothing is concluded from silence, because the collector
// refuses data: what is missing may be what it refused. The zero value is ready.
type Withheld struct {
	mu    sync.Mutex
	since time.Time
}

// Settle returns since when nothing is concluded, zero if all is. refused is when the
// collector last refused data.
func (w *Withheld) Settle(now, refused time.Time) time.Time {
	after := now.Sub(refused)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case refused.IsZero(), after < 0, after >= WithheldFor:
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = refused
	}
	return w.since
}

// Notices says what is withheld, and why.
func (w *Withheld) Notices(now, refused time.Time) []shared.Notice {
	since := w.Settle(now, refused)
	if since.IsZero() {
		return nil
	}
	silences := mlattr.Where(slices.Values(mlattr.Problems), func(kind mlattr.ProblemKind) bool { return kind.FromSilence })
	kinds := mlattr.Mapped(silences, func(kind mlattr.ProblemKind) string { return kind.Title })
	return []shared.Notice{{
		Key: "withheld", Kind: "withheld", Since: since, What: "Withholds problems of silence",
		Why: "The collector refused data, last at " + refused.UTC().Format("15:04:05 UTC") + ", so what is missing may be what it refused. None of these begins until 5 minutes after the last refusal: " + strings.Join(kinds, ", ") + ".",
	}}
}
