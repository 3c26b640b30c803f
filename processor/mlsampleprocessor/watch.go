package mlsampleprocessor

import (
	"cmp"
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// instances has the samplers of the running traces instances of a component id.
type instances struct {
	component.StartFunc
	component.ShutdownFunc
	samplers sync.Map // set of *sample.Sampler
}

type instancesOfID = shared.Use[*instances]

// watch is a logs or metrics instance.
type watch struct {
	dryRun bool
	of     instancesOfID
}

// processMetrics removes exemplars of spans that are dropped, because nobody can open
// them.
func (w *watch) processMetrics(_ context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	if w.dryRun {
		return md, nil
	}
	drops := func(e pmetric.Exemplar) (dropped bool) {
		w.of.Shared.samplers.Range(func(s, _ any) bool {
			dropped = s.(*sample.Sampler).Drops(sample.TraceID(e.TraceID()), sample.SpanID(e.SpanID()), e.Timestamp().AsTime().UnixNano())
			return !dropped
		})
		return dropped
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for point := range mlattr.Points(m) {
					point.Exemplars.RemoveIf(drops)
				}
			}
		}
	}
	return md, nil
}

// processLogs passes all records on, and keeps the steps before a problem of a run or a
// GPU error.
func (w *watch) processLogs(_ context.Context, ld plog.Logs) (plog.Logs, error) {
	for _, rl := range ld.ResourceLogs().All() {
		resource := rl.Resource().Attributes()
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				attributes, host := record.Attributes(), ""
				switch record.EventName() {
				case mlattr.Problem:
					if mlattr.TextAt(attributes, mlattr.ProblemState) != mlattr.ProblemBegan {
						continue
					}
				case mlattr.GPUXIDEvent:
					host = cmp.Or(mlattr.TextAt(attributes, mlattr.HostName), mlattr.TextAt(resource, mlattr.HostName))
				default:
					continue
				}
				run := cmp.Or(mlattr.TextAt(attributes, mlattr.RunID), mlattr.TextAt(resource, mlattr.RunID))
				for s := range w.of.Shared.samplers.Range {
					s.(*sample.Sampler).Release(hashOf(run), hashOf(host))
				}
			}
		}
	}
	return ld, nil
}
