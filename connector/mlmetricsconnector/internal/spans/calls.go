package spans

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Values of series.Result.
const (
	resultOK    = "ok"
	resultError = "error"
)

// call is a call of a function in another process.
type call struct {
	library, function, device, result string
	// seconds is its duration.
	seconds float64
	// queue, serialize and python are the parts that the client measured, or 0.
	queue, serialize, python float64
}

// complete sets the fields that c lacks.
func (c *call) complete(from *call) {
	if c.library == "" && c.function == "" {
		c.library, c.function = from.library, from.function
	}
	if c.device == "" {
		c.device = from.device
	}
}

// addCalls adds the call, or part of a call, that a span represents, and the
// calls that its events record.
func (r *Reader) addCalls(u *unit, v *values, span ptrace.Span, failed bool) {
	p, function := r.ofSpan.Call()
	if p == table.NoCall && !r.recordedCalls.anything {
		return
	}
	self := call{library: v.Library, function: function}
	if self.function == "" {
		self.function = v.Function
	}
	if self.function == "" {
		self.function = v.Operation
	}
	if failed {
		self.result = resultError
	}
	if p != table.NoCall {
		var ok bool
		if self.seconds, ok = length(span); !ok {
			p = table.NoCall
			r.Skipped.OutOfRange++
		}
	}
	switch p {
	case table.FunctionPart:
		// A worker may catch the exception of its function, so that only
		// failures are certain.
		r.observe(u, series.CallPythonTime, &self, self.seconds)
	case table.QueuePart:
		r.observe(u, series.CallQueueTime, &self, self.seconds)
	case table.WholeCall, table.SharedCall:
		if self.result == "" {
			self.result = resultOK
		}
		if p == table.WholeCall {
			r.countCall(u, &self)
			u.wholeCall, u.library, u.function = true, self.library, self.function
		}
	}
	if r.recordedCalls.anything || p == table.SharedCall {
		r.finishRecordedCalls(u, &self, p == table.SharedCall)
		r.anyCalls = r.anyCalls || len(u.calls) > 0
	}
}

// length returns the duration of a span. It must be between 0 and mlattr.MaxCallTime.
func length(span ptrace.Span) (seconds float64, ok bool) {
	start, end := span.StartTimestamp(), span.EndTimestamp()
	if end < start {
		return 0, false
	}
	seconds = float64(end-start) / 1e9
	return seconds, seconds <= mlattr.MaxCallTime
}

// countCall adds a call to the series of all calls.
func (r *Reader) countCall(u *unit, c *call) {
	r.observe(u, series.CallDuration, c, c.seconds)
	if r.Slow > 0 && c.seconds > r.Slow {
		r.count(u, series.CallsSlow, u.requestSource, 1, c.library, c.function, c.device, c.result)
	}
}

func (r *result) observe(u *unit, id series.ID, c *call, seconds float64) {
	r.update(u, id, u.requestSource, c.library, c.function, c.device, c.result).Value = seconds
}

// countCalls counts each call once, even if several spans record it. A client's
// own event takes precedence over a span's duration, which has neither library
// nor device; otherwise the outermost span counts.
func (t *Tally) countCalls(r *Reader) {
	if !r.anyCalls {
		return
	}
	for _, hasEvents := range [...]bool{true, false} {
		units := selected(r, func(u *unit) bool { return len(u.calls) > 0 && u.hasEvents == hasEvents })
		for i, v := range t.calls.Outermost(candidates(r, units)) {
			if u := units[i]; v == nesting.Counts {
				u.kinds |= isCalled
				for j := range u.calls {
					r.countCall(u, &u.calls[j])
					r.addCallTimes(u, &u.calls[j])
				}
			}
		}
	}
}
