package rate

import (
	"errors"
	"math"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Training describes the optimizer steps of training jobs.
type Training []TrainingConfig

// TrainingConfig describes the steps of a training job. The numbers become
// attributes of the resource, unless it has them itself.
type TrainingConfig struct {
	// Service is the service.name of the job's processes. One that ends in "*"
	// is a prefix. It is required.
	Service string `mapstructure:"service"`

	// Job is the job's ml.job.name or ml.job.id. One that ends in "*" is a
	// prefix. The default is empty: every job of the service.
	Job string `mapstructure:"job"`

	// Per is what TokensPerStep and SamplesPerStep count for: one rank ("rank",
	// the default), or all ranks together ("job"). The numbers of a job are
	// divided by ml.world_size, and ignored for a resource without it.
	Per string `mapstructure:"per"`

	// TokensPerStep is how many tokens one optimizer step trains on, with all
	// its micro-batches. The default is zero: unknown.
	TokensPerStep float64 `mapstructure:"tokens_per_step"`

	// SamplesPerStep is how many samples one optimizer step trains on. The
	// default is zero: unknown.
	SamplesPerStep float64 `mapstructure:"samples_per_step"`

	// FLOPsPerToken is how many floating-point operations a token takes,
	// forward and backward: 6 for each parameter of a dense model, plus those
	// of attention. The default is zero: unknown.
	FLOPsPerToken float64 `mapstructure:"flops_per_token"`
}

// Values of TrainingConfig.Per.
const (
	perRank = "rank"
	perJob  = "job"
)

// Validate reports everything that is wrong with the entry.
func (c *TrainingConfig) Validate() error {
	errs := []error{
		shared.Check(strings.TrimSpace(c.Service) != "", `"service" is %q, must be a service's name`, c.Service),
		shared.Check(c.Per == "" || c.Per == perRank || c.Per == perJob, `"per" is %q, must be one of %q, %q`, c.Per, perRank, perJob),
	}
	known := false
	for _, number := range c.numbers() {
		known = known || number.value != 0
		errs = append(errs, shared.Check(number.value >= 0 && !math.IsInf(number.value, 0), `%q is %v, must be a number from 0`, number.key, number.value))
	}
	return errors.Join(append(errs, shared.Check(known, `must have one of "tokens_per_step", "samples_per_step", "flops_per_token"`))...)
}

// stepNumber is one of an entry's numbers.
type stepNumber struct {
	key   string
	slot  vocabulary.Slot
	value float64
	// shared is true if it is divided among ranks.
	shared bool
}

func (c *TrainingConfig) numbers() [3]stepNumber {
	return [...]stepNumber{
		{"tokens_per_step", vocabulary.SlotTokensPerStep, c.TokensPerStep, true},
		{"samples_per_step", vocabulary.SlotSamplesPerStep, c.SamplesPerStep, true},
		{"flops_per_token", vocabulary.SlotFLOPsPerToken, c.FLOPsPerToken, false},
	}
}

// matches reports whether the entry is about a resource.
func (c *TrainingConfig) matches(f *vocabulary.Facts) bool {
	return matchesName(c.Service, f.TextAt(vocabulary.SlotServiceName)) &&
		(c.Job == "" || matchesName(c.Job, f.TextAt(vocabulary.SlotJobName)) || matchesName(c.Job, f.TextAt(vocabulary.SlotJobID)))
}

// matchesName reports whether a name is the wanted one, or has its prefix.
func matchesName(wanted, name string) bool {
	if prefix, open := strings.CutSuffix(wanted, "*"); open {
		return name != "" && strings.HasPrefix(name, prefix)
	}
	return name == wanted
}

// maxJobTokens is more than any step of a job has.
const maxJobTokens = 1 << 40

// AddJobTokens adds to the facts of a resource the tokens of a step of all ranks:
// the batch size of the job multiplied by the length of a sequence, if the
// client states both and not their product.
func AddJobTokens(f *vocabulary.Facts) {
	batch, batched := f.IntAt(vocabulary.SlotJobBatchSize)
	length, ok := f.IntAt(vocabulary.SlotSequenceLength)
	tokens := float64(batch) * float64(length)
	if !batched || !ok || tokens <= 0 || tokens > maxJobTokens || f.At(vocabulary.SlotJobTokensPerStep) != nil {
		return
	}
	f.SetDouble(vocabulary.SlotJobTokensPerStep, tokens)
	f.SetText(vocabulary.SlotJobTokensBasis, mlattr.BasisBatch)
}

// AddTraining adds to the facts of a resource the numbers of the first entry
// that matches it. The resource's own numbers stay.
func (t Training) AddTraining(f *vocabulary.Facts) {
	for i := range t {
		entry := &t[i]
		if !entry.matches(f) {
			continue
		}
		ranks := int64(1)
		if entry.Per == perJob {
			ranks, _ = f.IntAt(vocabulary.SlotWorldSize)
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
