package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	// runs is how many runs the load has.
	runs = 20
	// items is how many spans, points or log records a request has.
	items = 50
	// senders each send a request of each signal once an interval.
	senders  = 2
	interval = 20 * time.Millisecond
	// requestTimeout ends a request that is never answered.
	requestTimeout = 10 * time.Second
)

// load sends spans, points and log records, each with an id, and repeats a request
// until it is acknowledged, as an SDK does.
type load struct {
	next atomic.Uint64
	mu   sync.Mutex
	// acknowledged has the first ids of the acknowledged requests.
	acknowledged [signals][]uint64
}

// run sends until ctx is done, and returns when everything is acknowledged.
func (l *load) run(ctx context.Context, t *testing.T, endpoint string) {
	t.Helper()
	var running sync.WaitGroup
	for range senders {
		sender, err := harness.NewGRPCSender(endpoint)
		require.NoError(t, err)
		running.Go(func() {
			defer func() { assert.NoError(t, sender.Close()) }()
			pace := time.NewTicker(interval)
			defer pace.Stop()
			for ctx.Err() == nil {
				l.send(t.Context(), sender)
				<-pace.C
			}
		})
	}
	running.Wait()
}

// send sends one request of each signal until it is acknowledged or the test ends.
func (l *load) send(ctx context.Context, sender *harness.GRPCSender) {
	id := l.next.Add(items) - items
	for signal, one := range []func(context.Context) error{
		traces:  func(ctx context.Context) error { return sender.Traces(ctx, spans(id)) },
		metrics: func(ctx context.Context) error { return sender.Metrics(ctx, points(id)) },
		logs:    func(ctx context.Context) error { return sender.Logs(ctx, records(id)) },
	} {
		for ctx.Err() == nil {
			limited, cancel := context.WithTimeout(ctx, requestTimeout)
			err := one(limited)
			cancel()
			if err == nil {
				l.mu.Lock()
				l.acknowledged[signal] = append(l.acknowledged[signal], id)
				l.mu.Unlock()
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}
}

// count returns how many items of each signal are acknowledged.
func (l *load) count() (n [signals]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for signal, requests := range l.acknowledged {
		n[signal] = items * len(requests)
	}
	return n
}

func describe(resource pcommon.Resource) {
	resource.Attributes().PutStr("service.name", "torchtel")
	resource.Attributes().PutStr("service.instance.id", "rank-0")
	resource.Attributes().PutStr("host.name", "host-a")
}

func runOf(id uint64) string { return fmt.Sprintf("run-%02d", id%runs) }

// spans are batches of training runs.
func spans(first uint64) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	describe(rs.Resource())
	scope := rs.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("torchtel")
	now := time.Now()
	for id := first; id < first+items; id++ {
		span := scope.Spans().AppendEmpty()
		var self pcommon.SpanID
		var trace pcommon.TraceID
		// An id of zeros is invalid.
		binary.BigEndian.PutUint64(self[:], id+1)
		binary.BigEndian.PutUint64(trace[8:], id+1)
		span.SetSpanID(self)
		span.SetTraceID(trace)
		span.SetName(fmt.Sprintf("batch_%d", id%32))
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-50 * time.Millisecond)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		span.Attributes().PutStr("ml.run.id", runOf(id))
		span.Attributes().PutStr("device", "cuda:0")
		span.Attributes().PutInt("batch", int64(id)) // #nosec G115 -- small
		span.Attributes().PutDouble("loss", 1/float64(id+1))
	}
	return td
}

// points are of one gauge, whose values are their ids.
func points(first uint64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	describe(rm.Resource())
	gauge := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	gauge.SetName(gaugeName)
	values := gauge.SetEmptyGauge().DataPoints()
	for id := first; id < first+items; id++ {
		point := values.AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.SetIntValue(int64(id)) // #nosec G115 -- small
		point.Attributes().PutStr("ml.run.id", runOf(id))
	}
	return md
}

func records(first uint64) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	describe(rl.Resource())
	all := rl.ScopeLogs().AppendEmpty().LogRecords()
	for id := first; id < first+items; id++ {
		record := all.AppendEmpty()
		record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		record.Attributes().PutInt(idKey, int64(id)) // #nosec G115 -- small
		record.Attributes().PutStr("ml.run.id", runOf(id))
	}
	return ld
}
