package clients

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/stacks"
)

// TestDocumentedStacks has the clients send to the endpoints that the systems'
// documents have, to the set-ups that these have, with nothing but the image
// replaced. TorchTel is the real one.
func TestDocumentedStacks(t *testing.T) {
	t.Run("torchtel", func(t *testing.T) {
		// The other tests count the spans of a service.
		jaeger := harness.StartJaeger(t)
		s := stacks.Start(t, "torchtel", jaeger, nil)
		truth := harness.RunExample(t, harness.Example{Name: "torchtel", Endpoint: "http://" + s.Published(t, 11000)})
		// Begun now, it has all of it with its first scrape.
		prometheus := s.StartPrometheus(t)
		jaeger.AwaitSpanCounts(t, truth.Services, truth.Spans)
		// Of the other two names that its documents have, one needs CUDA and one
		// is never sent.
		stacks.AwaitQuery(t, prometheus, "train_step_count_total", func(c *assert.CollectT, sample harness.Sample) {
			assert.Equal(c, "torchtel", sample.Labels["exported_job"])
			assert.Positive(c, sample.Value)
		})
		s.Stop(t)
	})
	t.Run("taskweaver", func(t *testing.T) {
		jaeger := harness.StartJaeger(t)
		s := stacks.Start(t, "taskweaver", jaeger, nil)
		prometheus := s.StartPrometheus(t)
		truth := harness.RunExample(t, harness.Example{Name: "taskweaver", Endpoint: "http://" + s.Published(t, 4317)})
		jaeger.AwaitSpanCounts(t, truth.Services, truth.Spans)
		all := map[string]float64{}
		for _, tokens := range truth.Tokens {
			all["input"] += float64(tokens.Input)
			all["output"] += float64(tokens.Output)
		}
		prometheus.AwaitValues(t, "sum by (direction) (prompt_size_total)", "direction", all)
		stacks.AwaitQuery(t, prometheus, "increase(prompt_size_total[10m])", func(c *assert.CollectT, sample harness.Sample) {
			assert.Equal(c, "taskweaver.otlp.tracer", sample.Labels["exported_job"])
		})
		s.Stop(t)
	})
}
