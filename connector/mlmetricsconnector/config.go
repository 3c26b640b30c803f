package mlmetricsconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
)

const (
	defaultFlushInterval     = 15 * time.Second
	defaultMetricsExpiration = time.Hour
	defaultMaxSeries         = 20_000
	defaultMaxRuns           = 200
	defaultSlowThreshold     = time.Second

	// minFlushInterval keeps a mistyped unit ("15ms" for "15s") from turning
	// the connector into a load on its back end.
	minFlushInterval = 100 * time.Millisecond
)

// Config is what the user may set under `ml_metrics:`.
type Config struct {
	// FlushInterval is the time between two emissions of all live series, as
	// a duration such as "15s". The default is 15 s, the least is 100 ms.
	// What came in since the last emission is emitted once more on shutdown.
	FlushInterval time.Duration `mapstructure:"flush_interval"`

	// MetricsExpiration is how long a stream lives on after the last span
	// that changed it; later it is no longer emitted, and it starts at zero
	// with a new start time if it comes back. A run is live as long. It must
	// be 0 or at least flush_interval. The default is 1 h; 0 means that
	// nothing ever expires, so that max_series and max_runs are reached once
	// and for all.
	MetricsExpiration time.Duration `mapstructure:"metrics_expiration"`

	// MaxSeries is the largest number of live streams, which bounds the
	// memory. Beyond it, new streams of a counter or histogram are added up
	// in one stream per metric that has otel.metric.overflow=true and no
	// other label, and new streams of a gauge are dropped; both are counted.
	// The default is 20000. There is no "unlimited": it must be at least 1.
	MaxSeries int `mapstructure:"max_series"`

	// MaxRuns is the largest number of live runs that have streams of their
	// own. Beyond it, a new run's counters and histograms are added up per
	// service without the run's labels, with otel.metric.overflow=true, and
	// its gauges are dropped; both are counted. The default is 200. 0 means
	// that no run ever gets a label, and that gauges of runs are not kept.
	MaxRuns int `mapstructure:"max_runs"`

	// SlowThreshold is the time that a call may take, as a duration such as
	// "1s". One that takes longer is counted in ml.calls.slow as well. It must
	// not be negative. The default is 1 s, which is Snakepit's own; 0 means
	// that no call is slow, and there is no ml.calls.slow.
	SlowThreshold time.Duration `mapstructure:"slow_threshold"`

	// GenAIMetrics adds the metrics of the GenAI semantic conventions for
	// requests to models: gen_ai.client.token.usage and
	// gen_ai.client.operation.duration from the spans of who asks,
	// gen_ai.server.request.duration, gen_ai.server.time_to_first_token and
	// gen_ai.server.time_per_output_token from those of who answers. It is off
	// by default, since many clients send them themselves: for these the
	// connector is silent if it also is an exporter of the pipeline of their
	// metrics, and else each metric has two writers.
	GenAIMetrics bool `mapstructure:"genai_metrics"`

	// Exemplars adds the trace and span id of a span to counters, of the newest
	// since the last emission, and to histograms, of up to four in buckets of
	// their own. Nothing else of a span is in them. It is on by default.
	Exemplars bool `mapstructure:"exemplars"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		FlushInterval:     defaultFlushInterval,
		MetricsExpiration: defaultMetricsExpiration,
		MaxSeries:         defaultMaxSeries,
		MaxRuns:           defaultMaxRuns,
		SlowThreshold:     defaultSlowThreshold,
		Exemplars:         true,
	}
}

// Validate names every key whose value is not allowed, with what is.
func (c *Config) Validate() error {
	var errs []error
	if c.FlushInterval < minFlushInterval {
		errs = append(errs, fmt.Errorf(`"flush_interval" is %s, must be at least %s`, c.FlushInterval, minFlushInterval))
	}
	if c.MetricsExpiration < 0 || c.MetricsExpiration != 0 && c.MetricsExpiration < c.FlushInterval {
		errs = append(errs, fmt.Errorf(`"metrics_expiration" is %s, must be 0 (never) or at least "flush_interval" (%s)`, c.MetricsExpiration, c.FlushInterval))
	}
	if c.MaxSeries < 1 {
		errs = append(errs, fmt.Errorf(`"max_series" is %d, must be at least 1`, c.MaxSeries))
	}
	if c.MaxRuns < 0 {
		errs = append(errs, fmt.Errorf(`"max_runs" is %d, must not be negative`, c.MaxRuns))
	}
	if c.SlowThreshold < 0 {
		errs = append(errs, fmt.Errorf(`"slow_threshold" is %s, must be 0 (no call is slow) or more`, c.SlowThreshold))
	}
	return errors.Join(errs...)
}
