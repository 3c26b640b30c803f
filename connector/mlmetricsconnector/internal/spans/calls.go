package spans

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Values of series.Result.
const (
	resultOK    = "ok"
	resultError = "error"
)

// part is a part of the time of a call.
type part uint8

// The parts that clients measure, and the whole call.
const (
	whole part = iota
	queued
	serialized
	inPython
	parts
)

// partKeys are the keys of the parts in events, without their unit, and partSeries their
// series.
var (
	partKeys   = [parts]string{"duration", "queue_time", "serialize_time", "python_time"}
	partSeries = [parts]series.ID{series.CallDuration, series.CallQueueTime, series.CallSerializeTime, series.CallPythonTime}
)

// partTimes are the times of the parts in seconds, as far as they are known.
type partTimes struct {
	seconds [parts]float64
	has     [parts]bool
}

func (t *partTimes) add(p part, seconds float64) { t.seconds[p], t.has[p] = t.seconds[p]+seconds, true }

// call is a call of a function in another process.
type call struct {
	library, function, device, result string
	partTimes
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
	self := call{library: v.Library, function: cmp.Or(function, v.Function, v.Operation)}
	if failed {
		self.result = resultError
	}
	if p != table.NoCall {
		var ok bool
		if self.seconds[whole], ok = length(span); !ok {
			p = table.NoCall
			r.Skipped.OutOfRange++
		}
	}
	switch p {
	case table.FunctionPart:
		// A worker may catch the exception of its function, so that only
		// failures are certain.
		r.observe(u, inPython, &self, self.seconds[whole])
	case table.QueuePart:
		r.observe(u, queued, &self, self.seconds[whole])
	case table.WholeCall:
		self.result = cmp.Or(self.result, resultOK)
		r.countCall(u, &self)
		u.wholeCall, u.library, u.function = true, self.library, self.function
	case table.SharedCall:
		self.result = cmp.Or(self.result, resultOK)
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
	r.observe(u, whole, c, c.seconds[whole])
	if r.Slow > 0 && c.seconds[whole] > r.Slow {
		r.count(u, series.CallsSlow, u.requestSource, 1, c.library, c.function, c.device, c.result)
	}
}

func (r *result) observe(u *unit, p part, c *call, seconds float64) {
	r.update(u, partSeries[p], u.requestSource, c.library, c.function, c.device, c.result).Value = seconds
}

// countCalls counts each call once, even if several spans record it. A client's
// own event takes precedence over a span's duration, which has neither library
// nor device; otherwise the outermost span counts.
func (t *Tally) countCalls(r *Reader) {
	if !r.anyCalls {
		return
	}
	for _, hasEvents := range [...]bool{true, false} {
		r.rule(t.calls.Outermost, 0, func(u *unit) bool { return len(u.calls) > 0 && u.hasEvents == hasEvents }, func(u *unit) {
			u.kinds |= isCalled
			for i := range u.calls {
				r.countCall(u, &u.calls[i])
				r.addCallTimes(u, &u.calls[i])
			}
		})
	}
}
