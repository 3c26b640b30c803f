package model

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"time"
)

// spanRef identifies a span.
type spanRef struct {
	trace [16]byte
	span  [8]byte
}

// call is a recent call.
type call struct {
	spanRef
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

// callRing has the recent calls. Its memory is used again.
type callRing struct {
	settings Settings
	texts    *texts

	all  []call
	next int
	// nameless counts the calls whose spans have no ids.
	nameless uint64
}

// add adds the call of a span. If several spans of one chain record a call, the
// client's own event counts, else the outermost span.
func (c *callRing) add(in *SpanInput, run string) {
	one := call{
		spanRef: spanRef{in.Trace, in.ID}, parent: in.Parent, recorded: in.Call == RecordedCall, start: in.Start,
		run:     run,
		service: c.texts.of(in.Source.Service), host: c.texts.of(in.Source.Host),
		library: c.texts.of(in.Library), function: c.texts.of(cmp.Or(in.Function, in.Operation, in.Name)),
		duration: in.Duration, queue: in.Queue, serialize: in.Serialize,
	}
	if in.Failed {
		one.class, one.message = c.texts.of(cmp.Or(in.Class, otherError)), c.texts.message(in.Message)
	}
	if one.spanRef == (spanRef{}) {
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

// otherError is the class of an error without one, as in the conventions.
const otherError = "_OTHER"

// same returns the call that another span of the chain recorded, or nil.
func (c *callRing) same(one *call) *call {
	for i := range c.all {
		known := &c.all[i]
		if known.trace != one.trace || known.service != one.service {
			continue
		}
		if known.span == one.span || known.span == one.parent || known.parent == one.span {
			return known
		}
	}
	return nil
}

// merge takes over what another span says of the same call.
func (c *call) merge(other *call) {
	outer, inner := *c, *other
	if inner.recorded && !outer.recorded || inner.recorded == outer.recorded && outer.parent == inner.span {
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
	if outer.class == "" || outer.class == otherError {
		outer.class = cmp.Or(inner.class, outer.class)
	}
	outer.message = cmp.Or(outer.message, inner.message)
	*c = outer
}

// rows returns the calls of a run, or all of them if run is empty, the newest first.
// times has what the time of calls was spent on, simulated the services whose data is
// simulated.
func (c *callRing) rows(run string, times map[calledID]*callTimes, simulated map[string]bool) []Call {
	rows := make([]Call, 0, len(c.all))
	for i := range c.all {
		one := &c.all[i]
		if run != "" && one.run != run {
			continue
		}
		trace := hexID(one.trace[:])
		var bound map[string]float64
		if spent := times[calledID{one.service, one.library, one.function}]; spent != nil {
			bound = spent.fractions()
		}
		rows = append(rows, Call{
			Key: keyOf("call", trace, hex.EncodeToString(one.span[:]), one.service, strconv.FormatUint(one.number, 10)), Time: time.Unix(0, one.start).UTC(),
			Service: one.service, Library: one.library, Function: one.function, Host: one.host, Run: one.run,
			Duration: one.duration, Queue: finite(one.queue), Serialize: finite(one.serialize), Bound: bound,
			Error: one.class, Message: one.message, Slow: one.duration > c.settings.SlowCall.Seconds(),
			TraceID: trace, TraceURL: traceURL(c.settings.JaegerURL, trace), Simulated: simulated[one.service],
		})
	}
	slices.SortStableFunc(rows, func(a, b Call) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Key, b.Key)) })
	return rows
}

// hexID returns an id as text, "" for the empty one.
func hexID(id []byte) string {
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id)
		}
	}
	return ""
}
