// Package intake reads telemetry into the model.
package intake

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// Settings are the settings of an Intake.
type Settings struct{}

// Intake reads telemetry into a Store.
type Intake struct{}

// New returns an Intake.
func New(*model.Store, Settings) *Intake { return &Intake{} }

// ConsumeTraces reads spans.
func (*Intake) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }

// ConsumeMetrics reads points.
func (*Intake) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }

// ConsumeLogs reads records.
func (*Intake) ConsumeLogs(context.Context, plog.Logs) error { return nil }
