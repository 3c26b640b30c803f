package mlmetricsconnector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/spans"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// telemetry reports about the connector itself.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	// id is that of the connector.
	id attribute.KeyValue

	// left counts what notices publishes.
	left shared.Tally
}

func newTelemetry(set connector.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create the connector's telemetry: %w", err)
	}
	return &telemetry{builder: builder, id: attribute.String("connector", set.ID.String())}, nil
}

func (t *telemetry) observe(store *streams.Store) error {
	own := metric.WithAttributes(t.id)
	return errors.Join(
		t.builder.RegisterConnectorMlMetricsStreamsCallback(shared.Gauge(store.Streams, own)),
		t.builder.RegisterConnectorMlMetricsSeriesCallback(shared.Gauge(store.Series, own)),
		t.builder.RegisterConnectorMlMetricsRunsCallback(shared.Gauge(store.Runs, own)),
		t.builder.RegisterConnectorMlMetricsLimitUseCallback(func(_ context.Context, o metric.Float64Observer) error {
			series, runs := store.Use(time.Now())
			o.Observe(series, metric.WithAttributes(t.id, attribute.String("limit", overMaxSeries)))
			o.Observe(runs, metric.WithAttributes(t.id, attribute.String("limit", overMaxRuns)))
			return nil
		}))
}

// record counts what was skipped, and what was beyond a limit.
func (t *telemetry) record(ctx context.Context, duplicates int64, skipped spans.Skipped, over *streams.Overflowed) {
	t.count(ctx, t.builder.ConnectorMlMetricsSkipped, duplicates, attribute.String("reason", "duplicate_span"))
	t.count(ctx, t.builder.ConnectorMlMetricsSkipped, skipped.OutOfRange, attribute.String("reason", "out_of_range"))
	t.count(ctx, t.builder.ConnectorMlMetricsSkipped, skipped.Clamped, attribute.String("reason", "negative_queue_time"))
	t.count(ctx, t.builder.ConnectorMlMetricsRepairedNames, skipped.Repaired)
	t.overflow(ctx, overMaxSeries, over.Series.Swap(0))
	t.overflow(ctx, overMaxRuns, over.Runs.Swap(0))
}

// count adds n to a counter of the connector, with more labels if there are any.
func (t *telemetry) count(ctx context.Context, counter metric.Int64Counter, n int64, labels ...attribute.KeyValue) {
	if n > 0 {
		counter.Add(ctx, n, metric.WithAttributes(append(labels, t.id)...))
	}
}

// overflow counts updates beyond a limit.
func (t *telemetry) overflow(ctx context.Context, limit string, updates int64) {
	t.count(ctx, t.builder.ConnectorMlMetricsOverflowedUpdates, updates, attribute.String("limit", limit))
	t.leave(limit, updates)
}

// leave adds n to what is left out for a reason.
func (t *telemetry) leave(reason string, n int64) {
	if n > 0 {
		t.left.Add(reason, n)
	}
}

// Reasons for what is left out.
const (
	overMaxSeries   = "max_series"
	overMaxRuns     = "max_runs"
	evictedRuns     = "evicted"
	overMaxChanges  = "changes"
	overMaxProblems = "problems"
	overMaxDumps    = "dumps"
	lostRecords     = "records"
)

// notices returns how often a limit was reached.
func (t *telemetry) notices(cfg *Config, id string) []shared.Notice {
	moreRuns := fmt.Sprintf("%s: {max_runs: %d}", id, max(2*cfg.MaxRuns, defaultMaxRuns))
	notices := map[string]shared.Notice{
		overMaxSeries: {
			Kind: "limit", What: "Updates of new series",
			Why: fmt.Sprintf("There are max_series (%d) series already; counters were added up without labels, gauges dropped.", cfg.MaxSeries),
			Fix: fmt.Sprintf("%s: {max_series: %d}", id, 2*cfg.MaxSeries),
		},
		overMaxRuns: {
			Kind: "limit", What: "Updates of new runs", Fix: moreRuns,
			Why: fmt.Sprintf("There are max_runs (%d) runs that have not ended; counters were added up by service, gauges dropped.", cfg.MaxRuns),
		},
		evictedRuns: {
			Kind: "limit", What: "Ended and silent runs", Fix: moreRuns,
			Why: fmt.Sprintf("New runs took their place, because there are at most max_runs (%d).", cfg.MaxRuns),
		},
		overMaxProblems: {Kind: "limit", What: "Problems", Why: "Too many problems are open, or too many of one run or service."},
		overMaxChanges:  {Kind: "limit", What: "Values that may change", Why: "Too many values of services, runs and hosts are compared already."},
		overMaxDumps:    {Kind: "limit", What: "Flight Recorder dumps", Why: "Too many dumps of the last minutes, or runs with dumps, are compared already."},
		lostRecords:     {Kind: "refused", What: "Records of problems and changes", Why: "A pipeline of logs refused them."},
	}
	return t.left.Notices(func(reason string) (shared.Notice, bool) {
		notice, known := notices[reason]
		return notice, known
	})
}
