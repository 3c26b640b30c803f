package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"runs=500,ranks=8,gpus=512": {500, 8, 512},
		"runs=3":                    {3, 8, 24},
		"gpus=16, runs=1":           {1, 8, 16},
		"runs=0,gpus=8":             {0, 8, 8},
	} {
		size, err := ParseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, size, text)
	}
	for _, text := range []string{"", "runs", "runs=x", "runs=-1", "ranks=0", "hosts=3", "gpus=999999", "runs=1,,"} {
		_, err := ParseSize(text)
		require.ErrorContains(t, err, "as in runs=500,ranks=8,gpus=512", text)
	}
}

func settings() scenario.Settings {
	return scenario.Settings{Seed: 7, Rate: 10, MetricsInterval: time.Second}
}

// TestFleet shows the runs, ranks, GPUs and services of a fleet, and that its
// requests are of a size that every server accepts.
func TestFleet(t *testing.T) {
	site := New(settings(), Size{Runs: 30, Ranks: 4, GPUs: 20})
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	steps, losses, gpus, holders, services := map[any]int{}, 0, map[any]bool{}, map[any]int{}, map[any]bool{}
	take := func(batches []scenario.Batch) {
		for _, batch := range batches {
			assert.LessOrEqual(t, batch.Items(), int64(maxSpans))
			for _, e := range batch.Entries() {
				switch {
				case e.Metric != nil && e.Metric.Name == "nvidia.gpu.info":
					gpus[e.Metric.Attributes["hw.id"]] = true
				case e.Metric != nil && e.Metric.Name == "nvidia.gpu.workload.memory.usage":
					holders[fmt.Sprint(e.Metric.Attributes["ml.run.id"], e.Metric.Attributes["ml.rank.global"])]++
				case e.Span != nil && e.Span.Name == "train_step":
					steps[e.Span.Resource["ml.run.id"]]++
				case e.Span != nil && e.Span.Name == "forward" && e.Span.Attributes["ml.loss"] != nil:
					losses++
				case e.Span != nil && e.Span.Attributes["gen_ai.agent.name"] != nil:
					services[e.Span.Resource["service.name"]] = true
				}
			}
		}
	}
	for range 600 {
		at = at.Add(site.StepTime())
		take(site.Step(at))
	}
	assert.Equal(t, []scenario.Batch(nil), site.flush(at, false), "nothing is due")
	take(site.Finish(at))
	assert.Len(t, steps, 30)
	total := 0
	for run, n := range steps {
		total += n
		assert.GreaterOrEqual(t, n, 4*600/31, run)
		assert.LessOrEqual(t, n, 4*600/9, run)
	}
	assert.Equal(t, total, losses)
	assert.Len(t, gpus, 20)
	assert.Len(t, holders, 20, "each GPU is held by a rank of its own")
	assert.Equal(t, map[any]bool{"support-agent": true, "search-rag": true}, services)
}

// TestFinish shows the clean end of a training.
func TestFinish(t *testing.T) {
	site := New(settings(), Size{Runs: 1, Ranks: 2})
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for range 100 {
		at = at.Add(site.StepTime())
		site.Step(at)
	}
	ends := 0
	for _, batch := range site.Finish(at) {
		for _, e := range batch.Entries() {
			if e.Span != nil && e.Span.Attributes["ml.phase"] == "train" {
				ends++
				assert.Equal(t, at.UnixNano(), e.Span.EndUnixNano)
			}
		}
	}
	assert.Equal(t, 2, ends)
}

// TestAfterAPause shows that a run does not take a minute's steps at once.
func TestAfterAPause(t *testing.T) {
	site := NewSite("paused", settings())
	site.Train(Training{Service: "trainer", Job: 1, Places: []Place{{Host: "a"}}})
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	site.Step(at)
	before := site.runs[0].steps
	site.Step(at.Add(time.Hour))
	assert.LessOrEqual(t, site.runs[0].steps-before, 1)
	site.Finish(at.Add(2 * time.Hour))
}
