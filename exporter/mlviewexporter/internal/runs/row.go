package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/words"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Row returns the row of a run.
func (r *Run) Row(now time.Time) api.Run {
	row := api.Run{
		Key: r.Key, ID: r.ID, Service: r.Service, Team: r.Namespace,
		Job: cmp.Or(r.JobName, r.Job), Owner: r.in.OwnerOf(r),
		State: r.CurrentState(now), Needs: r.Needs,
		FirstSeen: r.FirstSeen.UTC(), LastSeen: r.LastSeen.UTC(),
		Ranks: r.ProcessCount(), Version: r.version, Simulated: r.IsSimulated(), Recorded: r.IsRecorded(),
		LastCheckpoint: api.TimeOf(r.Checkpoint),
		Hosts:          r.hostNames(),
	}
	if !r.News.Last.IsZero() {
		row.LastSeen = r.News.Last.UTC()
	}
	if r.News.Silent(now) && !mlattr.RunOver(row.State) {
		row.NoDataSince = api.TimeOf(r.News.Last)
	}
	r.AddNumbers(&row, now)
	r.addGPUs(&row)
	r.explain(&row)
	return row
}

// addGPUs adds the GPUs of a run.
func (r *Run) addGPUs(row *api.Run) {
	for _, held := range r.GPUs {
		row.GPUKeys = append(row.GPUKeys, held.GPU.Key)
	}
}

// IsSimulated reports whether any data of the run or of its GPUs is simulated or
// recorded.
func (r *Run) IsSimulated() bool {
	return r.simulated || slices.ContainsFunc(r.GPUs, func(held Held) bool { return held.GPU.Simulated })
}

// IsRecorded reports whether nothing but GPUs of the run is, and these come from a
// recording.
func (r *Run) IsRecorded() bool {
	return r.IsSimulated() && !r.simulated && !slices.ContainsFunc(r.GPUs, func(held Held) bool { return held.GPU.Simulated && !held.GPU.Recorded() })
}

// explain says what would give numbers that are missing.
func (r *Run) explain(row *api.Run) {
	switch {
	case row.TokenRate != nil || row.Tokens != nil || row.Steps == nil:
	case row.Samples != nil:
		why(row, "token_rate", "counts samples, not tokens. Nothing needs to be set.")
	default:
		why(row, "token_rate", "not sent: its steps carry no number of tokens. In the collector's configuration file, under processors, set "+
			FixStepTokens(row.Service)+" and restart the collector. "+SizeOfAStep)
	}
}

// why says why a number is missing.
func why(row *api.Run, number, reason string) {
	if row.Why == nil {
		row.Why = make(map[string]string)
	}
	row.Why[number] = reason
}

// sums collects the numbers of a run from its streams.
type sums struct {
	steps, batches, samples, tokens, errors, attempts series.Total
	stepRate, batchRate, sampleRate, tokenRate        series.Total
	epoch, learningRate, loss, validation, lastStep   series.Total
	cost, gpuPrice                                    series.Total

	lossIsNoNumber bool
	// gpus and utilization are those that each collector knows.
	gpus, utilization []*series.Stream
}

// AddNumbers adds what metrics say of a run.
func (r *Run) AddNumbers(row *api.Run, now time.Time) {
	var all sums
	scope := r.lossScope(now)
	side := sideOf(r.streams)
	writers := r.rankWriters()
	for _, one := range r.streams {
		all.addTotal(one, side, now)
		if one.Live(now) {
			all.addGPUs(one)
		}
		if !r.ofRankWriter(one, writers) {
			continue
		}
		if one.Series == series.Loss && one.NoNumber && now.Sub(one.At) <= series.GoneAfter {
			all.lossIsNoNumber = true
		}
		if !one.Live(now) {
			continue
		}
		switch one.Series {
		case series.Epoch:
			all.epoch.Add(one.Value)
		case series.LearningRate:
			all.learningRate.Add(one.Value)
		case series.Loss:
			switch {
			case one.Labels.Own == scope:
				all.loss.Add(one.Value)
			case one.Labels.Own[0] == scopeValidation && one.Labels.Own[1] == scope[1]:
				all.validation.Add(one.Value)
			}
		}
		r.addSeries(row, one)
	}
	if writers != nil {
		all.addSteps(&r.runStreams, now)
	}
	row.Steps, row.StepRate = all.steps.Largest(), all.stepRate.Largest()
	if row.Steps == nil {
		row.Steps, row.StepRate = all.batches.Largest(), all.batchRate.Largest()
	}
	row.Cost, row.GPUPrice = all.cost.All(), all.gpuPrice.All()
	row.Samples, row.SampleRate = all.samples.All(), all.sampleRate.All()
	row.Tokens, row.TokenRate = all.tokens.All(), all.tokenRate.All()
	r.ratesOver = max(all.sampleRate.Over, all.tokenRate.Over)
	row.Errors, row.Attempts = all.errors.All(), all.attempts.Largest()
	row.Epoch, row.LearningRate = all.epoch.Largest(), all.learningRate.Mean()
	if row.Loss = all.loss.Mean(); row.Loss != nil {
		row.LossScope = scope[0]
	}
	row.ValidationLoss = all.validation.Mean()
	row.GPUs, row.GPUUtilization = all.gpuUse()
	if all.lossIsNoNumber {
		row.Loss = nil
		why(row, "loss", "The loss is not a finite number (NaN).")
	}
	if at, ok := series.Unix(all.lastStep.Most); ok {
		row.LastStep = &at
	}
	r.addBasis(row, now)
}

// addTotal adds what also counts after the stream has ended.
func (all *sums) addTotal(one *series.Stream, side string, now time.Time) {
	switch one.Series {
	case series.Steps:
		all.steps.Add(one.Value)
		all.stepRate.AddRate(one, now)
	case series.Batches:
		all.batches.Add(one.Value)
		all.batchRate.AddRate(one, now)
	case series.Samples:
		all.samples.Add(one.Value)
		all.sampleRate.AddRate(one, now)
	case series.Tokens:
		if side == "" || one.Labels.Own[4] == side || one.Labels.Own[4] == "" {
			all.tokens.Add(one.Value)
			all.tokenRate.AddRate(one, now)
		}
	case series.Cost:
		all.cost.Add(one.Value)
	case series.Errors:
		all.errors.Add(one.Value)
	case series.RunAttempts:
		all.attempts.Add(one.Value)
	case series.LastStep:
		all.lastStep.Add(one.Value)
	}
}

// addGPUs adds the GPUs of a run that a collector knows.
func (all *sums) addGPUs(one *series.Stream) {
	switch one.Series {
	case series.RunGPUs:
		all.gpus = append(all.gpus, one)
	case series.RunGPUUtilization:
		all.utilization = append(all.utilization, one)
	case series.RunGPUPrice:
		all.gpuPrice.Add(one.Value)
	}
}

// gpuUse returns the GPUs of a run, and the mean of their utilization. A GPU is known
// to one collector, which may be another one than that of the run's steps.
func (all *sums) gpuUse() (gpus, utilization *float64) {
	var count, sum, weights series.Total
	known := make(map[string]float64)
	for _, one := range all.gpus {
		count.Add(one.Value)
		known[one.Labels.Collector] = one.Value
	}
	for _, one := range all.utilization {
		weight := 1.0
		if len(all.utilization) > 1 {
			weight = known[one.Labels.Collector]
		}
		sum.Add(weight * one.Value)
		weights.Add(weight)
	}
	if weights.Sum > 0 {
		utilization = api.Finite(sum.Sum / weights.Sum)
	}
	return count.All(), utilization
}

// addSeries adds the series that ml_metrics computes for a whole run.
func (r *runStreams) addSeries(row *api.Run, one *series.Stream) {
	own := one.Labels.Own[0]
	switch one.Series {
	case series.RunStateSince:
		if at, ok := series.Unix(one.Value); ok && (row.StateSince == nil || at.After(*row.StateSince)) {
			row.StateSince = &at
		}
	case series.RunGoodput:
		row.Goodput = api.Finite(one.Value)
	case series.RunBound:
		if one.Value == 1 {
			row.Bound = own
		}
	case series.RunStepTime:
		switch own {
		case mlattr.WindowRecent:
			row.StepTime = api.Finite(one.Value)
		case mlattr.WindowUsual:
			row.StepTimeUsual = api.Finite(one.Value)
		}
	}
}

// scopeValidation is the ml.loss.scope of a loss on held-out data.
const scopeValidation = "validation"

// lossScope returns the own labels of the loss to show: that of a batch before
// that of an epoch or a validation, and that of all tasks before that of one.
func (r *runStreams) lossScope(now time.Time) (best [series.MaxOwn]string) {
	turn := func(own [series.MaxOwn]string) (int, string, string) {
		at := slices.Index([]string{"batch", "epoch", scopeValidation}, own[0])
		if at < 0 {
			at = 3
		}
		return at, own[1], own[0]
	}
	found := false
	for _, one := range r.streams {
		if one.Series != series.Loss || !one.Live(now) {
			continue
		}
		own := one.Labels.Own
		a, taskA, scopeA := turn(own)
		b, taskB, scopeB := turn(best)
		less := cmp.Or(cmp.Compare(taskA, taskB), cmp.Compare(a, b), cmp.Compare(scopeA, scopeB)) < 0
		if !found || less {
			best, found = own, true
		}
	}
	return best
}

// sideOf returns the side whose tokens count, if client and server report the same
// ones, else "".
func sideOf(streams []*series.Stream) string {
	for _, one := range streams {
		if one.Series == series.Tokens && one.Labels.Own[4] == "server" {
			return "server"
		}
	}
	return ""
}

// addBasis says what the rate of tokens rests on. If no span reports tokens, it is
// the client's own rate, else that of ml_metrics for the whole run.
func (r *runStreams) addBasis(row *api.Run, now time.Time) {
	if row.TokenRate != nil {
		row.TokenBasis = "counter"
		return
	}
	if row.Tokens != nil {
		return
	}
	var rates, steps series.Total
	for _, one := range r.streams {
		if !one.Live(now) {
			continue
		}
		switch one.Series {
		case series.RunTokenRate:
			steps.Add(one.Value)
		case series.ClientThroughput:
			// Means of several series must not be added up, nor what each rank
			// reports of all ranks.
			basis := one.Labels.Own[2]
			switch {
			case one.Labels.Own[4] == mlattr.ScopeGlobal:
				rates = series.Total{Sum: max(rates.Sum, one.Value), N: 1}
			case basis != mlattr.BasisMean || rates.N == 0:
				rates.Add(one.Value)
			default:
				continue
			}
			row.TokenBasis = cmp.Or(basis, mlattr.BasisReported)
		}
	}
	if row.TokenRate = rates.All(); row.TokenRate == nil && steps.N > 0 {
		row.TokenRate, row.TokenBasis = steps.Largest(), mlattr.BasisSteps
	}
}

// Rows returns the rows of the runs, by service and start.
func (s *Set) Rows(now time.Time) []api.Run {
	rows := make([]api.Run, 0, len(s.All))
	for _, r := range s.All {
		rows = append(rows, r.Row(now))
	}
	slices.SortFunc(rows, func(a, b api.Run) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
	return rows
}

// FixStepTokens returns the configuration that gives the tokens of a training
// step of services.
func FixStepTokens(services ...string) string {
	var rules []string
	for _, service := range services[:min(len(services), words.MaxNamed)] {
		rules = append(rules, "{service: "+strconv.Quote(service)+", tokens_per_step: <tokens of one rank>}")
	}
	if len(services) > words.MaxNamed {
		rules = append(rules, "…")
	}
	return "ml_enrich: {training: [" + strings.Join(rules, ", ") + "]}"
}

// SizeOfAStep says where the number in fixStepTokens comes from.
const SizeOfAStep = "tokens_per_step = the batch size of one rank × gradient accumulation steps × the sequence length."
