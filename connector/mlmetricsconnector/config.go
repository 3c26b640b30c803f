package mlmetricsconnector

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	defaultFlushInterval = 15 * time.Second
	defaultMaxRuns       = 200

	// minDuration refuses a mistyped or forgotten unit: "15ms" for "15s" would overload
	// the back end, and 300 is 300ns.
	minDuration = 100 * time.Millisecond
)

// Config is the configuration of the ml_metrics connector.
type Config struct {
	// FlushInterval is the time between two emissions of all live series, such
	// as "15s". The default is 15 s, the minimum 100 ms. Shutdown emits once more.
	FlushInterval time.Duration `mapstructure:"flush_interval"`

	// InitialZero is how long a new counter or histogram is emitted as zero
	// before its value is emitted, such as "15s". A scrape interval longer than
	// this may miss the zero: increase() then omits what was counted before the
	// first scrape, and a counter that restarts with the collector and exceeds its
	// old value before the next scrape looks like a continuation. The default is
	// 15 s; 0 emits the value at once. It must not be negative.
	InitialZero time.Duration `mapstructure:"initial_zero"`

	// MetricsExpiration is how long a stream lives after the last span that
	// changed it. An expired stream is no longer emitted, and starts at zero with
	// a new start time if it returns. Runs expire after the same time. Nothing of
	// a run expires while its processes hold GPUs. It must be 0 or at least
	// flush_interval. The default is 1 h; 0 means that nothing expires, so that
	// max_series and max_runs stay reached once they are.
	MetricsExpiration time.Duration `mapstructure:"metrics_expiration"`

	// MaxSeries is the limit of series that Prometheus shows for the live
	// streams, and so bounds memory. A histogram's stream has one series for each
	// bucket, its sum and its count. Beyond the limit, new counters and histograms
	// are added to one stream per metric whose only label is
	// otel.metric.overflow=true, and new gauges are dropped; both are counted.
	// The default is 100000, the minimum 1.
	MaxSeries int `mapstructure:"max_series"`

	// MaxRuns is the limit of live runs with streams of their own. Beyond it, a
	// new run replaces one that has ended, else one that is silent and holds no
	// GPU, of senders and services that have more than their share. If there is none, the new run's counters and histograms are added up
	// per service without the run's labels, with otel.metric.overflow=true, and
	// its gauges are dropped; both are counted. The default is 200. With 0 no run
	// has labels, and gauges of runs are not kept.
	MaxRuns int `mapstructure:"max_runs"`

	// FirstStepTimeout is how long a run whose processes hold GPUs may take until
	// its first step, such as "30m". A run that takes longer and has sent no
	// training span for stall_timeout is stalled. GPUs are known only if the connector
	// is an exporter of the pipeline of GPU metrics. The default is 30 min; 0
	// means that a run never stalls before its first step. It must not be
	// negative.
	FirstStepTimeout time.Duration `mapstructure:"first_step_timeout"`

	// StallTimeout is the least time without a training span after which a run
	// that has taken a step is stalled, or silent if it holds no GPU, such as
	// "5m". A run whose steps are long is given five typical steps. The default
	// is 5 min. It must be positive.
	StallTimeout time.Duration `mapstructure:"stall_timeout"`

	// IdleTimeout is how long a GPU whose memory a workload holds may do nothing
	// before ml.problem.onset.timestamp reports it as held_idle, such as "30m".
	// The default is 30 min; 0 means never. It must not be negative.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// Identities is the id of a processor ml_guard with the section identities, such as
	// ml_guard/identities: what it does not admit becomes no label. It must be in a pipeline,
	// of whatever signal, and the extension ml_state or ml_guard must be in service::extensions.
	// By default there is none, and each identity becomes a label, within max_runs and
	// max_series. Unlike the processor in the pipeline of the spans, this copies no request.
	Identities *component.ID `mapstructure:"identities"`

	// GenAIMetrics adds the metrics of the GenAI semantic conventions:
	// gen_ai.client.token.usage and gen_ai.client.operation.duration from client
	// spans, and gen_ai.server.request.duration, gen_ai.server.time_to_first_token
	// and gen_ai.server.time_per_output_token from server spans. The default is
	// false, because many clients send these metrics themselves. The connector
	// does not write what a client sends if it is also an exporter of the pipeline
	// of clients' metrics; otherwise each such metric has two writers.
	GenAIMetrics bool `mapstructure:"genai_metrics"`

	// SpanMetrics adds traces.span.metrics.calls and traces.span.metrics.duration: rates,
	// errors and durations of all spans, under the names of the connector span_metrics.
	// With both, each span counts twice. The default is false.
	SpanMetrics bool `mapstructure:"span_metrics"`

	// Prices configures the costs of requests to models and of GPUs.
	Prices PricesConfig `mapstructure:"prices"`

	// InstanceLabel is the name of an attribute, such as "collector_instance_id",
	// that every series and every record of a problem or a change gets. Its value is
	// the collector's service.instance.id. It keeps the series of several collectors
	// apart that send them to one back end by OTLP or remote write. The default is
	// empty: there is no such attribute, and a scrape tells collectors apart by the
	// label instance. It must be a letter followed by letters, digits, "_" and ".",
	// and no label that a series has.
	InstanceLabel string `mapstructure:"instance_label"`

	// Storage is the id of a storage extension, such as "file_storage", that keeps
	// over restarts the counts of all counters and histograms, what changes are compared
	// with, the key of the hashes of prompts, tools and settings, and the open problems. By
	// default there is none: after a restart, counters begin at zero, what telemetry shows
	// first is no change, and problems begin anew.
	Storage *component.ID `mapstructure:"storage"`

	// StateDirectory is a directory that keeps the same without an extension, in files
	// of which those of the counts are written each second. It is created if need be, and must not be writable for
	// others. If it cannot be used, the connector starts nevertheless, and logs it. It is
	// not used with Storage. By default there is none.
	StateDirectory string `mapstructure:"state_directory"`

	// Thresholds has the least amount from which on a problem of a kind begins: of "slow",
	// "slow_requests" and "costly" how many times the usual it is, of "failing", "tool_errors",
	// "truncated" and "tail_latency" which share. It raises what the rule of the kind has, and
	// cannot lower it. The default is none: the rules alone decide.
	Thresholds map[string]float64 `mapstructure:"thresholds"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// thresholds are the limits of Config.Thresholds by the kind of problem: what its rule has, and
// the most. Where this is more than 1, it is a multiple of the usual.
var thresholds = map[string]struct{ least, most float64 }{
	mlattr.ProblemSlow: {1.035, 100}, mlattr.ProblemSlowRequests: {1.75, 100}, mlattr.ProblemCostly: {1.5, 100},
	mlattr.ProblemFailing: {0.05, 1}, mlattr.ProblemToolErrors: {0.1, 1}, mlattr.ProblemTruncated: {0.1, 1}, mlattr.ProblemTailLatency: {0.02, 1},
}

// PricesConfig has the prices of models and GPUs, in US dollars.
type PricesConfig struct {
	// File is a file with the prices of models in US dollars, in the form of
	// data.json or data_slim.json of genai-prices (version 2). Requests whose
	// client states no cost get one by it. It is read at the start, and again
	// within a minute of each change; its day is that of the change. A file that
	// cannot be read is reported, and the earlier prices stay. The default is
	// empty: only stated costs are known.
	File string `mapstructure:"file"`

	// GPUHour has the price of a GPU in US dollars an hour, from 0 to 1,000,000, by
	// whole words of hw.name in any case, such as "H100 PCIe". The longest match
	// counts. A MIG device has the word MIG. A GPU without a match has no price. The
	// default is none, the limit 256 entries.
	GPUHour map[string]float64 `mapstructure:"gpu_hour"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Limits of PricesConfig.GPUHour.
const (
	maxGPUPrices = 256
	maxGPUName   = 128
	maxGPUPrice  = 1e6
)

func createDefaultConfig() component.Config {
	return &Config{
		FlushInterval:     defaultFlushInterval,
		InitialZero:       15 * time.Second,
		MetricsExpiration: time.Hour,
		MaxSeries:         100_000,
		MaxRuns:           defaultMaxRuns,
		FirstStepTimeout:  30 * time.Minute,
		StallTimeout:      5 * time.Minute,
		IdleTimeout:       30 * time.Minute,
	}
}

// Validate returns an error that names each key with an invalid value and what
// the key accepts.
func (c *Config) Validate() error {
	n := len(c.Prices.GPUHour)
	errs := []error{
		shared.Check(n <= maxGPUPrices, `"prices": "gpu_hour" has %d entries, must have at most %d`, n, maxGPUPrices),
		shared.Check(c.FlushInterval >= minDuration, `"flush_interval" is %s, must be at least %s`, c.FlushInterval, minDuration),
		shared.Check(c.MetricsExpiration == 0 || c.MetricsExpiration >= max(c.FlushInterval, 0),
			`"metrics_expiration" is %s, must be 0 (never) or at least "flush_interval" (%s)`, c.MetricsExpiration, c.FlushInterval),
		shared.Check(c.MaxSeries >= 1, `"max_series" is %d, must be at least 1`, c.MaxSeries),
		shared.Check(c.MaxRuns >= 0, `"max_runs" is %d, must not be negative`, c.MaxRuns),
		shared.Check(c.InitialZero >= 0, `"initial_zero" is %s, must be 0 (the value at once) or more`, c.InitialZero),
		shared.Check(c.FirstStepTimeout == 0 || c.FirstStepTimeout >= minDuration,
			`"first_step_timeout" is %s, must be 0 (never stalled before the first step) or at least %s`, c.FirstStepTimeout, minDuration),
		shared.Check(c.StallTimeout >= minDuration, `"stall_timeout" is %s, must be at least %s`, c.StallTimeout, minDuration),
		shared.Check(c.IdleTimeout == 0 || c.IdleTimeout >= minDuration,
			`"idle_timeout" is %s, must be 0 (an idle GPU is no problem) or at least %s`, c.IdleTimeout, minDuration),
		shared.Check(instanceLabels.MatchString(c.InstanceLabel),
			`"instance_label" is %q, must be empty or a letter followed by letters, digits, "_" and ".", at most 128`, c.InstanceLabel),
		shared.Check(!taken(c.InstanceLabel), `"instance_label" is %q, must not be a label that series have, nor begin with ml or otel`, c.InstanceLabel),
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Thresholds)) {
		if is, of := c.Thresholds[kind], thresholds[kind]; of.most == 0 {
			errs = append(errs, fmt.Errorf(`"thresholds" has %.40q, must have kinds of %s`, kind, slices.Sorted(maps.Keys(thresholds))))
		} else if !(is >= of.least && is <= of.most) {
			errs = append(errs, fmt.Errorf(`"thresholds": %q is %v, must be between %v and %v`, kind, is, of.least, of.most))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Prices.GPUHour)) {
		of := c.Prices.GPUHour[name]
		errs = append(errs,
			shared.Check(of >= 0 && of <= maxGPUPrice, `"prices": "gpu_hour" has the price %v for %.40q, must be between 0 and %v`, of, name, float64(maxGPUPrice)),
			shared.Check(strings.TrimSpace(name) != "" && len(name) <= maxGPUName, `"prices": "gpu_hour" has the name %.40q, must have between 1 and %d bytes`, name, maxGPUName))
	}
	return errors.Join(errs...)
}

// timeouts returns those by which runs are judged.
func (c *Config) timeouts() runs.Timeouts {
	return runs.Timeouts{FirstStep: c.FirstStepTimeout, Stall: c.StallTimeout, Idle: c.IdleTimeout}
}

// instanceLabels matches names for Config.InstanceLabel.
var instanceLabels = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_.]{0,127})?$`)

// reservedLabels are those that Prometheus and its exporters write.
var reservedLabels = []string{"job", "instance", "le", "quantile", "service_name", "service_namespace"}

// taken reports whether series may have a label, by its name as Prometheus writes it.
func taken(name string) bool {
	shown := func(label string) string { return strings.ReplaceAll(label, ".", "_") }
	labels := slices.Concat(reservedLabels, series.RunLabels)
	for i := range series.All {
		labels = append(labels, series.All[i].Labels...)
	}
	return strings.HasPrefix(shown(name), "ml_") || strings.HasPrefix(shown(name), "otel_") ||
		slices.ContainsFunc(labels, func(label string) bool { return shown(label) == shown(name) })
}

// writerOf returns the attribute that tells this collector's series from those of
// others; its name is empty if the configuration asks for none. It returns an error
// if the collector has no service.instance.id.
func writerOf(set component.TelemetrySettings, cfg *Config) (streams.Label, error) {
	if cfg.InstanceLabel == "" {
		return streams.Label{}, nil
	}
	if value := mlattr.TextAt(set.Resource.Attributes(), series.Instance); value != "" {
		return streams.Label{Name: cfg.InstanceLabel, Value: value}, nil
	}
	return streams.Label{}, fmt.Errorf(`"instance_label" is %q, but the collector has no %s: set it under service::telemetry::resource`, cfg.InstanceLabel, series.Instance)
}
