package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// row returns the row of a run.
func (r *run) row(now time.Time) Run {
	row := Run{
		Key: r.key, ID: r.id, Service: r.service, Team: r.namespace,
		Job: cmp.Or(r.jobName, r.job), Owner: r.in.ownerOf(r),
		State: r.currentState(now), Needs: r.needs,
		FirstSeen: r.firstSeen.UTC(), LastSeen: r.lastSeen.UTC(),
		Ranks: r.processCount(), Version: r.version, Simulated: r.isSimulated(), Recorded: r.isRecorded(),
		LastCheckpoint: timePointer(r.checkpoint),
		Hosts:          r.hostNames(),
	}
	if !r.news.Last.IsZero() {
		row.LastSeen = r.news.Last.UTC()
	}
	if r.news.Silent(now) && !mlattr.RunOver(row.State) {
		row.NoDataSince = timePointer(r.news.Last)
	}
	r.addNumbers(&row, now)
	r.addGPUs(&row)
	r.explain(&row)
	return row
}

// addGPUs adds the GPUs of a run.
func (r *run) addGPUs(row *Run) {
	for _, held := range r.gpus {
		row.GPUKeys = append(row.GPUKeys, held.gpu.key)
	}
}

// isSimulated reports whether any data of the run or of its GPUs is simulated or
// recorded.
func (r *run) isSimulated() bool {
	return r.simulated || slices.ContainsFunc(r.gpus, func(held heldGPU) bool { return held.gpu.simulated })
}

// isRecorded reports whether nothing but GPUs of the run is, and these come from a
// recording.
func (r *run) isRecorded() bool {
	return r.isSimulated() && !r.simulated && !slices.ContainsFunc(r.gpus, func(held heldGPU) bool { return held.gpu.simulated && !held.gpu.recorded() })
}

// explain says what would give numbers that are missing.
func (r *run) explain(row *Run) {
	switch {
	case row.TokenRate != nil || row.Tokens != nil || row.Steps == nil:
	case row.Samples != nil:
		row.why("token_rate", "counts samples, not tokens. Nothing needs to be set.")
	default:
		row.why("token_rate", "not sent: its steps carry no number of tokens. In the collector's configuration file, under processors, set "+
			fixStepTokens(row.Service)+" and restart the collector. "+sizeOfAStep)
	}
}

// why says why a number is missing.
func (row *Run) why(number, reason string) {
	if row.Why == nil {
		row.Why = make(map[string]string)
	}
	row.Why[number] = reason
}

// sums collects the numbers of a run from its streams.
type sums struct {
	steps, batches, samples, tokens, errors, attempts total
	stepRate, batchRate, sampleRate, tokenRate        total
	epoch, learningRate, loss, validation, lastStep   total
	cost, gpuPrice                                    total

	lossIsNoNumber bool
	// gpus and utilization are those that each collector knows.
	gpus, utilization []*stream
}

// addNumbers adds what metrics say of a run.
func (r *run) addNumbers(row *Run, now time.Time) {
	var all sums
	scope := r.lossScope(now)
	side := sideOf(r.streams)
	writers := r.rankWriters()
	for _, one := range r.streams {
		all.addTotal(one, side, now)
		if one.live(now) {
			all.addGPUs(one)
		}
		if !r.ofRankWriter(one, writers) {
			continue
		}
		if one.series == Loss && one.noNumber && now.Sub(one.at) <= goneAfter {
			all.lossIsNoNumber = true
		}
		if !one.live(now) {
			continue
		}
		switch one.series {
		case Epoch:
			all.epoch.add(one.value)
		case LearningRate:
			all.learningRate.add(one.value)
		case Loss:
			switch {
			case one.labels.Own == scope:
				all.loss.add(one.value)
			case one.labels.Own[0] == scopeValidation && one.labels.Own[1] == scope[1]:
				all.validation.add(one.value)
			}
		}
		r.addSeries(row, one)
	}
	if writers != nil {
		all.addSteps(&r.runStreams, now)
	}
	row.Steps, row.StepRate = all.steps.largest(), all.stepRate.largest()
	if row.Steps == nil {
		row.Steps, row.StepRate = all.batches.largest(), all.batchRate.largest()
	}
	row.Cost, row.GPUPrice = all.cost.all(), all.gpuPrice.all()
	row.Samples, row.SampleRate = all.samples.all(), all.sampleRate.all()
	row.Tokens, row.TokenRate = all.tokens.all(), all.tokenRate.all()
	r.ratesOver = max(all.sampleRate.over, all.tokenRate.over)
	row.Errors, row.Attempts = all.errors.all(), all.attempts.largest()
	row.Epoch, row.LearningRate = all.epoch.largest(), all.learningRate.mean()
	if row.Loss = all.loss.mean(); row.Loss != nil {
		row.LossScope = scope[0]
	}
	row.ValidationLoss = all.validation.mean()
	row.GPUs, row.GPUUtilization = all.gpuUse()
	if all.lossIsNoNumber {
		row.Loss = nil
		row.why("loss", "The loss is not a finite number (NaN).")
	}
	if at, ok := unix(all.lastStep.most); ok {
		row.LastStep = &at
	}
	r.addBasis(row, now)
}

// addTotal adds what also counts after the stream has ended.
func (all *sums) addTotal(one *stream, side string, now time.Time) {
	switch one.series {
	case Steps:
		all.steps.add(one.value)
		all.stepRate.addRate(one, now)
	case Batches:
		all.batches.add(one.value)
		all.batchRate.addRate(one, now)
	case Samples:
		all.samples.add(one.value)
		all.sampleRate.addRate(one, now)
	case Tokens:
		if side == "" || one.labels.Own[4] == side || one.labels.Own[4] == "" {
			all.tokens.add(one.value)
			all.tokenRate.addRate(one, now)
		}
	case Cost:
		all.cost.add(one.value)
	case Errors:
		all.errors.add(one.value)
	case RunAttempts:
		all.attempts.add(one.value)
	case LastStep:
		all.lastStep.add(one.value)
	}
}

// addGPUs adds the GPUs of a run that a collector knows.
func (all *sums) addGPUs(one *stream) {
	switch one.series {
	case RunGPUs:
		all.gpus = append(all.gpus, one)
	case RunGPUUtilization:
		all.utilization = append(all.utilization, one)
	case RunGPUPrice:
		all.gpuPrice.add(one.value)
	}
}

// gpuUse returns the GPUs of a run, and the mean of their utilization. A GPU is known
// to one collector, which may be another one than that of the run's steps.
func (all *sums) gpuUse() (gpus, utilization *float64) {
	var count, sum, weights total
	known := make(map[string]float64)
	for _, one := range all.gpus {
		count.add(one.value)
		known[one.labels.Collector] = one.value
	}
	for _, one := range all.utilization {
		weight := 1.0
		if len(all.utilization) > 1 {
			weight = known[one.labels.Collector]
		}
		sum.add(weight * one.value)
		weights.add(weight)
	}
	if weights.sum > 0 {
		utilization = finite(sum.sum / weights.sum)
	}
	return count.all(), utilization
}

// addSeries adds the series that ml_metrics computes for a whole run.
func (r *runStreams) addSeries(row *Run, one *stream) {
	own := one.labels.Own[0]
	switch one.series {
	case RunStateSince:
		if at, ok := unix(one.value); ok && (row.StateSince == nil || at.After(*row.StateSince)) {
			row.StateSince = &at
		}
	case RunGoodput:
		row.Goodput = finite(one.value)
	case RunBound:
		if one.value == 1 {
			row.Bound = own
		}
	case RunStepTime:
		switch own {
		case mlattr.WindowRecent:
			row.StepTime = finite(one.value)
		case mlattr.WindowUsual:
			row.StepTimeUsual = finite(one.value)
		}
	}
}

// scopeValidation is the ml.loss.scope of a loss on held-out data.
const scopeValidation = "validation"

// lossScope returns the own labels of the loss to show: that of a batch before
// that of an epoch or a validation, and that of all tasks before that of one.
func (r *runStreams) lossScope(now time.Time) (best [MaxOwn]string) {
	turn := func(own [MaxOwn]string) (int, string, string) {
		at := slices.Index([]string{"batch", "epoch", scopeValidation}, own[0])
		if at < 0 {
			at = 3
		}
		return at, own[1], own[0]
	}
	found := false
	for _, one := range r.streams {
		if one.series != Loss || !one.live(now) {
			continue
		}
		own := one.labels.Own
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
func sideOf(streams []*stream) string {
	for _, one := range streams {
		if one.series == Tokens && one.labels.Own[4] == "server" {
			return "server"
		}
	}
	return ""
}

// addBasis says what the rate of tokens rests on. If no span reports tokens, it is
// the client's own rate, else that of ml_metrics for the whole run.
func (r *runStreams) addBasis(row *Run, now time.Time) {
	if row.TokenRate != nil {
		row.TokenBasis = "counter"
		return
	}
	if row.Tokens != nil {
		return
	}
	var rates, steps total
	for _, one := range r.streams {
		if !one.live(now) {
			continue
		}
		switch one.series {
		case RunTokenRate:
			steps.add(one.value)
		case ClientThroughput:
			// Means of several series must not be added up, nor what each rank
			// reports of all ranks.
			basis := one.labels.Own[2]
			switch {
			case one.labels.Own[4] == mlattr.ScopeGlobal:
				rates = total{sum: max(rates.sum, one.value), n: 1}
			case basis != mlattr.BasisMean || rates.n == 0:
				rates.add(one.value)
			default:
				continue
			}
			row.TokenBasis = cmp.Or(basis, mlattr.BasisReported)
		}
	}
	if row.TokenRate = rates.all(); row.TokenRate == nil && steps.n > 0 {
		row.TokenRate, row.TokenBasis = steps.largest(), mlattr.BasisSteps
	}
}

// rows returns the rows of the runs, by service and start.
func (s *runs) rows(now time.Time) []Run {
	rows := make([]Run, 0, len(s.all))
	for _, r := range s.all {
		rows = append(rows, r.row(now))
	}
	slices.SortFunc(rows, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
	return rows
}
