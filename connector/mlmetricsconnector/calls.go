package mlmetricsconnector

import (
	"strings"

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

// part says which part of a call a span is, by its name.
type part uint8

const (
	noPart part = iota
	// wholeCall is a call of which no other span tells.
	wholeCall
	// oneOfCall is a call of which the spans above and below may tell as well.
	oneOfCall
	// pythonPart is the time in the Python function.
	pythonPart
	// waitPart is the wait for the worker.
	waitPart
)

// callers are the clients whose spans are calls.
const callers = mlattr.Snakepit | mlattr.TuFT | mlattr.TaskWeaver

const taskWeaverCode = "execute_code"

// partOf says which part of a call a span of systems is, and of which function
// where the name says it.
func partOf(systems mlattr.System, name string) (p part, function string) {
	if systems&callers == 0 {
		return noPart, ""
	}
	of := mlattr.TaskWeaver
	switch name {
	case "CodeExecutor.execute_code":
		p, function = wholeCall, taskWeaverCode
	case "load_plugin":
		p, function = wholeCall, "load_plugin"
	case "run_code":
		p, function = pythonPart, taskWeaverCode
	case "start":
		// It begins the kernel that is to run the code, unless there is one.
		p, function = waitPart, taskWeaverCode
	case "BridgeService/ExecuteTool", "BridgeService/ExecuteStreamingTool":
		p, of = pythonPart, mlattr.Snakepit
	case "future_store.execute_operation", "oai.proxy_inference",
		"training_controller.create_model", "sampling_controller.create_sampling_session":
		// Every operation of TuFT's is a future, but for these. What lies below
		// is the same operation in other layers.
		p, of = wholeCall, mlattr.TuFT
	case eventCallStop, eventCallException:
		p, of = oneOfCall, mlattr.Snakepit
	default:
		if !strings.HasPrefix(name, "snakepit.grpc.") {
			return noPart, ""
		}
		p, of = oneOfCall, mlattr.Snakepit
	}
	if systems&of == 0 {
		return noPart, ""
	}
	return p, function
}

// addCalls adds what a span is of a call, and what its events said of calls.
func (r *reader) addCalls(u *unit, v *values, span ptrace.Span, failed bool, exception string) {
	p, function := partOf(r.ofSpan.Systems, span.Name())
	if p == noPart && !r.heard.anything {
		return
	}
	self := call{library: v.library, function: function}
	if self.function == "" {
		self.function = v.function
	}
	if self.function == "" {
		self.function = v.operation
	}
	// TuFT's future catches the exception and leaves the span as if all was well.
	if failed || p == wholeCall && exception != "" {
		self.result = resultError
	}
	if p != noPart {
		var ok bool
		if self.seconds, ok = length(span); !ok {
			p = noPart
			r.outOfRange++
		}
	}
	switch p {
	case pythonPart:
		// A worker may catch the exception of its function, so that only
		// failure is known.
		r.observe(u, series.CallPythonTime, &self, self.seconds)
	case waitPart:
		r.observe(u, series.CallQueueTime, &self, self.seconds)
	case wholeCall, oneOfCall:
		if self.result == "" {
			self.result = resultOK
		}
		if p == wholeCall {
			r.countCall(u, &self)
		}
	}
	if r.heard.anything || p == oneOfCall {
		r.finishHeard(u, &self, p == oneOfCall)
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
