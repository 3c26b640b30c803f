package main

import (
	"cmp"
	"slices"
	"time"
)

// Names of the series that the screen shows, as the Prometheus exporter
// spells them.
//
//nolint:gosec // The tokens are those of language models and no secrets.
const (
	seriesSteps     = "ml_steps_total"
	seriesBatches   = "ml_batches_total"
	seriesTokens    = "ml_tokens_total"
	seriesLoss      = "ml_loss"
	seriesEpoch     = "ml_epoch"
	seriesLastStep  = "ml_run_last_step_timestamp_seconds"
	seriesGPUUsed   = "hw_gpu_memory_usage_bytes"
	seriesGPULimit  = "hw_gpu_memory_limit_bytes"
	seriesGPUUtil   = "hw_gpu_utilization_ratio"
	seriesGPUPower  = "hw_power_watts"
	seriesGPUTemp   = "hw_temperature_celsius"
	seriesGPUInfo   = "nvidia_gpu_info"
	seriesWorkloads = "nvidia_gpu_workload_memory_usage_bytes"
)

// Labels of those series.
//
//nolint:gosec // As above.
const (
	labelService   = "job"
	labelRun       = "ml_run_id"
	labelRank      = "ml_rank_global"
	labelRole      = "ml_role"
	labelTokenType = "gen_ai_token_type"
	labelModel     = "gen_ai_request_model"
	labelLossScope = "ml_loss_scope"
	labelTask      = "ml_task"
	labelGPU       = "hw_id"
	labelHost      = "host_name"
	labelGPUIndex  = "nvidia_gpu_index"
	labelGPUSource = "nvidia_gpu_source"
	labelGPUTask   = "hw_gpu_task"
	labelSensor    = "hw_sensor_location"
	labelJoin      = "ml_gpu_join"
)

// requestRates are the histograms of the token rates of requests. Only the mean
// of new values is shown: requests overlap, so their rates must not be added
// up. The exporter may repeat a client's unit in the name.
var requestRates = []struct {
	name string
	// what names the rate; basisLabel is the label that names its basis, if
	// that differs between series.
	what, basisLabel string
}{
	{name: "tuft_training_tokens_per_second", what: "training, by the client"},
	{name: "tuft_training_tokens_per_second_per_second", what: "training, by the client"},
	{name: "tuft_sampling_tokens_per_second", what: "sampling, by the client"},
	{name: "tuft_sampling_tokens_per_second_per_second", what: "sampling, by the client"},
	{name: "snakepit_ml_inference_tokens_per_second", what: "inference, by the client"},
	{name: "snakepit_ml_inference_tokens_per_second_per_second", what: "inference, by the client"},
	{name: "ml_request_token_throughput_per_second", basisLabel: "ml_throughput_basis"},
}

// shownMetrics are the names that a scrape keeps.
var shownMetrics = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{
		seriesSteps, seriesBatches, seriesTokens, seriesLoss, seriesEpoch, seriesLastStep,
		seriesGPUUsed, seriesGPULimit, seriesGPUUtil, seriesGPUPower, seriesGPUTemp, seriesGPUInfo, seriesWorkloads,
	} {
		names[name] = true
	}
	for _, rate := range requestRates {
		names[rate.name] = true
		names[rate.name+"_sum"] = true
		names[rate.name+"_count"] = true
	}
	return names
}()

// snapshot is the content of the screen as data.
type snapshot struct {
	at       time.Time
	runs     []run
	tokens   []tokens
	requests []requestRate
	gpus     []gpu
	// dropped is the number of series that the scrape omitted.
	dropped int
}

// run is a row of the table of runs.
type run struct {
	service string
	// id is the run's id; empty if the series have none, or if the row shows
	// several runs.
	id string
	// merged is the number of runs in the row. Runs that are known only by
	// their tokens, such as each request of an agent, share a row for each
	// service.
	merged int
	ranks  int
	// stepRate is the mean of the ranks, which step together; batchRate and
	// tokenRate are their sums.
	stepRate, batchRate, tokenRate reading
	loss                           reading
	lossScope                      string
	epoch                          reading
	// lastStep is the age of the latest step of any rank, in seconds.
	lastStep reading
}

// tokens is one row of the table of tokens.
type tokens struct {
	service, role, direction, model string
	total, rate                     reading
}

// requestRate is the mean token rate of requests.
type requestRate struct {
	service, what, model string
	rate                 reading
}

// gpu is a GPU with its workloads.
type gpu struct {
	id, index, host, source string
	utilization             reading // 0 to 1
	memoryUsed, memoryLimit reading // bytes
	power                   reading // watts
	temperature             reading // degrees Celsius
	workloads               []workload
}

// workload is the part of a GPU that one workload uses.
type workload struct {
	run, service, rank string
	// owner is the job, pod or container of the workload, ownerKind which of
	// these.
	owner, ownerKind string
	// join is the rule that joined the workload to the run; empty if the
	// process itself named its run, or if the run is unknown.
	join   string
	memory reading
}

// takeSnapshot computes the content of the screen from the scrapes.
func takeSnapshot(h *history) snapshot {
	latest := h.latest()
	if latest == nil {
		return snapshot{}
	}
	return snapshot{
		at:       latest.at,
		runs:     runsOf(h, latest),
		tokens:   tokensOf(h, latest),
		requests: requestRatesOf(h, latest),
		gpus:     gpusOf(latest),
		dropped:  latest.dropped,
	}
}

type runKey struct{ service, id string }

// runTally collects a run's series.
type runTally struct {
	ranks              map[string]bool
	steps              mean
	batches, tokens    reading
	losses             map[string]*mean
	epoch, lastStep    reading
	hasTrainingSignals bool
}

func runsOf(h *history, latest *scrape) []run {
	tallies := map[runKey]*runTally{}
	each := func(name string, training bool, use func(*runTally, identified)) {
		for _, series := range latest.sorted(name) {
			key := runKey{series.labels[labelService], series.labels[labelRun]}
			tally := tallies[key]
			if tally == nil {
				tally = &runTally{ranks: map[string]bool{}, losses: map[string]*mean{}}
				tallies[key] = tally
			}
			tally.hasTrainingSignals = tally.hasTrainingSignals || training
			if rank := series.labels[labelRank]; rank != "" {
				tally.ranks[rank] = true
			}
			use(tally, series)
		}
	}
	// A rank may have several series of a metric (one for each model, operation
	// or role); steps are first added up for each rank.
	stepRates := map[runKey]map[string]reading{}
	each(seriesSteps, true, func(_ *runTally, series identified) {
		key := runKey{series.labels[labelService], series.labels[labelRun]}
		if stepRates[key] == nil {
			stepRates[key] = map[string]reading{}
		}
		rank := series.labels[labelRank]
		stepRates[key][rank] = stepRates[key][rank].plus(h.rate(series.name, series.id))
	})
	for key, byRank := range stepRates {
		for _, rate := range byRank {
			tallies[key].steps.add(rate)
		}
	}
	each(seriesBatches, true, func(tally *runTally, series identified) {
		tally.batches = tally.batches.plus(h.rate(series.name, series.id))
	})
	each(seriesTokens, false, func(tally *runTally, series identified) {
		tally.tokens = tally.tokens.plus(h.rate(series.name, series.id))
	})
	each(seriesLoss, true, func(tally *runTally, series identified) {
		if series.labels[labelTask] != "" {
			return // a task's part of the loss, not the loss
		}
		scope := series.labels[labelLossScope]
		if tally.losses[scope] == nil {
			tally.losses[scope] = &mean{}
		}
		tally.losses[scope].add(known(series.value))
	})
	each(seriesEpoch, true, func(tally *runTally, series identified) {
		tally.epoch = larger(tally.epoch, known(series.value))
	})
	each(seriesLastStep, true, func(tally *runTally, series identified) {
		tally.lastStep = larger(tally.lastStep, known(series.value))
	})

	var runs []run
	merged := map[string]*run{}
	for key, tally := range tallies {
		row := run{
			service: key.service, id: key.id, merged: 1, ranks: len(tally.ranks),
			stepRate: tally.steps.reading(), batchRate: tally.batches, tokenRate: tally.tokens,
			epoch: tally.epoch, lastStep: age(latest.at, tally.lastStep),
		}
		row.loss, row.lossScope = shownLoss(tally.losses)
		if tally.hasTrainingSignals {
			runs = append(runs, row)
			continue
		}
		if sum := merged[key.service]; sum != nil {
			sum.id = ""
			sum.merged++
			sum.tokenRate = sum.tokenRate.plus(row.tokenRate)
			continue
		}
		merged[key.service] = &row
	}
	for _, row := range merged {
		runs = append(runs, *row)
	}
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.id, b.id), cmp.Compare(a.merged, b.merged))
	})
	return runs
}

// shownLoss returns the loss that changes most often: of a batch, else of an
// epoch, else of any scope. It is the mean of the ranks.
func shownLoss(losses map[string]*mean) (reading, string) {
	for _, scope := range []string{"batch", "epoch", "", "validation"} {
		if loss := losses[scope]; loss != nil {
			return loss.reading(), scope
		}
	}
	return reading{}, ""
}

// age returns the seconds since a Unix time. A time ahead by less than a
// refresh counts as now; one further ahead is from another clock and gives no
// age.
func age(at time.Time, timestamp reading) reading {
	if !timestamp.known || timestamp.value <= 0 {
		return reading{}
	}
	seconds := float64(at.UnixNano())/1e9 - timestamp.value
	switch {
	case seconds >= 0:
		return known(seconds)
	case seconds > -refreshInterval.Seconds():
		return known(0)
	default:
		return reading{}
	}
}

func larger(a, b reading) reading {
	if !a.known || (b.known && b.value > a.value) {
		return b
	}
	return a
}

func tokensOf(h *history, latest *scrape) []tokens {
	rows := map[tokens]*tokens{}
	for _, series := range latest.sorted(seriesTokens) {
		key := tokens{
			service:   series.labels[labelService],
			role:      series.labels[labelRole],
			direction: series.labels[labelTokenType],
			model:     series.labels[labelModel],
		}
		row := rows[key]
		if row == nil {
			row = &tokens{service: key.service, role: key.role, direction: key.direction, model: key.model}
			rows[key] = row
		}
		row.total = row.total.plus(known(series.value))
		row.rate = row.rate.plus(h.rate(series.name, series.id))
	}
	sorted := make([]tokens, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b tokens) int {
		return cmp.Or(
			cmp.Compare(a.service, b.service), cmp.Compare(a.role, b.role),
			cmp.Compare(a.direction, b.direction), cmp.Compare(a.model, b.model),
		)
	})
	return sorted
}

func requestRatesOf(h *history, latest *scrape) []requestRate {
	type tally struct{ sum, count reading }
	tallies := map[requestRate]*tally{}
	var gauges []requestRate
	for _, rates := range requestRates {
		row := func(series identified) requestRate {
			what := rates.what
			if rates.basisLabel != "" {
				what = "request, by the collector"
				if basis := series.labels[rates.basisLabel]; basis != "" {
					what += " (" + basis + ")"
				}
			}
			return requestRate{service: series.labels[labelService], what: what, model: modelOf(series.labels)}
		}
		// A client may send its rate as a gauge, which is shown as it is.
		for _, series := range latest.sorted(rates.name) {
			gauge := row(series)
			gauge.rate = known(series.value)
			gauges = append(gauges, gauge)
		}
		for _, series := range latest.sorted(rates.name + "_count") {
			key := row(series)
			if tallies[key] == nil {
				tallies[key] = &tally{}
			}
			sum, count := h.newObservations(rates.name, series.id)
			tallies[key].sum = tallies[key].sum.plus(sum)
			tallies[key].count = tallies[key].count.plus(count)
		}
	}
	rows := gauges
	for row, t := range tallies {
		if t.sum.known && t.count.known && t.count.value > 0 {
			row.rate = known(t.sum.value / t.count.value)
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b requestRate) int {
		return cmp.Or(
			cmp.Compare(a.service, b.service), cmp.Compare(a.what, b.what), cmp.Compare(a.model, b.model),
			cmp.Compare(a.rate.value, b.rate.value),
		)
	})
	return rows
}

// modelOf returns the model of a client's own series, from the collector's
// label or the client's.
func modelOf(labels map[string]string) string {
	return cmp.Or(labels[labelModel], labels["base_model"], labels["model"])
}
