package shared

import (
	"context"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Outlets are the logs pipelines that a component can send records of its own
// into. The zero value is ready. It is safe for concurrent use; its lock is not
// held while a pipeline consumes.
type Outlets struct {
	mu  sync.Mutex
	all []*outlet
}

// outlet is one pipeline, with the records that are on their way there.
type outlet struct {
	next consumer.Logs
	busy sync.WaitGroup
}

// Add adds a pipeline.
func (o *Outlets) Add(next consumer.Logs) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, &outlet{next: next})
}

// Any reports whether there is a pipeline.
func (o *Outlets) Any() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all) > 0
}

// Remove removes a pipeline. It waits for records that are on their way there, or
// until ctx ends: a pipeline may never come back.
func (o *Outlets) Remove(ctx context.Context, next consumer.Logs) {
	o.mu.Lock()
	i := slices.IndexFunc(o.all, func(one *outlet) bool { return one.next == next })
	if i < 0 {
		o.mu.Unlock()
		return
	}
	one := o.all[i]
	o.all = slices.Delete(o.all, i, i+1)
	o.mu.Unlock()
	_ = Await(ctx, one.busy.Wait)
}

// Send hands records to the pipeline that was added first: two pipelines of one
// component must not both get them. sent is false if there is none.
func (o *Outlets) Send(ctx context.Context, ld plog.Logs) (sent bool, err error) {
	o.mu.Lock()
	if len(o.all) == 0 {
		o.mu.Unlock()
		return false, nil
	}
	one := o.all[0]
	one.busy.Add(1)
	o.mu.Unlock()
	defer one.busy.Done()
	return true, one.next.ConsumeLogs(ctx, ld)
}

// Finish sets what mdatagen's builders of events cannot set, of each record.
func Finish(logs plog.Logs, observed pcommon.Timestamp, severity plog.SeverityNumber, body string) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				FinishRecord(record, observed, severity, body)
			}
		}
	}
}

// FinishRecord sets when a record was made, its severity and its body.
func FinishRecord(record plog.LogRecord, observed pcommon.Timestamp, severity plog.SeverityNumber, body string) {
	record.SetObservedTimestamp(observed)
	record.SetSeverityNumber(severity)
	record.SetSeverityText(strings.ToUpper(severity.String()))
	record.Body().SetStr(body)
}
