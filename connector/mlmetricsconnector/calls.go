package mlmetricsconnector

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Values of series.Result.
const (
	resultOK    = "ok"
	resultError = "error"
)

// maxCallTime is the longest time of a call that is believed, in seconds: a
// month. A client that sends a time of day as a duration is far above it.
const maxCallTime = 31 * 24 * 3600

// call is one call of a function in another process.
type call struct {
	library, function, device, result string
	// seconds is how long it took.
	seconds float64
}

// complete fills in what c does not say of itself.
func (c *call) complete(from *call) {
	if c.library == "" && c.function == "" {
		c.library, c.function = from.library, from.function
	}
	if c.device == "" {
		c.device = from.device
	}
}

// addCalls adds what a span is of a call, and what its events said of calls.
func (r *reader) addCalls(u *unit, v *values, span ptrace.Span, failed bool, exception string) {
	p, function := r.ofSpan.Call()
	if p == mlattr.NoCall && !r.heard.anything {
		return
	}
	self := call{library: v.library, function: function}
	if self.function == "" {
		self.function = v.function
	}
	if self.function == "" {
		self.function = v.operation
	}
	// A future may catch the exception and leave the span's status unset.
	if failed || p == mlattr.WholeCall && exception != "" {
		self.result = resultError
	}
	if p != mlattr.NoCall {
		var ok bool
		if self.seconds, ok = length(span); !ok {
			p = mlattr.NoCall
			r.outOfRange++
		}
	}
	switch p {
	case mlattr.FunctionPart:
		// A worker may catch the exception of its function, so that only
		// failure is known.
		r.observe(u, series.CallPythonTime, &self, self.seconds)
	case mlattr.QueuePart:
		r.observe(u, series.CallQueueTime, &self, self.seconds)
	case mlattr.WholeCall, mlattr.SharedCall:
		if self.result == "" {
			self.result = resultOK
		}
		if p == mlattr.WholeCall {
			r.countCall(u, &self)
		}
	}
	if r.heard.anything || p == mlattr.SharedCall {
		r.finishHeard(u, &self, p == mlattr.SharedCall)
		r.anyCalls = r.anyCalls || len(u.calls) > 0
	}
}

// length returns the time between a span's begin and end, which must not be
// negative, nor longer than is believed.
func length(span ptrace.Span) (seconds float64, ok bool) {
	start, end := span.StartTimestamp(), span.EndTimestamp()
	if end < start {
		return 0, false
	}
	seconds = float64(end-start) / 1e9
	return seconds, seconds <= maxCallTime
}

// countCall adds a call to the series of all calls.
func (r *reader) countCall(u *unit, c *call) {
	r.observe(u, series.CallDuration, c, c.seconds)
	if r.slow > 0 && c.seconds > r.slow {
		r.count(u, series.CallsSlow, u.requestSource, 1, c.library, c.function, c.device, c.result)
	}
}

func (r *reader) observe(u *unit, id series.ID, c *call, seconds float64) {
	r.update(u, id, u.requestSource, c.library, c.function, c.device, c.result).Value = seconds
}

// countCalls counts each call once of which several spans may tell. A client's
// own event stands before the length of a span, which says neither library nor
// device; among equals the outermost counts.
func (t *tally) countCalls(r *reader) {
	if !r.anyCalls {
		return
	}
	for _, told := range [...]bool{true, false} {
		units := selected(r, func(u *unit) bool { return len(u.calls) > 0 && u.told == told })
		for i, v := range t.calls.outermost(candidates(r, units)) {
			if u := units[i]; v == counts {
				for j := range u.calls {
					r.countCall(u, &u.calls[j])
				}
			}
		}
	}
}
