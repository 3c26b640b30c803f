package faults

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// seen is what the page says.
type seen struct {
	Needs []struct {
		Kind    string `json:"kind"`
		Service string `json:"service"`
	} `json:"needs"`
	Missing []struct {
		What  string     `json:"what"`
		Why   string     `json:"why"`
		Count int64      `json:"count"`
		Since *time.Time `json:"since"`
	} `json:"missing"`
	text string
}

// page returns what the page says now, in its two forms.
func (tr *trial) page(c *assert.CollectT) (s seen) {
	address := "http://" + tr.collector.Address(tr, "exporters::ml_view")
	body, err := harness.Get(tr.Context(), address+"/api/v1/state")
	if assert.NoError(c, err) {
		assert.NoError(c, json.Unmarshal([]byte(body), &s))
	}
	s.text, err = harness.Get(tr.Context(), address+"/?width=200")
	assert.NoError(c, err)
	return s
}

// problems returns the kinds of problems. The load's connections send steps out of
// order, which can look like restarts; those of its service are left out.
func (s *seen) problems() (kinds []string) {
	for _, need := range s.Needs {
		if need.Kind != "restart_loop" || need.Service != "torchtel" {
			kinds = append(kinds, need.Kind+" of "+need.Service)
		}
	}
	return kinds
}

// losing returns what the page says of a loss that goes on, nil if there is none.
func (s *seen) losing(what string) (count int64, since *time.Time) {
	for _, m := range s.Missing {
		if m.Since != nil && strings.HasPrefix(m.What, what) {
			return m.Count, m.Since
		}
	}
	return 0, nil
}

// hangs takes connections at an address and never says a word, until the function that
// it returns is called.
func hangs(t *testing.T, address string) (end func()) {
	t.Helper()
	listener, err := shared.Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var held []net.Conn
		for {
			connection, err := listener.Accept()
			if err != nil {
				for _, one := range held {
					_ = one.Close()
				}
				return
			}
			held = append(held, connection)
		}
	}()
	return func() {
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			assert.NoError(t, err)
		}
		<-ended
	}
}

// A tracing back end that is down is nobody's problem but its own: no client is refused,
// everything is counted, no run has a problem, and the page says at the top since when
// how much is dropped. When the back end is up again, it says that it is over.
func TestABackEndThatIsAway(t *testing.T) {
	for name, away := range map[string]func(*trial) (end func()){
		"nobody listens": func(*trial) func() { return func() {} },
		"nobody answers": func(tr *trial) func() { return hangs(tr.T, tr.backend.address) },
		"requests hang": func(tr *trial) func() {
			tr.backend.answers(func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			tr.backend.up(tr.T)
			return func() {
				tr.backend.answers(nil)
				tr.backend.down(tr.T)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, inMemory)
			tr.smallQueue()
			delete(tr.settings, whenRefused)
			tr.settings["connectors::ml_metrics::flush_interval"] = "1s"
			tr.settings["connectors::ml_metrics::stall_timeout"] = "3s"
			tr.settings["exporters::ml_view::interval"] = "500ms"
			tr.settings[exporter+"timeout"] = "1s"
			end := away(tr)
			defer end()
			tr.start()
			fleet := harness.StartGenerator(tr, harness.Endpoints{
				GRPC: tr.endpoint(), HTTP: "http://" + tr.collector.Address(tr, "receivers::otlp::protocols::http"),
			}, harness.Workload{Seed: 31, Fleet: "runs=2,ranks=4,gpus=8", Rate: 5, Ranks: 4, MetricsInterval: time.Second})

			tr.load.most = 8000
			began := time.Now()
			tr.sendAll()
			acknowledged, refused := tr.load.counts()
			assert.Zero(t, refused, "clients are never refused")
			require.Equal(t, 8000, acknowledged)
			what := "Drops traces for the back end " + tr.backend.address
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				page := tr.page(c)
				count, since := page.losing(what)
				assert.Greater(c, count, int64(1000))
				if assert.NotNil(c, since) {
					assert.False(c, since.Before(began.Truncate(time.Second)))
					assert.Contains(c, page.text, what+", since "+since.UTC().Format("2 Jan 15:04:05 UTC"))
				}
				assert.Empty(c, page.problems())
			}, patience, poll)
			tr.awaitBatches(8000)
			assert.Positive(t, tr.metric("otelcol_processor_ml_guard_items_dropped", harness.Labels{"processor": "ml_guard/out", "signal": "traces"}))
			assert.Zero(t, tr.metric("otelcol_processor_ml_guard_items_refused", nil))
			assert.Zero(t, tr.metric("otelcol_receiver_refused_spans", nil))

			end()
			tr.backend.up(t)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				page := tr.page(c)
				_, since := page.losing(what)
				assert.Nil(c, since, "it is over")
				assert.Contains(c, page.text, "Traces for the back end "+tr.backend.address+" that were dropped")
				assert.Empty(c, page.problems())
			}, patience, poll)
			assert.Positive(t, tr.backend.arrived(), "what was in the queue arrives")
			fleet.Stop(t)
		})
	}
}

// A collector that refuses data says so, and that it concludes nothing from silence.
func TestACollectorThatRefuses(t *testing.T) {
	for name, refuse := range map[string]func(*trial){
		"a full queue": (*trial).smallQueue,
		"no memory": func(tr *trial) {
			tr.settings["processors::memory_limiter::limit_mib"] = 20
			tr.settings["processors::memory_limiter::spike_limit_mib"] = 5
			tr.settings["processors::memory_limiter::check_interval"] = "100ms"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, inMemory)
			tr.config = "production.yaml"
			refuse(tr)
			tr.settings["connectors::ml_metrics::flush_interval"] = "1s"
			tr.settings["exporters::ml_view::interval"] = "500ms"
			tr.start()
			tr.sending(func() {
				tr.awaitRefused()
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					page := tr.page(c)
					count, _ := page.losing("Refuses data: traces")
					assert.Positive(c, count)
					_, withheld := page.losing("Withholds problems of silence")
					assert.NotNil(c, withheld)
					assert.Contains(c, page.text, "Refuses data: traces, since ")
					assert.Contains(c, page.text, "Withholds problems of silence, since ")
				}, patience, poll)
			})
			assert.Positive(t, tr.metric("otelcol_processor_ml_guard_items_refused", harness.Labels{"signal": "traces"}))
			assert.Zero(t, tr.metric("otelcol_processor_ml_guard_items_dropped", nil))
		})
	}
}
