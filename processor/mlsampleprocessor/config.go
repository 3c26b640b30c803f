package mlsampleprocessor

import (
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// Config is the configuration of the ml_sample processor.
type Config struct {
	// Config says which units are kept, and what may wait.
	sample.Config `mapstructure:",squash"`
	// DryRun forwards all spans unchanged and at once. The metrics count what
	// would be kept. The default is false.
	DryRun bool `mapstructure:"dry_run"`
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
