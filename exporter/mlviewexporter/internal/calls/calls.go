// Package calls holds the most recent calls.
package calls

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// call is a recent call.
type call struct {
	input.SpanRef
	// number tells calls apart whose spans have no ids; others have 0.
	number            uint64
	parent            [8]byte
	recorded          bool
	start             int64
	service, host     string
	library, function string
	run               string // its key, "" for none
	duration          float64
	queue, serialize  float64
	class, message    string
}

// Ring has the recent calls. Its memory is used again.
type Ring struct {
	settings input.Settings
	texts    *kept.Texts

	all  []call
	next int
	// nameless counts the calls whose spans have no ids.
	nameless uint64
}

// New returns a Ring without calls.
func New(settings input.Settings, texts *kept.Texts) *Ring {
	return &Ring{settings: settings, texts: texts}
}

// Add adds the call of a span. If several spans of one chain record a call, the
// client's own event counts, else the outermost span.
func (c *Ring) Add(in *input.Span, run string) {
	one := call{
		SpanRef: input.SpanRef{Trace: in.Trace, Span: in.ID}, parent: in.Parent, recorded: in.Call == input.RecordedCall, start: in.Start,
		run:     run,
		service: c.texts.Of(in.Source.Service), host: c.texts.Of(in.Source.Host),
		library: c.texts.Of(in.Library), function: c.texts.Of(cmp.Or(in.Function, in.Operation, in.Name)),
		duration: in.Duration, queue: in.Queue, serialize: in.Serialize,
	}
	if in.Failed {
		one.class, one.message = c.texts.Of(cmp.Or(in.Class, mlattr.Other)), c.texts.Message(in.Message)
	}
	if one.SpanRef == (input.SpanRef{}) {
		c.nameless++
		one.number = c.nameless
	} else if known := c.same(&one); known != nil {
		known.merge(&one)
		return
	}
	if len(c.all) < maxCalls {
		c.all = append(c.all, one)
		return
	}
	c.all[c.next] = one
	c.next = (c.next + 1) % maxCalls
}

// same returns the call that another span of the chain recorded, or nil.
func (c *Ring) same(one *call) *call {
	for i := range c.all {
		known := &c.all[i]
		if known.Trace != one.Trace || known.service != one.service {
			continue
		}
		if known.Span == one.Span || known.Span == one.parent || known.parent == one.Span {
			return known
		}
	}
	return nil
}

// merge takes over what another span says of the same call.
func (c *call) merge(other *call) {
	outer, inner := *c, *other
	if inner.recorded && !outer.recorded || inner.recorded == outer.recorded && outer.parent == inner.Span {
		outer, inner = inner, outer
	}
	if outer.library == "" && inner.library != "" {
		outer.library, outer.function = inner.library, inner.function
	}
	if outer.queue != outer.queue {
		outer.queue = inner.queue
	}
	if outer.serialize != outer.serialize {
		outer.serialize = inner.serialize
	}
	if outer.class == "" || outer.class == mlattr.Other {
		outer.class = cmp.Or(inner.class, outer.class)
	}
	outer.message = cmp.Or(outer.message, inner.message)
	*c = outer
}

// Rows returns the calls of a run, or all of them if run is empty, the newest first.
// bound tells on what the time of calls of a function was spent, simulated has the services whose data is
// simulated.
func (c *Ring) Rows(run string, bound func(service, library, function string) map[string]float64, simulated map[string]bool) []api.Call {
	rows := make([]api.Call, 0, len(c.all))
	for i := range c.all {
		one := &c.all[i]
		if run != "" && one.run != run {
			continue
		}
		trace := api.HexID(one.Trace[:])
		rows = append(rows, api.Call{
			Key: api.Key("call", trace, hex.EncodeToString(one.Span[:]), one.service, strconv.FormatUint(one.number, 10)), Time: time.Unix(0, one.start).UTC(),
			Service: one.service, Library: one.library, Function: one.function, Host: one.host, Run: one.run,
			Duration: one.duration, Queue: api.Finite(one.queue), Serialize: api.Finite(one.serialize), Bound: bound(one.service, one.library, one.function),
			Error: one.class, Message: one.message, Slow: one.duration > c.settings.SlowCall.Seconds(),
			TraceID: trace, TraceURL: api.TraceURL(c.settings.JaegerURL, trace), Simulated: simulated[one.service],
		})
	}
	slices.SortStableFunc(rows, func(a, b api.Call) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Key, b.Key)) })
	return rows
}

// maxCalls limits the calls.
const maxCalls = 200
