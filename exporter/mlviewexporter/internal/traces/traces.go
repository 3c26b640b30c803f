// Package traces holds the most recent traces.
package traces

import (
	"cmp"
	linked "container/list"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/criticalpath"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Set are the most recent traces.
type Set struct {
	*input.Bounds
	byID map[[16]byte]*trace
	// groups has the held traces by service and whether they failed, as *trace, in the
	// order of their last spans.
	groups map[traceGroup]*linked.List
	bytes  int64
	turn   uint64
	chosen choice
}

// traceGroup has traces among which the oldest leaves first, so that a busy
// service does not displace the others.
type traceGroup struct {
	service string
	failed  bool
}

// trace is a trace, as far as its spans are held.
type trace struct {
	id      [16]byte
	group   traceGroup
	place   *linked.Element // in its group
	turn    uint64          // when its last span arrived
	run     string
	spans   []heldSpan
	dropped int
	// details has those of the spans, cut bytes of which were removed with the first ones.
	details input.Details
	cut     int
	// bytes is the memory of the spans, texts that of their texts.
	bytes, texts int64
}

// heldSpan is a span of a trace.
type heldSpan struct {
	id, parent              [8]byte
	start, end              int64
	name, service           string
	phase, operation, class string
	server                  bool
	// details begins and ends there in those of the trace, counted from its first span on.
	from, to int
}

// spanBytes is about what a held span takes without its texts.
const spanBytes = 200

// textBytes is the size of a span's texts, which others may share.
func (s *heldSpan) textBytes() int64 {
	return int64(len(s.name) + len(s.service) + len(s.phase) + len(s.operation) + len(s.class))
}

// size changes the size of the texts of a trace.
func (t *Set) size(one *trace, by int64) { t.bytes, one.texts = t.bytes+by, one.texts+by }

// New returns a Set without traces.
func New(of *input.Bounds) *Set {
	budget := func(within time.Duration) *share.Budget {
		return share.NewBudget(of.MaxTraces, float64(of.MaxTraces)*float64(time.Minute/within))
	}
	return &Set{
		Bounds: of, byID: make(map[[16]byte]*trace), groups: make(map[traceGroup]*linked.List),
		chosen: choice{urgent: budget(renewal / 2), others: budget(renewal), refused: make([]refusal, refusals)},
	}
}

// Add adds a span to its trace, which is that of a run unless run is empty. Of a trace
// with too many spans the newest are held.
func (t *Set) Add(in *input.Span, run string) {
	if in.Trace == ([16]byte{}) {
		return
	}
	one := t.byID[in.Trace]
	if one == nil {
		one = t.begin(in)
	}
	t.turn++
	one.turn = t.turn
	t.groups[one.group].MoveToBack(one.place)
	if run != "" {
		one.run = run
	}
	if len(one.spans) >= maxSpans {
		const drop = maxSpans / 8
		for i := range one.spans[:drop] {
			t.size(one, -one.spans[i].textBytes())
		}
		one.details = one.details[:copy(one.details, one.details[one.spans[drop-1].to-one.cut:])]
		one.cut = one.spans[drop-1].to
		one.spans = one.spans[:copy(one.spans, one.spans[drop:])]
		one.dropped += drop
	}
	if len(one.spans) == cap(one.spans) {
		one.spans = slices.Grow(one.spans, max(8, len(one.spans)))
	}
	class := ""
	if in.Failed {
		class = t.Texts.Of(cmp.Or(in.Class, mlattr.Other))
		if !one.group.failed {
			t.leave(one)
			one.group.failed = true
			t.join(one)
		}
	}
	one.spans = append(one.spans, heldSpan{
		id: in.ID, parent: in.Parent, start: in.Start, end: max(in.Start, in.End),
		name: t.Texts.Of(in.Name), service: t.Texts.Of(in.Source.Service),
		phase: t.Texts.Of(in.Fact.Phase), operation: t.Texts.Of(in.Fact.Operation), class: class, server: in.Server, from: one.cut + len(one.details), to: one.cut + len(one.details) + len(in.Details),
	})
	t.size(one, one.spans[len(one.spans)-1].textBytes())
	one.details = append(one.details, in.Details...)
	grown := int64(cap(one.spans))*spanBytes + int64(cap(one.details)) - one.bytes
	t.bytes, one.bytes = t.bytes+grown, one.bytes+grown
}

// begin adds a trace.
func (t *Set) begin(in *input.Span) *trace {
	t.Evict(1)
	one := &trace{id: in.Trace, group: traceGroup{service: t.Texts.Of(in.Source.Service)}}
	if refused := t.chosen.of(in); refused.id == in.Trace {
		one.dropped = refused.spans
		*refused = refusal{}
	}
	t.byID[in.Trace] = one
	t.join(one)
	return one
}

// join adds a trace to its group, as the one that got its last span last.
func (t *Set) join(one *trace) {
	one.place = shared.Entry(t.groups, one.group, linked.New).PushBack(one)
}

func (t *Set) leave(one *trace) {
	group := t.groups[one.group]
	if group.Remove(one.place); group.Len() == 0 {
		delete(t.groups, one.group)
	}
}

// Evict removes traces until the limits hold with some more traces.
func (t *Set) Evict(more int) {
	for len(t.byID) > 0 && t.full(more) {
		t.remove(t.oldest())
	}
}

// full reports whether some more traces exceed a limit.
func (t *Set) full(more int) bool { return len(t.byID)+more > t.MaxTraces || t.bytes > t.TraceBytes }

// oldest returns the trace of the largest group that got its last span first.
func (t *Set) oldest() *trace {
	var oldest *trace
	most := 0
	for _, group := range t.groups {
		one := group.Front().Value.(*trace)
		if oldest == nil || cmp.Or(cmp.Compare(most, group.Len()), cmp.Compare(one.turn, oldest.turn)) < 0 {
			oldest, most = one, group.Len()
		}
	}
	return oldest
}

func (t *Set) remove(one *trace) {
	delete(t.byID, one.id)
	t.leave(one)
	t.bytes -= one.texts + one.bytes
}

// maxSpans limits the spans of a trace, maxTracesOfRun and maxSpansOfRow the traces of a
// RunDetail, whose whole traces have addresses of their own.
const (
	maxSpans       = 2000
	maxTracesOfRun = 10
	maxSpansOfRow  = 200
)

// OfRun returns the last traces of a run, the newest first.
func (t *Set) OfRun(run string) []api.Trace {
	own := mlattr.Where(maps.Values(t.byID), func(one *trace) bool { return one.run == run })
	slices.SortFunc(own, func(a, b *trace) int { return cmp.Compare(b.turn, a.turn) })
	return mlattr.Mapped(own[:min(len(own), maxTracesOfRun)], func(one *trace) api.Trace { return one.row(maxSpansOfRow, t.JaegerURL) })
}

// WithID returns the trace with an id, as hexadecimal digits.
func (t *Set) WithID(id string) (*api.Trace, bool) {
	one := t.of(id)
	if one == nil {
		return nil, false
	}
	row := one.row(maxSpans, t.JaegerURL)
	return &row, true
}

func (t *Set) of(id string) *trace {
	key, err := hex.DecodeString(id[:min(len(id), 33)])
	if err != nil || len(key) != 16 {
		return nil
	}
	return t.byID[[16]byte(key)]
}

// Span returns what an opened span shows, by the ids of its trace and of itself.
func (t *Set) Span(id, span string) (*api.SpanDetail, bool) {
	if one := t.of(id); one != nil {
		if held := mlattr.Find(one.spans, func(s *heldSpan) bool { return api.HexID(s.id[:]) == span }); held != nil {
			row := one.details[held.from-one.cut : held.to-one.cut].Rows(func(key, value string) string {
				if content.IsSecret(key, value) {
					return content.Mark("key")
				}
				value, _ = content.Redact(value)
				return value
			})
			return &row, true
		}
	}
	return nil, false
}

// row returns a trace with at most limit spans, in the order of the tree.
func (t *trace) row(limit int, jaeger string) api.Trace {
	tree := newTree(t.spans)
	root := tree.longestRoot()
	row := api.Trace{
		ID: api.HexID(t.id[:]), Service: root.service, Name: root.name, Run: t.run,
		Start: time.Unix(0, tree.start).UTC(), Duration: float64(root.end-root.start) / 1e9,
		Error: t.group.failed, Dropped: t.dropped, Spans: []api.Span{},
	}
	row.URL = api.TraceURL(jaeger, row.ID)
	// A parent comes before its children.
	var add func(at []int, depth int)
	add = func(at []int, depth int) {
		for _, i := range at {
			if len(row.Spans) >= limit {
				row.Dropped = t.dropped + len(t.spans) - limit
				return
			}
			one, critical := &t.spans[i], tree.critical[i]
			row.Spans = append(row.Spans, api.Span{
				ID: api.HexID(one.id[:]), Parent: api.HexID(one.parent[:]), Name: one.name, Service: one.service,
				Phase: one.phase, Operation: one.operation, Depth: depth,
				Offset: float64(one.start-tree.start) / 1e9, Duration: float64(one.end-one.start) / 1e9,
				Error: one.class, Critical: critical != criticalpath.Off, CriticalTime: float64(max(critical, 0)) / 1e9,
			})
			add(tree.children[i], depth+1)
		}
	}
	add(tree.roots, 0)
	return row
}

// tree is the spans of a trace by parent. A span whose parent is not held is a
// root. Of spans that are each other's parents the first is a root.
type tree struct {
	spans    []heldSpan
	roots    []int
	children [][]int
	start    int64
	// critical is the share of each span in the critical path, in nanoseconds, or
	// criticalpath.Off.
	critical []int64
}

func newTree(spans []heldSpan) *tree {
	t := &tree{spans: spans, children: make([][]int, len(spans))}
	byID := make(map[[8]byte]int32, len(spans))
	for i := range spans {
		if _, again := byID[spans[i].id]; !again {
			byID[spans[i].id] = int32(i) // #nosec G115 -- at most maxSpans
		}
		if i == 0 || spans[i].start < t.start {
			t.start = spans[i].start
		}
	}
	timed := make([]criticalpath.Span, len(spans))
	for i := range spans {
		s := &spans[i]
		timed[i] = criticalpath.Span{Parent: criticalpath.None, Start: s.start, End: s.end, Server: s.server}
		if parent, held := byID[s.parent]; held && s.parent != ([8]byte{}) {
			timed[i].Parent = parent
		}
	}
	critical, parents := criticalpath.Find(timed)
	t.critical = critical
	for i, parent := range parents {
		if parent == criticalpath.None {
			t.roots = append(t.roots, i)
		} else {
			t.children[parent] = append(t.children[parent], i)
		}
	}
	byStart := func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].start, spans[b].start), cmp.Compare(spans[b].end, spans[a].end), cmp.Compare(a, b))
	}
	slices.SortFunc(t.roots, byStart)
	for i := range t.children {
		slices.SortFunc(t.children[i], byStart)
	}
	return t
}

// longestRoot returns the root that lasts longest. A trace without roots among
// its held spans has none that stands for it: then it is the longest of those
// whose parents are not held.
func (t *tree) longestRoot() *heldSpan {
	if len(t.roots) == 0 {
		return new(heldSpan)
	}
	return &t.spans[slices.MaxFunc(t.roots, func(a, b int) int {
		return cmp.Compare(t.spans[a].end-t.spans[a].start, t.spans[b].end-t.spans[b].start)
	})]
}

const (
	// renewal is the time in which as many new traces are held as may be at one time, and
	// twice as many that are urgent. Of more traces some are held: otherwise each would
	// leave before somebody opens it.
	renewal = 20 * time.Second
	// refusals is the number of traces that are known not to be held, for passedOver.
	refusals   = 1 << 12
	passedOver = time.Minute
)

// choice decides which new traces are held.
type choice struct {
	urgent, others *share.Budget
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

// Choose marks the spans that are held: those of held traces, and of as many others as
// there is room for or renewal allows, first of urgent ones, which failed or have a slow
// call. The spans are those of one request.
func (t *Set) Choose(spans []input.Span, now time.Time) {
	for i := range spans {
		in := &spans[i]
		if !in.Failed && !in.Slow() || t.byID[in.Trace] != nil || in.Trace == ([16]byte{}) {
			continue
		}
		if known := t.chosen.of(in); t.take(t.chosen.urgent, in, now) {
			t.begin(in)
		} else if known.id != in.Trace {
			*known = refusal{id: in.Trace, since: now}
		}
	}
	for i := range spans {
		in := &spans[i]
		in.Held = in.Trace == ([16]byte{}) || t.byID[in.Trace] != nil || t.admit(in, now)
	}
}

// admit begins a trace if it may be held, and reports whether it may.
func (t *Set) admit(in *input.Span, now time.Time) bool {
	known := t.chosen.of(in)
	if known.id == in.Trace && now.Before(known.since.Add(passedOver)) {
		known.spans++
		return false
	}
	if !t.take(t.chosen.others, in, now) {
		*known = refusal{id: in.Trace, since: now, spans: 1}
		return false
	}
	t.begin(in)
	return true
}

// take reports whether a budget or the room allows the trace of a span.
func (t *Set) take(budget *share.Budget, in *input.Span, now time.Time) bool {
	from := share.OriginOf(in.Source.Sender, in.Source.Service)
	return budget.Take(t.Limits.Shares.Claim(from), true, now) || !t.full(1)
}

// of returns where the refusal of a span's trace stands, if there is one.
func (c *choice) of(in *input.Span) *refusal {
	return &c.refused[binary.LittleEndian.Uint64(in.Trace[8:])%refusals]
}
