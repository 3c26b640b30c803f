package faults

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// counted returns how many batches ml_metrics shows, which is what the spans of the load are,
// and whether it shows any.
func (tr *trial) counted() (batches int, shown bool) {
	samples, err := harness.Scrape(tr.Context(), tr.collector.Address(tr, "exporters::prometheus"))
	if err != nil {
		return 0, false
	}
	for _, sample := range harness.Select(samples, "ml_batches_total", nil) {
		batches, shown = batches+int(sample.Value), true
	}
	return batches, shown
}

// A gateway counts every span that it acknowledged once, over two reloads under load. A kill
// loses the counts of less than two seconds, what clients send again counts once, and what
// was shown does not go back.
func TestCountsOutliveARestart(t *testing.T) {
	tr := newTrial(t, inMemory)
	tr.config, tr.load.resends, tr.load.runs = "gateway.yaml", true, 20
	tr.address = fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	tr.settings = map[string]any{
		"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s",
	}
	tr.backend.up(t)
	tr.start()
	tr.sending(func() {
		for range 2 {
			tr.awaitAcknowledged(5000)
			tr.reload()
		}
		tr.awaitAcknowledged(5000)
	})
	acknowledged, refused := tr.load.counts()
	tr.awaitBatches(acknowledged)
	t.Logf("two reloads: %d spans acknowledged, %d refused and sent again, all counted once", acknowledged, refused)

	// What is acknowledged is recorded, to know what it was two seconds before the kill.
	type moment struct {
		at           time.Time
		acknowledged int
	}
	var moments []moment
	began := time.Now()
	shown := 0
	tr.sending(func() {
		tr.await("spans are sent for some seconds", func() bool {
			n, _ := tr.load.counts()
			moments = append(moments, moment{time.Now(), n})
			if batches, is := tr.counted(); is {
				assert.GreaterOrEqual(t, batches, shown)
				shown = batches
			}
			return time.Since(began) > 5*time.Second
		})
		require.NoError(t, syscall.Kill(tr.collector.PID(), syscall.SIGKILL))
		killed := time.Now()
		atKill, _ := tr.load.counts()
		before := 0
		for _, m := range moments {
			if m.at.Before(killed.Add(-2 * time.Second)) {
				before = m.acknowledged
			}
		}
		tr.collector.Kill(t)
		tr.start()
		tr.await("it counts again", func() bool { _, is := tr.counted(); return is })
		again, _ := tr.counted()
		assert.GreaterOrEqual(t, again, shown, "what was shown")
		tr.awaitAcknowledged(5000)
		acknowledged = atKill - before
	})
	total, refused := tr.load.counts()
	counted, since := 0, time.Now()
	tr.await("all is counted", func() bool {
		now, is := tr.counted()
		if !is || now != counted {
			counted, since = now, time.Now()
		}
		return time.Since(since) > 5*time.Second
	})
	t.Logf("a kill: %d of %d spans acknowledged are not counted, of %d in the two seconds before; %d refused and sent again", total-counted, total, acknowledged, refused)
	assert.LessOrEqual(t, counted, total, "nothing counts twice")
	assert.Less(t, total-counted, acknowledged)
	tr.settle()
}
