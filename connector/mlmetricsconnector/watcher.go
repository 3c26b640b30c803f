package mlmetricsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// watcher finds series in the clients' metrics that the connector would also
// write, so that each name has one writer. It forwards nothing.
type watcher struct {
	member
	now func() time.Time
}

// ConsumeMetrics reads what clients and receivers send.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	w.shared.seen.Read(md, w.shared.recording(), w.now())
	return nil
}
