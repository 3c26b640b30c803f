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
	builder                                                               *metadata.TelemetryBuilder
	duplicates, outOfRange, negativeWait, tooManySeries, tooManyRuns, own metric.MeasurementOption

	// left counts what notices publishes.
	left shared.Tally
}

func newTelemetry(set connector.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create the connector's telemetry: %w", err)
	}
	id := attribute.String("connector", set.ID.String())
	with := func(key, value string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(id, attribute.String(key, value)))
	}
	return &telemetry{
		builder:       builder,
		duplicates:    with("reason", "duplicate_span"),
		outOfRange:    with("reason", "out_of_range"),
		negativeWait:  with("reason", "negative_queue_time"),
		tooManySeries: with("limit", "max_series"),
		tooManyRuns:   with("limit", "max_runs"),
		own:           metric.WithAttributeSet(attribute.NewSet(id)),
	}, nil
}

func (t *telemetry) observe(store *streams.Store) error {
	of := func(value func() int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(), t.own)
			return nil
		}
	}
	return errors.Join(
		t.builder.RegisterConnectorMlMetricsStreamsCallback(of(store.Streams)),
		t.builder.RegisterConnectorMlMetricsSeriesCallback(of(store.Series)),
		t.builder.RegisterConnectorMlMetricsRunsCallback(of(store.Runs)),
		t.builder.RegisterConnectorMlMetricsLimitUseCallback(func(_ context.Context, o metric.Float64Observer) error {
			series, runs := store.Use(time.Now())
			o.Observe(series, t.tooManySeries)
			o.Observe(runs, t.tooManyRuns)
			return nil
		}))
}

func (t *telemetry) record(ctx context.Context, duplicates int64, skipped spans.Skipped, over streams.Overflowed) {
	t.count(ctx, t.builder.ConnectorMlMetricsSkipped, duplicates, t.duplicates, "")
	t.count(ctx, t.builder.ConnectorMlMetricsSkipped, skipped.OutOfRange, t.outOfRange, "")
	t.count(ctx, t.builder.ConnectorMlMetricsSkipped, skipped.Clamped, t.negativeWait, "")
	t.count(ctx, t.builder.ConnectorMlMetricsRepairedNames, skipped.Repaired, t.own, "")
	t.count(ctx, t.builder.ConnectorMlMetricsOverflowedUpdates, over.Series, t.tooManySeries, overMaxSeries)
	t.count(ctx, t.builder.ConnectorMlMetricsOverflowedUpdates, over.Runs, t.tooManyRuns, overMaxRuns)
}

// count adds n to a counter, and to what is left out for a reason, if there is one.
func (t *telemetry) count(ctx context.Context, counter metric.Int64Counter, n int64, option metric.MeasurementOption, reason string) {
	if n > 0 {
		counter.Add(ctx, n, option)
		t.leave(reason, n)
	}
}

// leave adds n to what is left out for a reason, if there is one.
func (t *telemetry) leave(reason string, n int64) {
	if n > 0 && reason != "" {
		t.left.Add(reason, n)
	}
}

// evicted counts runs that were replaced by new ones.
func (t *telemetry) evicted(ctx context.Context, n int64) {
	t.count(ctx, t.builder.ConnectorMlMetricsRunsEvicted, n, t.own, evictedRuns)
}

func (t *telemetry) expired(ctx context.Context, n int64) {
	t.count(ctx, t.builder.ConnectorMlMetricsStreamsExpired, n, t.own, "")
}

// Reasons for what is left out.
const (
	overMaxSeries   = "max_series"
	overMaxRuns     = "max_runs"
	evictedRuns     = "evicted"
	overMaxChanges  = "changes"
	overMaxProblems = "problems"
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
		lostRecords:     {Kind: "refused", What: "Records of problems and changes", Why: "A pipeline of logs refused them."},
	}
	return t.left.Notices(func(reason string) (shared.Notice, bool) {
		notice, known := notices[reason]
		return notice, known
	})
}
