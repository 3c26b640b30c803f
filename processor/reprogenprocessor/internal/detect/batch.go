package detect

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

const (
	// MaxFailures is how many failed spans or records of a batch are looked at;
	// further ones are dropped. The services of a batch share it.
	MaxFailures = 512
	// maxFound is how many they are chosen from, the first of a batch.
	maxFound = 8192
)

// Detector finds failures in batches.
type Detector struct {
	Kinds   kind.Registry
	History *share.History
	// Failed has the traces that failed before.
	Failed *Filter
}

// Batch is what a batch has for repro_gen.
type Batch struct {
	// Failed are the failed spans or records that are looked at.
	Failed []Candidate
	// Calls are spans that did not fail and carry a call.
	Calls []Candidate
	// Dropped counts the failed spans or records beyond MaxFailures.
	Dropped int
	// MayBelong reports whether a trace of the batch may be one that failed before.
	MayBelong bool
}

func (b *Batch) add(c Candidate, failed bool) {
	switch {
	case !failed:
		b.Calls = append(b.Calls, c)
	case len(b.Failed) < maxFound:
		b.Failed = append(b.Failed, c)
	default:
		b.Dropped++
	}
}

// Traces looks at each span of a batch once.
func (d *Detector) Traces(td ptrace.Traces, sender share.Sender, now time.Time) Batch {
	var b Batch
	for _, rs := range td.ResourceSpans().All() {
		succeeded := false
		for _, ss := range rs.ScopeSpans().All() {
			succeeded = d.scope(&b, rs.Resource(), ss, sender) || succeeded
		}
		if succeeded {
			d.History.Succeeded(originOf(sender, rs.Resource()), now)
		}
	}
	d.finish(&b)
	return b
}

// scope looks at the spans of a scope and reports whether one did not fail.
func (d *Detector) scope(b *Batch, resource pcommon.Resource, ss ptrace.ScopeSpans, sender share.Sender) (succeeded bool) {
	for _, span := range ss.Spans().All() {
		mayBelong := d.Failed.MayHave(span.TraceID())
		b.MayBelong = b.MayBelong || mayBelong
		failed, correlated := signsOf(span)
		succeeded = succeeded || !failed
		// A call is of use only where something may refer to it.
		if !failed && (!correlated && !mayBelong || !d.Kinds.HasRemoteCall(span)) {
			continue
		}
		b.add(Candidate{Span: span, Resource: resource, Scope: ss.Scope().Name(), Sender: sender}, failed)
	}
	return succeeded
}

// Logs looks at each record of a batch once. A record that has an exception or a
// trigger failed.
func (d *Detector) Logs(ld plog.Logs, sender share.Sender, now time.Time) Batch {
	var b Batch
	for _, rl := range ld.ResourceLogs().All() {
		succeeded := false
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if !hasFailure(record) {
					succeeded = true
					continue
				}
				b.add(Candidate{
					Record: record, FromLog: true, Resource: rl.Resource(), Scope: sl.Scope().Name(), Sender: sender,
				}, true)
			}
		}
		if succeeded {
			d.History.Succeeded(originOf(sender, rl.Resource()), now)
		}
	}
	d.finish(&b)
	return b
}

// finish keeps the failures that are looked at, and reads why they failed. Where
// there are too many, each service has its share.
func (d *Detector) finish(b *Batch) {
	if len(b.Failed) > MaxFailures {
		stay, leave := share.Divide(b.Failed, MaxFailures, func(c Candidate) share.Item {
			return share.Item{Path: d.History.Path(c.Origin()), Weight: 1}
		})
		b.Failed, b.Dropped = stay, b.Dropped+len(leave)
	}
	for i := range b.Failed {
		c := &b.Failed[i]
		if c.FromLog {
			c.Span = spanOf(c.Record, c.Scope)
		}
		c.Err, c.Trigger = errorOf(c.Span), triggerOf(c.Attributes())
	}
}

// Filter reports without a lock whether a trace may be one of a set. It is wrong for
// few of those that are not.
type Filter struct {
	slots [4096]atomic.Int32
}

func (f *Filter) slot(id pcommon.TraceID) *atomic.Int32 {
	mixed := (binary.LittleEndian.Uint64(id[:8]) ^ binary.LittleEndian.Uint64(id[8:])) * 0x9E3779B97F4A7C15
	return &f.slots[mixed>>52]
}

// Add adds a trace to the set.
func (f *Filter) Add(id pcommon.TraceID) { f.slot(id).Add(1) }

// Remove removes a trace that was added.
func (f *Filter) Remove(id pcommon.TraceID) { f.slot(id).Add(-1) }

// MayHave reports whether a trace may be in the set. It is true for every one that is.
func (f *Filter) MayHave(id pcommon.TraceID) bool { return f.slot(id).Load() != 0 }
