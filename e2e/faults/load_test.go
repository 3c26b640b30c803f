package faults

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// load sends spans, each with an id of its own, and remembers which of them the
// collector acknowledged. It sends nothing twice, unless it resends what is
// refused, as an SDK does.
type load struct {
	resends bool
	// spans is how many a request has, padding how many bytes of text a span
	// has besides its attributes, age how far in the past it started, and most
	// how many spans are sent in all; 0 is without end.
	spans   int
	padding int
	age     time.Duration
	// runs is how many runs the spans are of; 0 leaves the run to the collector.
	runs uint64
	most uint64

	next atomic.Uint64
	mu   sync.Mutex
	// acknowledged has the ids of the spans that the collector took, refused
	// counts those that it did not take or did not answer for.
	acknowledged []uint64
	refused      int
}

const (
	senders = 4
	// requestTimeout ends a request that is never answered.
	requestTimeout = 10 * time.Second
	// refusedPause keeps refused clients from sending without pause.
	refusedPause = 100 * time.Millisecond
)

// run sends from several connections until ctx is done or everything is sent,
// and waits for the answers.
func (l *load) run(ctx context.Context, t *testing.T, endpoint string) {
	var waiting sync.WaitGroup
	for range senders {
		sender, err := harness.NewGRPCSender(endpoint)
		require.NoError(t, err)
		waiting.Go(func() {
			defer func() { _ = sender.Close() }()
			l.send(ctx, sender)
		})
	}
	waiting.Wait()
}

func (l *load) send(ctx context.Context, sender *harness.GRPCSender) {
	for ctx.Err() == nil {
		end := l.next.Add(uint64(l.spans))
		if l.most > 0 && end > l.most {
			return
		}
		first := end - uint64(l.spans)
		// What is sent again is the same, times included, as of the SDKs.
		request := l.request(first)
		for !l.sendOne(ctx, sender, first, request) && l.resends && ctx.Err() == nil {
			continue
		}
	}
}

// sendOne sends the request, whose ids begin with first, and reports whether it was
// acknowledged. After a refusal it pauses.
func (l *load) sendOne(ctx context.Context, sender *harness.GRPCSender, first uint64, request ptrace.Traces) bool {
	// A request that is on its way is answered after ctx is done, too.
	answered, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	err := sender.Traces(answered, request)
	cancel()
	l.mu.Lock()
	if err == nil {
		for id := first; id < first+uint64(l.spans); id++ {
			l.acknowledged = append(l.acknowledged, id)
		}
	} else {
		l.refused += l.spans
	}
	l.mu.Unlock()
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(refusedPause):
		}
	}
	return err == nil
}

// counts returns how many spans are acknowledged and how many refused so far.
func (l *load) counts() (acknowledged, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged), l.refused
}

// ids returns the ids that are acknowledged.
func (l *load) ids() []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acknowledged)
}

// request returns the spans whose ids begin with first: steps of a training run.
func (l *load) request(first uint64) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "torchtel")
	resource.Resource().Attributes().PutStr("service.instance.id", "rank-0")
	resource.Resource().Attributes().PutStr("host.name", "host-a")
	scope := resource.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("torchtel")
	padding := strings.Repeat("x", l.padding)
	end := time.Now().Add(-l.age)
	for id := first; id < first+uint64(l.spans); id++ {
		span := scope.Spans().AppendEmpty()
		span.SetSpanID(spanID(id))
		span.SetTraceID(traceID(id))
		span.SetName("batch_" + strconv.FormatUint(id%32, 10))
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-50 * time.Millisecond)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
		span.Attributes().PutInt("batch", int64(id))
		span.Attributes().PutStr("device", "cuda:0")
		span.Attributes().PutDouble("loss", 1/float64(id+1))
		if l.runs > 0 {
			span.Attributes().PutStr("ml.run.id", "run-"+strconv.FormatUint(id%l.runs, 10))
		}
		if padding != "" {
			span.Attributes().PutStr("comment", padding)
		}
	}
	return traces
}

// spanID writes an id in the last bytes: an id of zero bytes is invalid.
func spanID(id uint64) (out pcommon.SpanID) {
	binary.BigEndian.PutUint64(out[:], id+1)
	return out
}

func traceID(id uint64) (out pcommon.TraceID) {
	out[0] = 1
	binary.BigEndian.PutUint64(out[8:], id+1)
	return out
}

// idOf is the inverse of spanID.
func idOf(span pcommon.SpanID) uint64 { return binary.BigEndian.Uint64(span[:]) - 1 }
