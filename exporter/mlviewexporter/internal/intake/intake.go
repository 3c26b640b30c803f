// Package intake reads traces, metrics and logs into the model of the live page.
// It reads canonical names and decides nothing.
package intake

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// Settings configure an Intake. There are none yet.
type Settings struct{}

// Intake reads telemetry into a Store. It is safe for concurrent use and keeps no
// reference to what it reads.
type Intake struct {
	store *model.Store
}

// New returns an Intake into a Store.
func New(store *model.Store, _ Settings) *Intake { return &Intake{store: store} }

// ConsumeTraces reads spans. It always returns nil.
func (*Intake) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }

// ConsumeMetrics reads points of metrics. It always returns nil.
func (*Intake) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }

// ConsumeLogs reads log records. It always returns nil.
func (*Intake) ConsumeLogs(context.Context, plog.Logs) error { return nil }
