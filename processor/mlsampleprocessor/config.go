package mlsampleprocessor

import (
	"errors"
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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
	all := []error{
		shared.Between("steps::one_in", c.Steps.OneIn, 1, maxOneIn),
		shared.Between("calls::one_in", c.Calls.OneIn, 1, maxOneIn),
		shared.Between("steps::first", c.Steps.First, 0, maxSteps),
		shared.Between("steps::before", c.Steps.Before, 0, maxSteps),
		shared.Between("wait", c.Wait, time.Second, 10*time.Minute),
		shared.Between("max_bytes", c.MaxBytes, 1<<20, math.MaxInt64),
	}
	for section, of := range map[string][2]float64{"steps": {c.Steps.SlowQuantile, c.Steps.Slow}, "calls": {c.Calls.SlowQuantile, c.Calls.Slow}} {
		quantile, times := of[0], of[1]
		all = append(all,
			shared.Check(quantile >= 0 && quantile < 1, `"%s::slow_quantile" is %v; it must be at least 0 and less than 1`, section, quantile),
			shared.Check(times == 0 || times > 1 && times <= maxOneIn, `"%s::slow" is %v; it must be 0, or more than 1 and at most 1000000`, section, times))
	}
	return errors.Join(all...)
}
