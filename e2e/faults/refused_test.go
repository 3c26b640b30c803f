package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// What is refused and sent again goes through the pipeline twice: connectors and
// exporters of a pipeline all get a request, and one of them refuses it.
// ml_metrics counts a span once.
func TestRefusedSpansCountOnce(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, inMemory)
	tr.smallQueue()
	tr.settings["connectors::ml_metrics::flush_interval"] = "1s"
	tr.load.resends, tr.load.most = true, 8000
	tr.backend.answers(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		return nil
	})
	tr.backend.up(t)
	tr.start()
	tr.sendAll()

	_, refused := tr.load.counts()
	assert.Positive(t, refused, "nothing was refused")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), tr.collector.Address(t, "exporters::prometheus"))
		if !assert.NoError(c, err) {
			return
		}
		total := 0.0
		for _, sample := range harness.Select(samples, "ml_batches_total", nil) {
			total += sample.Value
		}
		assert.InDelta(c, 8000, total, 0)
	}, patience, poll)
	tr.settle()
	lost, _ := tr.backend.compare(tr.load.ids())
	assert.Zero(t, lost)
}
