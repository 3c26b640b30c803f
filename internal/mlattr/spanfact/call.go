package spanfact

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// CallPart is a part of the time of a call.
type CallPart uint8

// The whole call, and the parts that clients measure.
const (
	Whole CallPart = iota
	Queued
	Serialized
	InPython
	CallParts
)

// callPartKeys are the keys of the parts in events, without their unit.
var callPartKeys = [CallParts]string{"duration", "queue_time", "serialize_time", "python_time"}

// CallTimes are the times of the parts in seconds, as far as they are known.
type CallTimes struct {
	Seconds [CallParts]float64
	Has     [CallParts]bool
}

// Add adds to the time of a part.
func (t *CallTimes) Add(p CallPart, seconds float64) {
	t.Seconds[p], t.Has[p] = t.Seconds[p]+seconds, true
}

// CallEvent is what a client's event states of a call of a function in another process.
type CallEvent struct {
	Library, Function, Operation, Device string
	// Failed reports a result that is not ok, and Decoding a serializer that reads.
	Failed, Decoding bool
	CallTimes
}

// ReadCallEvent reads an event's attributes, which have the client's short names, or
// canonical names if ml_enrich has read the span. It returns how many negative waits it
// read as 0, and how many times it left out.
func ReadCallEvent(attrs pcommon.Map) (e CallEvent, clamped, outOfRange int64) {
	for key, v := range attrs.All() {
		switch key {
		case "library", mlattr.Library:
			e.Library = mlattr.ReadWord(v)
		case "function", mlattr.Function:
			e.Function = mlattr.ReadWord(v)
		case "operation", mlattr.Operation:
			e.Operation = mlattr.ReadWord(v)
		case "device":
			e.Device = Device(v)
		case "result":
			e.Failed = mlattr.ReadWord(v) != "ok"
		case "direction":
			e.Decoding = mlattr.ReadWord(v) == "decode"
		default:
			what, unit := mlattr.CallTimeKey(key)
			p := slices.Index(callPartKeys[:], what)
			if p < 0 {
				continue
			}
			seconds, ok := mlattr.ReadCallTime(v, unit)
			if ok && seconds < 0 && CallPart(p) == Queued {
				// Two clocks disagree about a short wait.
				clamped++
				seconds = 0
			}
			if !ok || seconds < 0 {
				outOfRange++
				continue
			}
			e.Seconds[p], e.Has[p] = seconds, true
		}
	}
	return e, clamped, outOfRange
}

// Device reads where something is as PyTorch writes it, from "cuda:0" itself or Elixir's
// "{:cuda, 0}".
func Device(v pcommon.Value) string {
	if v.Type() != pcommon.ValueTypeStr {
		return mlattr.ReadWord(v)
	}
	inner, ok := strings.CutPrefix(v.Str(), "{:")
	if !ok {
		return mlattr.ReadWord(v)
	}
	kind, index, pair := strings.Cut(strings.TrimSuffix(inner, "}"), ",")
	text := kind + ":" + strings.TrimSpace(index)
	if !pair || len(text) > mlattr.MaxText || !mlattr.ValidID(text) {
		return ""
	}
	return text
}
