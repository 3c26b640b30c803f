package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	tr.awaitBatches(8000)
	tr.settle()
	lost, _ := tr.backend.compare(tr.load.ids())
	assert.Zero(t, lost)
}
