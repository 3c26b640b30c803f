package traces

import (
	"encoding/binary"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	// renewal is the time in which as many new traces are held as may be at one time. Of more
	// traces some are held: otherwise each would leave before somebody opens it.
	renewal = 20 * time.Second
	// refusals is the number of traces that are known not to be held, for passedOver.
	refusals   = 1 << 12
	passedOver = time.Minute
)

// choice decides which new traces are held.
type choice struct {
	budget *share.Budget
	// refused are traces that are not held, by a part of the id. A new one takes the place
	// of another.
	refused []refusal
}

// refusal is a trace that is not held, and how many of its spans came.
type refusal struct {
	id    [16]byte
	since time.Time
	spans int
}

func newChoice(held int) choice {
	return choice{budget: share.NewBudget(held, float64(held)*float64(time.Minute/renewal)), refused: make([]refusal, refusals)}
}

// Choose marks the spans that are held: those of held traces, of all that failed or have a
// slow call, and of as many others as there is room for or renewal allows. The spans are
// those of one request.
func (t *Set) Choose(spans []input.Span, now time.Time) {
	for i := range spans {
		if in := &spans[i]; (in.Failed || in.Slow()) && t.byID[in.Trace] == nil && in.Trace != ([16]byte{}) {
			t.begin(in)
		}
	}
	for i := range spans {
		in := &spans[i]
		in.Held = in.Trace == ([16]byte{}) || t.byID[in.Trace] != nil || in.Failed || in.Slow() || t.admit(in, now)
	}
}

// admit begins a trace if it may be held, and reports whether it may.
func (t *Set) admit(in *input.Span, now time.Time) bool {
	known := t.chosen.of(in)
	if known.id == in.Trace && now.Before(known.since.Add(passedOver)) {
		known.spans++
		return false
	}
	from := share.OriginOf(in.Source.Sender, in.Source.Service)
	if !t.chosen.budget.Take(t.Limits.Shares.Claim(from), true, now) && t.full(1) {
		*known = refusal{id: in.Trace, since: now, spans: 1}
		return false
	}
	t.begin(in)
	return true
}

// of returns where the refusal of a span's trace stands, if there is one.
func (c *choice) of(in *input.Span) *refusal {
	return &c.refused[binary.LittleEndian.Uint64(in.Trace[8:])%refusals]
}
