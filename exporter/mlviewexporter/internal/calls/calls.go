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
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// call is a recent call: its row, as far as its spans say it, and these.
type call struct {
	api.Call
	input.SpanRef
	parent   [8]byte
	recorded bool
	// number tells calls apart whose spans have no ids.
	number uint64
}

// Ring has the recent calls. Its memory is used again.
type Ring struct {
	*input.Bounds
	all  []call
	next int
	// nameless counts the calls whose spans have no ids.
	nameless uint64
}

// New returns a Ring without calls.
func New(of *input.Bounds) *Ring { return &Ring{Bounds: of} }

// Add adds the call of a span. If several spans of one chain record a call, the
// client's own event counts, else the outermost span.
func (c *Ring) Add(in *input.Span, run string) {
	one := call{SpanRef: input.SpanRef{Trace: in.Trace, Span: in.ID}, parent: in.Parent, recorded: in.Part == input.RecordedCall}
	one.Call = api.Call{
		Time: time.Unix(0, in.Start).UTC(), Run: run, Service: c.Texts.Of(in.Source.Service), Host: c.Texts.Of(in.Source.Host),
		Library: c.Texts.Of(in.Fact.Library), Function: c.Texts.Of(cmp.Or(in.Fact.Function, in.Fact.Operation, in.Name)),
		Model: c.Texts.Of(in.Fact.Model()), Tool: c.Texts.Of(in.Tool), Agent: c.Texts.Of(in.Agent), Session: c.Texts.Of(in.Session),
		Duration: in.Duration, Queue: api.Finite(in.Queue), Serialize: api.Finite(in.Serialize),
		Slow: in.Slow(),
	}
	if in.Failed {
		one.Error, one.Message = c.Texts.Of(cmp.Or(in.Class, mlattr.Other)), c.Texts.Message(in.Message)
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
	return mlattr.Find(c.all, func(known *call) bool {
		inChain := known.Span == one.Span || known.Span == one.parent || known.parent == one.Span
		return inChain && known.Trace == one.Trace && known.Service == one.Service
	})
}

// merge takes over what another span says of the same call.
func (c *call) merge(other *call) {
	outer, inner := *c, *other
	if inner.recorded && !outer.recorded || inner.recorded == outer.recorded && outer.parent == inner.Span {
		outer, inner = inner, outer
	}
	if outer.Library == "" && inner.Library != "" {
		outer.Library, outer.Function = inner.Library, inner.Function
	}
	outer.Queue, outer.Serialize = cmp.Or(outer.Queue, inner.Queue), cmp.Or(outer.Serialize, inner.Serialize)
	if outer.Error == "" || outer.Error == mlattr.Other {
		outer.Error = cmp.Or(inner.Error, outer.Error)
	}
	outer.Message = cmp.Or(outer.Message, inner.Message)
	*c = outer
}

// Rows returns the calls of a run, or all of them if run is empty, the newest first.
// bound tells on what the time of calls of a function was spent, simulated has the services whose data is
// simulated.
func (c *Ring) Rows(run string, bound func(service, library, function string) map[string]float64, simulated map[string]bool) []api.Call {
	rows := make([]api.Call, 0, len(c.all))
	for i := range c.all {
		one := &c.all[i]
		if row := one.Call; run == "" || row.Run == run {
			row.TraceID = api.HexID(one.Trace[:])
			row.Key = api.Key("call", row.TraceID, hex.EncodeToString(one.Span[:]), row.Service, strconv.FormatUint(one.number, 10))
			row.Bound, row.Simulated = bound(row.Service, row.Library, row.Function), simulated[row.Service]
			row.TraceURL = api.TraceURL(c.JaegerURL, row.TraceID)
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b api.Call) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Key, b.Key)) })
	return rows
}

// maxCalls limits the calls.
const maxCalls = 200
