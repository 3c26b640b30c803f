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
	defaultMaxSeries         = 100_000
	defaultMaxRuns           = 200
	defaultSlowThreshold     = time.Second
	defaultInitialZero       = 15 * time.Second
	defaultFirstStepTimeout  = 30 * time.Minute

	// minFlushInterval keeps a mistyped unit ("15ms" for "15s") from turning
	// the connector into a load on its back end.
	minFlushInterval = 100 * time.Millisecond
)

// Histograms says what buckets histograms have.
type Histograms string

// Values of Histograms.
const (
	HistogramsExplicit    Histograms = "explicit"
	HistogramsExponential Histograms = "exponential"
)

// Config is what the user may set under `ml_metrics:`.
type Config struct {
	// FlushInterval is the time between two emissions of all live series, as
	// a duration such as "15s". The default is 15 s, the least is 100 ms.
	// What came in since the last emission is emitted once more on shutdown.
	FlushInterval time.Duration `mapstructure:"flush_interval"`

	// InitialZero is how long a new counter or histogram is emitted as zero before
	// it is emitted with what it has counted, as a duration such as "15s". What
	// scrapes less often than that misses the zero: increase() then leaves out
	// what was counted before the first scrape, and a counter that begins anew
	// with a restart of the collector, and overtakes its old value before the
	// next scrape, looks as if it had gone on. It must not be negative. The
	// default is 15 s; 0 emits the value at once.
	InitialZero time.Duration `mapstructure:"initial_zero"`

	// MetricsExpiration is how long a stream lives on after the last span
	// that changed it; later it is no longer emitted, and it starts at zero
	// with a new start time if it comes back. A run is live as long; while its
	// processes hold GPUs, nothing of it expires. It must be 0 or at least
	// flush_interval. The default is 1 h; 0 means that
	// nothing ever expires, so that max_series and max_runs are reached once
	// and for all.
	MetricsExpiration time.Duration `mapstructure:"metrics_expiration"`

	// MaxSeries is the largest number of series that Prometheus shows for the
	// live streams, which bounds the memory as well: a histogram's stream has one
	// for each bucket, its sum and its count. Beyond it, new streams of a counter or histogram are added up
	// in one stream per metric that has otel.metric.overflow=true and no
	// other label, and new streams of a gauge are dropped; both are counted.
	// The default is 100000. There is no "unlimited": it must be at least 1.
	MaxSeries int `mapstructure:"max_series"`

	// MaxRuns is the largest number of live runs that have streams of their
	// own. A new run takes the place of one that has ended, or else of one that
	// is silent and holds no GPU. Where there is none, the new run's counters and histograms are added up per
	// service without the run's labels, with otel.metric.overflow=true, and
	// its gauges are dropped; both are counted. The default is 200. 0 means
	// that no run ever gets a label, and that gauges of runs are not kept.
	MaxRuns int `mapstructure:"max_runs"`

	// FirstStepTimeout is how long a run whose processes hold GPUs may take until
	// its first step, as a duration such as "30m". One that takes longer and has
	// sent no span of training for 5 minutes is stalled. GPUs are known only
	// where the connector is an exporter of the pipeline of the GPUs' metrics. It
	// must not be negative. The default is 30 min; 0 means that a run before its
	// first step is never stalled.
	FirstStepTimeout time.Duration `mapstructure:"first_step_timeout"`

	// Histograms says what buckets histograms have: "explicit", those of
	// series.md, or "exponential", eight between a value and its double. The
	// prometheus exporter shows exponential buckets as a native histogram, and
	// only to a scrape in protobuf; a scrape in text has the sum and the count.
	// The default is "explicit".
	Histograms Histograms `mapstructure:"histograms"`

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
		InitialZero:       defaultInitialZero,
		MetricsExpiration: defaultMetricsExpiration,
		MaxSeries:         defaultMaxSeries,
		MaxRuns:           defaultMaxRuns,
		FirstStepTimeout:  defaultFirstStepTimeout,
		Histograms:        HistogramsExplicit,
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
	if c.InitialZero < 0 {
		errs = append(errs, fmt.Errorf(`"initial_zero" is %s, must be 0 (the value at once) or more`, c.InitialZero))
	}
	if c.FirstStepTimeout < 0 {
		errs = append(errs, fmt.Errorf(`"first_step_timeout" is %s, must be 0 (never stalled before the first step) or more`, c.FirstStepTimeout))
	}
	if c.Histograms != HistogramsExplicit && c.Histograms != HistogramsExponential {
		errs = append(errs, fmt.Errorf(`"histograms" is %q, must be %q or %q`, c.Histograms, HistogramsExplicit, HistogramsExponential))
	}
	if c.SlowThreshold < 0 {
		errs = append(errs, fmt.Errorf(`"slow_threshold" is %s, must be 0 (no call is slow) or more`, c.SlowThreshold))
	}
	return errors.Join(errs...)
}
