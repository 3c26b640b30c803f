package mlsampleprocessor

import (
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// Config is the configuration of the ml_sample processor.
type Config struct {
	// Steps says which training steps are kept.
	Steps StepConfig `mapstructure:"steps"`
	// Calls says which traces without training steps are kept.
	Calls CallConfig `mapstructure:"calls"`
	// DryRun forwards all spans unchanged and at once. The metrics count what
	// would be kept. The default is false.
	DryRun bool `mapstructure:"dry_run"`
	// Wait is how long a unit waits: a step after its end on the first rank, a
	// call after the arrival of its first span. It must be from 1s to 10m. The
	// default is 30s.
	Wait time.Duration `mapstructure:"wait"`
	// MaxBytes limits the memory of what waits, in bytes. Beyond it the oldest
	// units are decided early. It must be at least 1 MiB. The default is 256 MiB.
	MaxBytes int64 `mapstructure:"max_bytes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// StepConfig says which training steps are kept.
type StepConfig struct {
	// OneIn keeps one in so many steps of each run, the same on all ranks. 1
	// keeps all. The default is 100.
	OneIn int64 `mapstructure:"one_in"`
	// SlowQuantile keeps a step that took longer on a rank than this fraction of
	// the run's last 512 steps. It must be less than 1. The default is 0.99; 0
	// keeps none for that.
	SlowQuantile float64 `mapstructure:"slow_quantile"`
	// Slow keeps a step that took longer on a rank than so many times the median
	// of the run's last 512 steps. It must be 0 or more than 1. The default is 3;
	// 0 keeps none for that.
	Slow float64 `mapstructure:"slow"`
	// First keeps so many steps at the beginning of a run and after each restart.
	// It is at most 1000. The default is 5; 0 keeps none for that.
	First int `mapstructure:"first"`
	// Before keeps so many steps before a failure, a stall or a GPU error (XID).
	// It is at most 1000. The default is 20; 0 keeps none for that.
	Before int `mapstructure:"before"`
}

// CallConfig says which traces without training steps are kept.
type CallConfig struct {
	// OneIn keeps one in so many conversations, or traces without one. 1 keeps
	// all. The default is 100.
	OneIn int64 `mapstructure:"one_in"`
	// SlowQuantile is that of StepConfig, compared with the last 512 traces of
	// the same service and operation. Durations are divided by output tokens.
	SlowQuantile float64 `mapstructure:"slow_quantile"`
	// Slow is that of StepConfig, compared as SlowQuantile is.
	Slow float64 `mapstructure:"slow"`
}

// maxOneIn and maxSteps limit what can be configured.
const (
	maxOneIn = 1_000_000
	maxSteps = 1000
)

// Validate returns an error that names the keys with invalid values.
func (c *Config) Validate() error {
	var all []error
	bad := func(ok bool, key string, value any, want string) {
		if !ok {
			all = append(all, fmt.Errorf("%q is %v; it must be %s", key, value, want))
		}
	}
	comparison := func(section string, oneIn int64, quantile, times float64) {
		bad(oneIn >= 1 && oneIn <= maxOneIn, section+"::one_in", oneIn, "from 1 to 1000000")
		bad(quantile >= 0 && quantile < 1, section+"::slow_quantile", quantile, "at least 0 and less than 1")
		bad(times == 0 || times > 1 && times <= maxOneIn, section+"::slow", times, "0, or more than 1 and at most 1000000")
	}
	comparison("steps", c.Steps.OneIn, c.Steps.SlowQuantile, c.Steps.Slow)
	comparison("calls", c.Calls.OneIn, c.Calls.SlowQuantile, c.Calls.Slow)
	bad(c.Steps.First >= 0 && c.Steps.First <= maxSteps, "steps::first", c.Steps.First, "from 0 to 1000")
	bad(c.Steps.Before >= 0 && c.Steps.Before <= maxSteps, "steps::before", c.Steps.Before, "from 0 to 1000")
	bad(c.Wait >= time.Second && c.Wait <= 10*time.Minute, "wait", c.Wait, "from 1s to 10m")
	bad(c.MaxBytes >= 1<<20, "max_bytes", c.MaxBytes, "at least 1048576")
	return errors.Join(all...)
}

// rules returns the configuration in the form that decisions need.
func (c *Config) rules() sample.Config {
	return sample.Config{
		Steps: sample.Limits{OneIn: uint64(c.Steps.OneIn), SlowQuantile: c.Steps.SlowQuantile, Slow: c.Steps.Slow}, // #nosec G115 -- validated
		Calls: sample.Limits{OneIn: uint64(c.Calls.OneIn), SlowQuantile: c.Calls.SlowQuantile, Slow: c.Calls.Slow}, // #nosec G115 -- validated
		First: c.Steps.First, Before: c.Steps.Before, Wait: c.Wait, MaxBytes: c.MaxBytes,
	}
}
