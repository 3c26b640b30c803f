package runs

import (
	"cmp"
	"slices"
	"strconv"
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
		Ranks: r.ProcessCount(), Version: r.Version, Simulated: r.IsSimulated(), Recorded: r.IsRecorded(),
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
	for _, held := range r.GPUs {
		row.GPUKeys = append(row.GPUKeys, held.GPU.Key)
	}
	explain(&row)
	return row
}

// IsSimulated reports whether any data of the run or of its GPUs is simulated or
// recorded.
func (r *Run) IsSimulated() bool {
	return r.Simulated || slices.ContainsFunc(r.GPUs, func(held Held) bool { return held.GPU.Simulated })
}

// IsRecorded reports whether nothing but GPUs of the run is, and these come from a
// recording.
func (r *Run) IsRecorded() bool {
	return r.IsSimulated() && !r.Simulated && !slices.ContainsFunc(r.GPUs, func(held Held) bool { return held.GPU.Simulated && !held.GPU.Recorded() })
}

// explain says what would give numbers that are missing.
func explain(row *api.Run) {
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
	totals, rates [series.Count]series.Total
	validation    series.Total
	// gpus and utilization are those that each collector knows.
	gpus, utilization []*series.Stream
}

func (all *sums) add(one *series.Stream, now time.Time) {
	all.totals[one.Series].Add(one.Value)
	if one.Series.Counts() {
		all.rates[one.Series].AddRate(one, now)
	}
}

// AddNumbers adds what metrics say of a run.
func (r *Run) AddNumbers(row *api.Run, now time.Time) {
	var all sums
	scope, side, writers := r.lossScope(now), sideOf(r.streams), r.rankWriters()
	for _, one := range r.streams {
		live := one.Live(now)
		switch one.Series {
		case series.Tokens:
			if own := one.Labels.Own[4]; side == "" || own == side || own == "" {
				all.add(one, now)
			}
		case series.Steps, series.Batches, series.Samples, series.Cost, series.Errors, series.RunAttempts, series.LastStep:
			all.add(one, now) // also after the stream has ended
		case series.RunGPUs:
			if live {
				all.gpus = append(all.gpus, one)
			}
		case series.RunGPUUtilization:
			if live {
				all.utilization = append(all.utilization, one)
			}
		case series.RunGPUPrice:
			if live {
				all.add(one, now)
			}
		default:
			if r.ofRankWriter(one, writers) {
				all.addOfWriter(row, one, scope, now)
			}
		}
	}
	if writers != nil {
		all.addSteps(&r.runStreams, now)
	}
	total, rate := &all.totals, &all.rates
	row.Steps, row.StepRate = total[series.Steps].Largest(), rate[series.Steps].Largest()
	if row.Steps == nil {
		row.Steps, row.StepRate = total[series.Batches].Largest(), rate[series.Batches].Largest()
	}
	row.Cost, row.GPUPrice = total[series.Cost].All(), total[series.RunGPUPrice].All()
	row.Samples, row.SampleRate = total[series.Samples].All(), rate[series.Samples].All()
	row.Tokens, row.TokenRate = total[series.Tokens].All(), rate[series.Tokens].All()
	r.ratesOver = max(rate[series.Samples].Over, rate[series.Tokens].Over)
	row.Errors, row.Attempts = total[series.Errors].All(), total[series.RunAttempts].Largest()
	row.Epoch, row.LearningRate = total[series.Epoch].Largest(), total[series.LearningRate].Mean()
	if row.Why["loss"] == "" {
		row.Loss = total[series.Loss].Mean()
	}
	if total[series.Loss].N > 0 {
		row.LossScope = scope[0]
	}
	row.ValidationLoss = all.validation.Mean()
	row.GPUs, row.GPUUtilization = all.gpuUse()
	if at, ok := series.Unix(total[series.LastStep].Most); ok {
		row.LastStep = &at
	}
	r.addBasis(row, now)
}

// addOfWriter adds a stream of the collector that has the newest evidence of its run or
// rank.
func (all *sums) addOfWriter(row *api.Run, one *series.Stream, scope [series.MaxOwn]string, now time.Time) {
	own := one.Labels.Own
	if one.Series == series.Loss && one.NoNumber && now.Sub(one.At) <= series.GoneAfter {
		why(row, "loss", "The loss is not a finite number (NaN).")
	}
	if !one.Live(now) {
		return
	}
	switch one.Series {
	case series.Epoch, series.LearningRate:
		all.add(one, now)
	case series.Loss:
		switch {
		case own == scope:
			all.add(one, now)
		case own[0] == scopeValidation && own[1] == scope[1]:
			all.validation.Add(one.Value)
		}
	case series.RunStateSince:
		if at, ok := series.Unix(one.Value); ok && (row.StateSince == nil || at.After(*row.StateSince)) {
			row.StateSince = &at
		}
	case series.RunGoodput:
		row.Goodput = api.Finite(one.Value)
	case series.RunBound:
		if one.Value == 1 {
			row.Bound = own[0]
		}
	case series.RunStepTime:
		switch own[0] {
		case mlattr.WindowRecent:
			row.StepTime = api.Finite(one.Value)
		case mlattr.WindowUsual:
			row.StepTimeUsual = api.Finite(one.Value)
		}
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
	return "ml_enrich: {training: [" + words.Each(services, func(service string) string {
		return "{service: " + strconv.Quote(service) + ", tokens_per_step: <tokens of one rank>}"
	}) + "]}"
}

// SizeOfAStep says where the number in fixStepTokens comes from.
const SizeOfAStep = "tokens_per_step = the batch size of one rank × gradient accumulation steps × the sequence length."
