package mlenrichprocessor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxTraining bounds the entries of training: each resource is held against
// them.
const maxTraining = 256

// TrainingConfig says what the steps of a training job are made of, which its
// telemetry does not say. The numbers become attributes of the resource, where
// it does not have them itself.
type TrainingConfig struct {
	// Service is the service.name of the job's processes; one that ends in "*"
	// is the beginning of several. It has no default.
	Service string `mapstructure:"service"`

	// Job is the job's ml.job.name or ml.job.id; one that ends in "*" is the
	// beginning of several. The default is empty: every job of the service.
	Job string `mapstructure:"job"`

	// Per says what TokensPerStep and SamplesPerStep are of: rank, which is
	// the default, or job, for all ranks together. They are divided by
	// ml.world_size then, and left out where a resource does not say that.
	Per string `mapstructure:"per"`

	// TokensPerStep is how many tokens one optimizer step trains on, all of
	// its micro-batches together. The default is zero: not known.
	TokensPerStep float64 `mapstructure:"tokens_per_step"`

	// SamplesPerStep is how many samples one optimizer step trains on. The
	// default is zero: not known.
	SamplesPerStep float64 `mapstructure:"samples_per_step"`

	// FLOPsPerToken is how many floating-point operations a token takes,
	// forward and backward: 6 for each parameter of a dense model, and those of
	// attention. The default is zero: not known.
	FLOPsPerToken float64 `mapstructure:"flops_per_token"`
}

// Values of TrainingConfig.Per.
const (
	perRank = "rank"
	perJob  = "job"
)

// Validate says what is wrong with the entry.
func (c *TrainingConfig) Validate() error {
	var errs []error
	if strings.TrimSpace(c.Service) == "" {
		errs = append(errs, fmt.Errorf(`"service" is %q, must be a service's name`, c.Service))
	}
	if pers := []string{perRank, perJob}; c.Per != "" && !slices.Contains(pers, c.Per) {
		errs = append(errs, fmt.Errorf(`"per" is %q, must be one of %s`, c.Per, quoted(pers)))
	}
	known := false
	for _, number := range c.numbers() {
		known = known || number.value != 0
		if !(number.value >= 0) || math.IsInf(number.value, 0) {
			errs = append(errs, fmt.Errorf(`%q is %v, must be a number from 0`, number.key, number.value))
		}
	}
	if !known {
		errs = append(errs, errors.New(`must have one of "tokens_per_step", "samples_per_step", "flops_per_token"`))
	}
	return errors.Join(errs...)
}

// stepNumber is one of an entry's numbers.
type stepNumber struct {
	key   string
	slot  mlattr.Slot
	value float64
	// shared is true where it is divided among ranks.
	shared bool
}

var (
	slotTokensPerStep  = mlattr.SlotOf(mlattr.TokensPerStep)
	slotSamplesPerStep = mlattr.SlotOf(mlattr.SamplesPerStep)
	slotFLOPsPerToken  = mlattr.SlotOf(mlattr.FLOPsPerToken)
)

func (c *TrainingConfig) numbers() [3]stepNumber {
	return [...]stepNumber{
		{"tokens_per_step", slotTokensPerStep, c.TokensPerStep, true},
		{"samples_per_step", slotSamplesPerStep, c.SamplesPerStep, true},
		{"flops_per_token", slotFLOPsPerToken, c.FLOPsPerToken, false},
	}
}

// describes says whether the entry is about a resource.
func (c *TrainingConfig) describes(f *mlattr.Facts) bool {
	return fits(c.Service, f.Text(mlattr.ServiceName)) &&
		(c.Job == "" || fits(c.Job, f.Text(mlattr.JobName)) || fits(c.Job, f.Text(mlattr.JobID)))
}

// fits says whether a name is the wanted one, or begins with it.
func fits(wanted, name string) bool {
	if beginning, open := strings.CutSuffix(wanted, "*"); open {
		return name != "" && strings.HasPrefix(name, beginning)
	}
	return name == wanted
}

// addTraining adds to the facts of a resource what the first entry about it
// says. What the resource says itself stays.
func addTraining(entries []TrainingConfig, f *mlattr.Facts) {
	for i := range entries {
		entry := &entries[i]
		if !entry.describes(f) {
			continue
		}
		ranks := int64(1)
		if entry.Per == perJob {
			ranks, _ = f.Int(mlattr.WorldSize)
		}
		for _, number := range entry.numbers() {
			switch {
			case number.value == 0 || number.shared && ranks <= 0:
			case number.shared:
				f.SetDouble(number.slot, number.value/float64(ranks))
			default:
				f.SetDouble(number.slot, number.value)
			}
		}
		return
	}
}
