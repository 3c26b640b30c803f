package runs

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/curves"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Row returns the row of a run.
func (r *Run) Row(now time.Time) api.Run {
	row := api.Run{
		Key: r.Key, ID: r.ID, Service: r.Service, Team: r.Namespace,
		Job: cmp.Or(r.JobName, r.Job), Owner: r.in.OwnerOf(r),
		State: r.CurrentState(now), Needs: r.Needs,
		FirstSeen: r.FirstSeen.UTC(), LastSeen: cmp.Or(r.News.Last, r.LastSeen).UTC(),
		Ranks: len(r.counted()), Version: r.Version, Simulated: r.IsSimulated(), Recorded: r.IsRecorded(),
		LastCheckpoint: api.TimeOf(r.Checkpoint),
		Hosts:          r.hostNames(),
	}
	if r.News.Silent(now) && !mlattr.RunOver(row.State) {
		row.NoDataSince = api.TimeOf(r.News.Last)
	}
	r.AddNumbers(&row, now)
	row.GPUKeys = r.GPUKeys()
	switch {
	case row.TokenRate != nil || row.Tokens != nil || row.Steps == nil:
	case row.Samples != nil:
		mlattr.Put(&row.Why, "token_rate", "counts samples, not tokens")
	default:
		mlattr.Put(&row.Why, "token_rate", "unknown: tokens per step not set. In the collector's configuration file, under processors, set "+
			FixStepTokens(row.Service)+" and restart the collector. "+SizeOfAStep)
	}
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
	return r.IsSimulated() && !r.Simulated && !slices.ContainsFunc(r.GPUs, func(held Held) bool { return held.GPU.Simulated && !held.GPU.Recorded })
}

// sums collects the numbers of a run from its streams.
type sums struct {
	totals, rates [series.Count]series.Total
	validation    series.Total
	// held are the GPUs and the utilization that each collector knows.
	held []*series.Stream
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
	scope, writers := r.lossScope(now), r.rankWriters()
	// If client and server report the same tokens, those of the server count.
	ofServer := slices.ContainsFunc(r.streams, func(one *series.Stream) bool {
		return one.Series == series.Tokens && one.Labels.Own[4] == mlattr.SideServer
	})
	for _, one := range r.streams {
		switch one.Series {
		case series.Tokens:
			if own := one.Labels.Own[4]; !ofServer || own == mlattr.SideServer || own == "" {
				all.add(one, now)
			}
		case series.Steps, series.Batches, series.Samples, series.Cost, series.Errors, series.RunAttempts, series.LastStep:
			all.add(one, now) // also after the stream has ended
		case series.RunGPUs, series.RunGPUUtilization, series.RunGPUPrice:
			if one.Live(now) {
				all.add(one, now)
				all.held = append(all.held, one)
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
	row.GPUs, row.GPUUtilization = total[series.RunGPUs].All(), all.utilization()
	row.LastStep = series.Unix(total[series.LastStep].Most)
	r.addBasis(row, now)
}

// addOfWriter adds a stream of the collector that has the newest evidence of its run or
// rank.
func (all *sums) addOfWriter(row *api.Run, one *series.Stream, scope [series.MaxOwn]string, now time.Time) {
	own := one.Labels.Own
	if one.Series == series.Loss && one.NoNumber && now.Sub(one.At) <= series.GoneAfter {
		mlattr.Put(&row.Why, "loss", "The loss is not a finite number (NaN).")
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
		row.StateSince = api.Later(row.StateSince, series.Unix(one.Value))
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

// utilization returns the mean of the utilization of a run's GPUs. A GPU is known to one
// collector, which may be another one than that of the run's steps.
func (all *sums) utilization() *float64 {
	gpus := make(map[string]float64)
	for _, one := range all.held {
		if one.Series == series.RunGPUs {
			gpus[one.Labels.Collector] = one.Value
		}
	}
	var sum, weights float64
	for _, one := range all.held {
		if one.Series == series.RunGPUUtilization {
			weight := cmp.Or(gpus[one.Labels.Collector], 1)
			sum, weights = sum+weight*one.Value, weights+weight
		}
	}
	return api.Finite(sum / weights)
}

// scopeValidation is the ml.loss.scope of a loss on held-out data.
const scopeValidation = "validation"

// lossScope returns the own labels of the loss to show: that of a batch before
// that of an epoch or a validation, and that of all tasks before that of one.
func (r *runStreams) lossScope(now time.Time) (best [series.MaxOwn]string) {
	losses := mlattr.Where(slices.Values(r.streams), func(one *series.Stream) bool { return one.Series == series.Loss && one.Live(now) })
	if len(losses) == 0 {
		return best
	}
	turn := func(scope string) int { return slices.Index([]string{"batch", "epoch", scopeValidation, scope}, scope) }
	return slices.MinFunc(losses, func(a, b *series.Stream) int {
		x, y := &a.Labels.Own, &b.Labels.Own
		return cmp.Or(cmp.Compare(x[1], y[1]), cmp.Compare(turn(x[0]), turn(y[0])), cmp.Compare(x[0], y[0]))
	}).Labels.Own
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
	all := slices.SortedFunc(maps.Values(s.All), func(a, b *Run) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
	return mlattr.Mapped(all, func(r *Run) api.Run { return r.Row(now) })
}

// FixStepTokens returns the configuration that gives the tokens of a training
// step of services.
func FixStepTokens(services ...string) string {
	each := mlattr.Mapped(services, func(service string) string {
		return "{service: " + strconv.Quote(service) + ", tokens_per_step: <tokens of one rank>}"
	})
	return "ml_enrich: {training: [" + api.List(each, api.MaxNamed) + "]}"
}

// SizeOfAStep says where the number in fixStepTokens comes from.
const SizeOfAStep = "tokens_per_step = the batch size of one rank × gradient accumulation steps × the sequence length."

// timeline is what is kept of the numbers of a run.
type timeline struct {
	Curves curves.Set
	last   lastNumbers
	Spent  spentTime
	// due is since when there are numbers that the curves do not have, zero for none.
	due time.Time
	// ratesOver is the time in seconds that the rates of tokens and samples cover.
	ratesOver float64
}

// lastNumbers has the last losses of a run.
type lastNumbers struct {
	// steps is the sum of the times of the last steps of all ranks, and stepped when
	// the page learnt of the newest one.
	steps   float64
	stepped time.Time
	// loss is that of the newest step, validation the newest one, nil if unknown.
	loss, validation *float64
}

// noteLast takes over the numbers of a run that the page learnt of at r.due. It learns of a
// step after it, and a sender has a clock of its own, so the time of the last step does not
// tell which numbers are of it.
func (r *Run) noteLast(row *api.Run) {
	steps := 0.0
	for _, one := range r.streams {
		if one.Series == series.LastStep {
			steps += one.Value
		}
	}
	if row.ValidationLoss != nil {
		r.last.validation = row.ValidationLoss
	}
	if steps == 0 || steps != r.last.steps {
		r.last.steps, r.last.stepped, r.last.loss = steps, r.due, row.Loss
	}
}

// StepsEnd returns when the numbers of steps end, in Unix seconds: with the last step
// of a run in a state in which it takes none any more, else never.
func (r *Run) StepsEnd(state string) int64 {
	switch state {
	case mlattr.RunStalled, mlattr.RunSilent, mlattr.RunFailed, mlattr.RunEnded:
		if r.last.steps != 0 {
			return r.last.stepped.Unix()
		}
	}
	return math.MaxInt64
}

// Record adds the numbers of the runs that have had new ones for an interval to
// their curves.
func (s *Set) Record(now time.Time) {
	early := func(r *Run) bool { return !r.due.IsZero() && now.Sub(r.due) < s.Interval }
	if len(s.due) == 0 || early(s.due[0]) {
		return
	}
	s.HoldGPUs(now)
	n := 0
	for ; n < len(s.due) && !early(s.due[n]); n++ {
		r := s.due[n]
		if r.due.IsZero() {
			continue
		}
		var row api.Run
		r.AddNumbers(&row, now)
		v := r.numbers(&row)
		r.Curves.Add(r.due, &v, s.Interval, s.History)
		r.noteLast(&row)
		r.noteHardware()
		r.spend(&row, r.due)
		r.keepGood(now)
		r.due = time.Time{}
	}
	s.due = slices.Delete(s.due, 0, n)
}

// numbers returns the numbers of a run that are kept over time.
func (r *Run) numbers(row *api.Run) (v curves.Values) {
	var memory, power series.Total
	for _, held := range r.GPUs {
		if held.silent {
			continue
		}
		memory.Add(held.memory)
		if watts := held.GPU.Number(series.GPUPower); watts != nil {
			power.Add(*watts * held.Share)
		}
	}
	for id, value := range [curves.Count]*float64{
		curves.Loss: row.Loss, curves.StepTime: row.StepTime, curves.TokenRate: row.TokenRate,
		curves.Goodput: row.Goodput, curves.Utilization: row.GPUUtilization, curves.Validation: row.ValidationLoss,
		curves.LearningRate: row.LearningRate, curves.SampleRate: row.SampleRate, curves.Steps: row.Steps, curves.Epoch: row.Epoch,
		curves.Memory: memory.All(), curves.Power: power.All(),
	} {
		if v[id] = float32(math.NaN()); value != nil {
			v[id] = float32(*value)
		}
	}
	// What senders held back at the start would count as if it were fast.
	if r.ratesOver > 0 && r.ratesOver < series.RateWindow/2 {
		v[curves.TokenRate], v[curves.SampleRate] = float32(math.NaN()), float32(math.NaN())
	}
	return v
}

// ratioWindow is the time that ml.run.time.ratio covers, in seconds.
const ratioWindow = 15 * 60

// spentTime adds up what the time of a run goes to.
type spentTime struct {
	api.Spent
	// last is when time was added last, from when the ratio begins to count, both in
	// Unix seconds. ratio is the last one.
	last, from uint32
	ratio      map[string]float64
}

// spend adds the time until now to the run's current state.
func (r *Run) spend(row *api.Run, now time.Time) {
	s, at := &r.Spent, uint32(now.Unix())
	if s.last == 0 || at < s.last {
		s.last, s.from = at, at
		return
	}
	state := r.CurrentState(now)
	if mlattr.RunOver(state) {
		return
	}
	took := min(float64(at-s.last), series.GoneAfter.Seconds())
	s.last = at
	mlattr.Put(&s.States, state, s.States[state]+took)
	if row.GPUs != nil {
		s.GPUHours = api.Finite(took**row.GPUs/3600 + api.Value(s.GPUHours))
	}
	if row.GPUPrice != nil {
		s.GPUCost = api.Finite(took**row.GPUPrice/3600 + api.Value(s.GPUCost))
	}
	if ratio := r.TimeRatio(now); len(ratio) > 0 {
		s.ratio = ratio
	}
	if at-s.from >= ratioWindow {
		s.Uses, s.from = s.uses(), at
	}
}

// uses returns the seconds by use until now.
func (s *spentTime) uses() map[string]float64 {
	all := maps.Clone(s.Uses)
	for use, ratio := range s.ratio {
		if seconds := ratio * float64(s.last-s.from); seconds > 0 {
			mlattr.Put(&all, use, all[use]+seconds)
		}
	}
	return all
}

// Row returns a copy of what is known.
func (s *spentTime) Row() api.Spent {
	return api.Spent{States: maps.Clone(s.States), Uses: s.uses(), GPUHours: s.GPUHours, GPUCost: s.GPUCost}
}
