package e2e

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// trainings has the jobs of each system that trains, and the label by which
// its processes or runs are told apart.
var trainings = []struct{ scenario, jobs, label string }{
	{"torchtel", "torchtel", "ml_rank_global"},
	{"tuft", "tuft", "ml_run_id"},
	{"fx", "fx-forecasting|unknown_service:python", "job"},
}

// exact is how far a sum of seconds may be off: what adding doubles in another
// order comes to.
const exact = 1e-9

// testTraining compares the series of training, one by one, with what they have
// to be by the log of what was sent.
func testTraining(t *testing.T, j *job) {
	for _, system := range trainings {
		t.Run(system.scenario, func(t *testing.T) {
			truth := timelines(j.sent.Spans, system.scenario)
			require.NotEmpty(t, truth)
			selector := fmt.Sprintf(`{job=~%q}`, system.jobs)

			t.Run("time of the run", func(t *testing.T) {
				wanted := map[string]float64{}
				for process, tl := range truth {
					for state, seconds := range tl.seconds() {
						wanted[process+"/"+state] = seconds
					}
				}
				j.prometheus.AwaitNear(t, "ml_run_time_seconds_total"+selector, []string{system.label, "ml_run_state"}, wanted, exact)
			})

			t.Run("time of the steps", func(t *testing.T) {
				testStepDurations(t, j.prometheus, selector, system.label, truth)
			})

			t.Run("samples", func(t *testing.T) {
				wanted := samplesOf(ofScenario(j.sent.Spans, system.scenario), system.label)
				if len(wanted) == 0 {
					samples, err := j.prometheus.Query(t.Context(), "ml_samples_total"+selector)
					require.NoError(t, err)
					assert.Empty(t, samples, "nobody says how many")
					return
				}
				j.prometheus.AwaitValues(t, "ml_samples_total"+selector, system.label, wanted)
			})

			t.Run("attempts", func(t *testing.T) {
				wanted := map[string]float64{}
				for process := range truth {
					wanted[process] = 1
				}
				j.prometheus.AwaitValues(t, "ml_run_attempts_total"+selector, system.label, wanted)
			})
		})
	}

	t.Run("tokens of training", func(t *testing.T) {
		wanted := map[string]float64{}
		for rank, steps := range j.sent.Summary.Scenarios["torchtel"].Truth.Steps {
			wanted[rank] = float64(steps) * stepTokens / float64(firstWorkload.Ranks)
		}
		j.prometheus.AwaitValues(t, `ml_tokens_total{job="torchtel",ml_operation="train_step",gen_ai_token_type="input"}`, "ml_rank_global", wanted)
	})

	t.Run("newest values", func(t *testing.T) { testNewestValues(t, j) })

	t.Run("a run that ended", func(t *testing.T) {
		j.prometheus.AwaitValues(t, `ml_run_state{job="torchtel"} == 1`, "ml_run_state", map[string]float64{"ended": 1})
		j.prometheus.AwaitValues(t, `ml_run_state{job="tuft"} == 1`, "ml_run_state", map[string]float64{"running": float64(len(timelines(j.sent.Spans, "tuft")))})
	})

	t.Run("token rates", func(t *testing.T) { testTokenRates(t, j) })
}

// testStepDurations compares the histogram of the steps: how many and how long by
// phase, and of whole steps bucket by bucket and what quantiles it gives.
func testStepDurations(t *testing.T, prometheus *harness.Prometheus, selector, label string, truth map[string]*timeline) {
	lengths := map[string][]float64{}
	for process, tl := range truth {
		for _, step := range tl.steps() {
			for phase, seconds := range step {
				lengths[process+"/"+phase] = append(lengths[process+"/"+phase], seconds)
			}
		}
	}
	sums, counts, buckets := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for key, all := range lengths {
		counts[key] = float64(len(all))
		for _, seconds := range all {
			sums[key] += seconds
			for bound := firstBound; bound <= lastBound; bound *= 2 {
				if seconds <= bound && strings.HasSuffix(key, "/step") {
					buckets[key+"/"+le(bound)]++
				}
			}
		}
	}
	labels := []string{label, "ml_phase"}
	prometheus.AwaitNear(t, "ml_step_duration_seconds_count"+selector, labels, counts, 0)
	prometheus.AwaitNear(t, "ml_step_duration_seconds_sum"+selector, labels, sums, exact)
	finite := strings.Replace(selector, "}", `,le!="+Inf"}`, 1)
	prometheus.AwaitNear(t, "ml_step_duration_seconds_bucket"+finite+" > 0", append(slices.Clone(labels), "le"), buckets, 0)

	for _, q := range []float64{0.5, 0.9} {
		steps := strings.Replace(selector, "}", `,ml_phase="step"}`, 1)
		samples, err := prometheus.Query(t.Context(), fmt.Sprintf("histogram_quantile(%g, ml_step_duration_seconds_bucket%s)", q, steps))
		require.NoError(t, err)
		require.Len(t, samples, len(truth))
		for _, sample := range samples {
			key := sample.Labels[label] + "/" + sample.Labels["ml_phase"]
			all := slices.Sorted(slices.Values(lengths[key]))
			want := all[int(math.Ceil(q*float64(len(all))))-1]
			assert.InDelta(t, bucketOf(want), bucketOf(sample.Value), 0, "%g of %s: %g s is estimated as %g s", q, key, want, sample.Value)
		}
	}
}

// le is a bound as Prometheus writes it.
func le(bound float64) string {
	text := strconv.FormatFloat(bound, 'g', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// firstBound and lastBound are those of the buckets of whole steps, in seconds.
const firstBound, lastBound = 1.0 / 128, 128

// bucketOf is the upper bound of the bucket that a length is in.
func bucketOf(seconds float64) float64 {
	for bound := firstBound; bound <= lastBound; bound *= 2 {
		if seconds <= bound*(1+exact) {
			return bound
		}
	}
	return math.Inf(1)
}

// samplesOf adds up the batch sizes of what succeeded, each once: of TuFT's
// layers the controller's, of the FX toolkit the batches'.
func samplesOf(spans []*sentlog.Span, label string) map[string]float64 {
	wanted := map[string]float64{}
	for _, span := range spans {
		if span.Status.Code == "error" {
			continue
		}
		var key string
		var size any
		switch {
		case label == "ml_run_id" && strings.HasPrefix(span.Name, "training_controller.run_forward"):
			key, size = fmt.Sprint(span.Attributes["tuft.training_run_id"]), span.Attributes["tuft.data_count"]
		case label == "job" && span.Name == "batch_processing":
			key, size = fmt.Sprint(span.Resource["service.name"]), span.Attributes["batch_size"]
		}
		if n, ok := number(size); ok {
			wanted[key] += n
		}
	}
	return wanted
}

// newest is a gauge's value and the end of the span that it is from.
type newest struct {
	at    int64
	value float64
}

// testNewestValues compares the losses, the epoch, the learning rate and the
// metrics of validations with those of the spans that ended last.
func testNewestValues(t *testing.T, j *job) {
	found := map[string]map[string]newest{}
	show := func(metric, key string, at int64, value any) {
		v, ok := number(value)
		if !ok {
			return
		}
		if found[metric] == nil {
			found[metric] = map[string]newest{}
		}
		if at >= found[metric][key].at {
			found[metric][key] = newest{at, v}
		}
	}
	for _, span := range ofScenario(j.sent.Spans, "fx") {
		job, at := fmt.Sprint(span.Resource["service.name"]), span.EndUnixNano
		scope := "batch"
		if strings.Contains(span.Name, "epoch") {
			scope = "epoch"
			if _, n, numbered := strings.Cut(span.Name, "epoch_"); numbered {
				epoch, err := strconv.Atoi(n)
				require.NoError(t, err)
				show("ml_epoch", job, at, epoch)
			}
		}
		for key, value := range span.Attributes {
			name, _ := strings.CutPrefix(key, "val_")
			switch {
			case key == "epoch":
				show("ml_epoch", job, at, value)
			case key == "loss" || key == "train_loss":
				show("ml_loss", job+"/"+scope+"/", at, value)
			case strings.HasPrefix(key, "task."):
				show("ml_loss", job+"/"+scope+"/"+strings.TrimPrefix(key, "task."), at, value)
			case key == "val_loss" || key == "val.loss":
				show("ml_loss", job+"/validation/", at, value)
			case name == "metric" && key == "val_metric":
				show("ml_validation_metric", job+"/metric", at, value)
			case strings.HasPrefix(key, "val."):
				show("ml_validation_metric", job+"/"+strings.TrimPrefix(key, "val."), at, value)
			}
		}
	}
	for _, span := range ofScenario(j.sent.Spans, "tuft") {
		show("ml_learning_rate", fmt.Sprint(span.Attributes["tuft.training_run_id"]), span.EndUnixNano, span.Attributes["tuft.learning_rate"])
	}
	steps, samples := map[string]float64{}, map[string]float64{}
	for _, span := range ofScenario(j.sent.Spans, "snakepit") {
		job := jobOf(span)
		for _, event := range span.Events {
			size, ok := number(event.Attributes["batch_size"])
			if ok && (event.Name == "snakepit.ml.train_step" || event.Name == "snakepit.ml.inference") {
				samples[job] += size
			}
			if event.Name != "snakepit.ml.train_step" {
				continue
			}
			steps[job]++
			show("snakepit ml_loss", job+"/batch/", event.TimeUnixNano, event.Attributes["loss"])
			show("snakepit ml_epoch", job, event.TimeUnixNano, event.Attributes["epoch"])
			show("snakepit ml_learning_rate", job, event.TimeUnixNano, event.Attributes["learning_rate"])
		}
	}
	fx, snakepit := `{job=~"fx-forecasting|unknown_service:python"}`, `{job=~"snakepit/.*|unknown_service:erl"}`
	t.Run("snakepit's steps", func(t *testing.T) {
		j.prometheus.AwaitNear(t, "ml_steps_total"+snakepit, []string{"job"}, steps, 0)
		j.prometheus.AwaitNear(t, "ml_samples_total"+snakepit, []string{"job"}, samples, 0)
	})
	for metric, query := range map[string]struct {
		selector string
		labels   []string
	}{
		"ml_loss":              {fx, []string{"job", "ml_loss_scope", "ml_task"}},
		"ml_validation_metric": {fx, []string{"job", "ml_metric"}},
		"ml_epoch":             {fx, []string{"job"}},
		"ml_learning_rate":     {`{job="tuft"}`, []string{"ml_run_id"}},

		"snakepit ml_loss":          {snakepit, []string{"job", "ml_loss_scope", "ml_task"}},
		"snakepit ml_epoch":         {snakepit, []string{"job"}},
		"snakepit ml_learning_rate": {snakepit, []string{"job"}},
	} {
		t.Run(metric, func(t *testing.T) {
			of := found[metric]
			metric := strings.TrimPrefix(metric, "snakepit ")
			wanted := map[string]float64{}
			for key, n := range of {
				wanted[key] = n.value
			}
			j.prometheus.AwaitNear(t, metric+query.selector, query.labels, wanted, 0)
		})
	}
}

// testTokenRates compares the histogram of TaskWeaver's rates, which rest on the
// output and the length of each span.
func testTokenRates(t *testing.T, j *job) {
	count, sum := 0.0, 0.0
	for _, span := range ofScenario(j.sent.Spans, "taskweaver") {
		output, ok := number(span.Attributes["output_size"])
		seconds := float64(span.EndUnixNano-span.StartUnixNano) / 1e9
		if ok && seconds >= 1e-3 {
			count++
			sum += output / seconds
		}
	}
	none := []string{"ml_throughput_basis"}
	selector := `{job="taskweaver.otlp.tracer"}`
	j.prometheus.AwaitNear(t, "ml_request_token_throughput_per_second_count"+selector, none, map[string]float64{"span": count}, 0)
	j.prometheus.AwaitNear(t, "ml_request_token_throughput_per_second_sum"+selector, none, map[string]float64{"span": sum}, exact)
}
