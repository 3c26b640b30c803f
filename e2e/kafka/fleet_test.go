package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	traces = iota
	metrics
	logs
	signals
)

// names of what the signals have.
var names = [signals]string{"spans", "points", "records"}

const (
	gaugeName = "load.item"
	idKey     = "load.item"

	// patience is how long a condition may take on a busy machine; a test that
	// passes does not wait for it.
	patience = 2 * time.Minute
	poll     = 100 * time.Millisecond
)

// fleet is an agent, Kafka and gateways, each with a back end of its own, so that it
// is known what each gateway has delivered.
type fleet struct {
	*testing.T
	kafka    *harness.Kafka
	agent    *harness.Collector
	gateways []*gateway
	load     load
	folder   string
	// endpoint is where the agent listens, over its restarts.
	endpoint string
}

// gateway is one of them. It keeps its name and its queue over restarts.
type gateway struct {
	id        string
	sink      *harness.Sink
	collector *harness.Collector
	// lives are the batches that ml_metrics has counted, one number for each start.
	lives []float64
}

// newFleet starts Kafka, two gateways and an agent with the shipped configurations.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{
		T: t, kafka: harness.StartKafka(t), folder: t.TempDir(),
		endpoint: fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)),
	}
	f.startAgent()
	f.join()
	f.join()
	return f
}

func (f *fleet) startAgent() {
	f.Helper()
	f.agent = harness.StartCollector(f, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent-gateway.yaml"),
		Merged: []string{harness.Path("distribution", "config", "agent-kafka.yaml")},
		Env: []string{
			"KAFKA_BROKERS=[" + f.kafka.Address + "]",
			"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(f.folder, "agent"),
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(f.folder, "reproductions"),
		},
		Overrides: map[string]any{
			"receivers::otlp::protocols::grpc::endpoint": f.endpoint,
			"service::pipelines::metrics::receivers":     []string{"otlp"},
			"service::pipelines::logs::receivers":        []string{"otlp"},
		},
	})
}

// join starts one more gateway.
func (f *fleet) join() {
	f.Helper()
	g := &gateway{id: fmt.Sprintf("gateway-%d", len(f.gateways)), sink: harness.StartSink(f)}
	f.gateways = append(f.gateways, g)
	f.start(g)
}

// start starts a gateway, which exports metrics by OTLP as it does spans.
func (f *fleet) start(g *gateway) {
	f.Helper()
	g.lives = append(g.lives, 0)
	exporter := map[string]any{
		"endpoint": g.sink.Endpoint, "tls": map[string]any{"insecure": true},
		"sending_queue": map[string]any{"storage": "file_storage/queue", "sizer": "bytes", "queue_size": 268435456},
	}
	g.collector = harness.StartCollector(f, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "gateway.yaml"),
		Merged: []string{harness.Path("distribution", "config", "gateway-kafka.yaml")},
		Env: []string{
			"KAFKA_BROKERS=[" + f.kafka.Address + "]", "COLLECTOR_INSTANCE_ID=" + g.id,
			"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(f.folder, g.id),
			"JAEGER_ENDPOINT=" + g.sink.Endpoint, "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + g.sink.Endpoint,
		},
		Overrides: map[string]any{
			"exporters::otlp_grpc/metrics":           exporter,
			"service::pipelines::metrics::exporters": []string{"otlp_grpc/metrics", "ml_metrics"},
			"connectors::ml_metrics::flush_interval": "100ms",
			"connectors::ml_metrics::initial_zero":   "0s",
		},
	})
}

// scrape reads the counter of the gateway's present life, as Prometheus would.
func (g *gateway) scrape(t *testing.T) {
	t.Helper()
	samples, err := harness.Scrape(t.Context(), g.collector.Address(t, "exporters::prometheus"))
	require.NoError(t, err)
	total := 0.0
	for _, sample := range harness.Select(samples, "ml_batches_total", nil) {
		total += sample.Value
	}
	g.lives[len(g.lives)-1] = total
}

// counted returns what Prometheus has of batches: the sum over gateways and lives.
func (f *fleet) counted() (sum int) {
	f.Helper()
	for _, g := range f.gateways {
		if g.collector.Running() {
			g.scrape(f.T)
		}
		for _, life := range g.lives {
			sum += int(life)
		}
	}
	return sum
}

// kill kills a gateway whose counters have just been scraped.
func (f *fleet) kill(g *gateway) {
	f.Helper()
	g.scrape(f.T)
	g.collector.Kill(f.T)
}

// stop ends a gateway by SIGTERM, whose counters have just been scraped.
func (f *fleet) stop(g *gateway) {
	f.Helper()
	g.scrape(f.T)
	assert.Zero(f, g.collector.Stop(f.T), "exit code of %s after SIGTERM", g.id)
}

// sending calls fault while the load is sent, and returns when all of it is
// acknowledged.
func (f *fleet) sending(fault func()) {
	f.Helper()
	ctx, stop := context.WithCancel(f.Context())
	var running sync.WaitGroup
	running.Go(func() { f.load.run(ctx, f.T, f.endpoint) })
	defer running.Wait()
	defer stop()
	f.arrives(1000, f.gateways...)
	fault()
}

// arrives waits until each of the gateways has delivered this many more of each
// signal.
func (f *fleet) arrives(more int, gateways ...*gateway) {
	f.Helper()
	before := map[*gateway][signals]int{}
	for _, g := range gateways {
		before[g] = g.delivered()
	}
	require.Eventually(f, func() bool {
		for _, g := range gateways {
			now := g.delivered()
			for signal := range signals {
				if now[signal] < before[g][signal]+more {
					return false
				}
			}
		}
		return true
	}, patience, poll, "items arrive")
}

// acknowledges waits until the agent has accepted this many more of each signal.
func (f *fleet) acknowledges(more int) {
	f.Helper()
	before := f.load.count()
	require.Eventually(f, func() bool {
		now := f.load.count()
		return now[traces] >= before[traces]+more && now[metrics] >= before[metrics]+more && now[logs] >= before[logs]+more
	}, patience, poll, "items are acknowledged")
}

// members waits until Kafka has these gateways alone in its consumer groups.
func (f *fleet) members(gateways ...*gateway) {
	f.Helper()
	var ids []string
	for _, g := range gateways {
		ids = append(ids, g.id)
	}
	harness.AwaitKafkaMembers(f, f.kafka.Address, ids...)
}

func (g *gateway) delivered() (n [signals]int) {
	for signal, times := range g.arrivals() {
		n[signal] = len(times)
	}
	return n
}

// arrivals returns how often the back end has received each id of each signal.
func (g *gateway) arrivals() (times [signals]map[uint64]int) {
	for signal := range times {
		times[signal] = map[uint64]int{}
	}
	for _, span := range g.sink.Spans() {
		id := span.SpanID()
		times[traces][binary.BigEndian.Uint64(id[:])-1]++
	}
	for _, md := range g.sink.MetricRequests() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, metric := range sm.Metrics().All() {
					if metric.Name() != gaugeName {
						continue
					}
					for _, point := range metric.Gauge().DataPoints().All() {
						times[metrics][uint64(point.IntValue())]++ // #nosec G115 -- the load's
					}
				}
			}
		}
	}
	for _, record := range g.sink.LogRecords() {
		if id, ok := record.Attributes().Get(idKey); ok {
			times[logs][uint64(id.Int())]++ // #nosec G115 -- the load's
		}
	}
	return times
}

// outcome is what became of the acknowledged items of one signal.
type outcome struct {
	acknowledged, lost int
	// same are copies beyond the first of what one gateway has delivered, and moved
	// items that two gateways have.
	same, moved int
}

// outcomes compares what is acknowledged with what the gateways have delivered.
func (f *fleet) outcomes() (all [signals]outcome) {
	acknowledged := f.load.count()
	var gateways [signals]map[uint64]int
	for signal := range all {
		gateways[signal] = map[uint64]int{}
		all[signal].acknowledged = acknowledged[signal]
	}
	for _, g := range f.gateways {
		for signal, times := range g.arrivals() {
			for id, n := range times {
				gateways[signal][id]++
				all[signal].same += n - 1
			}
		}
	}
	f.load.mu.Lock()
	defer f.load.mu.Unlock()
	for signal := range all {
		for _, n := range gateways[signal] {
			all[signal].moved += n - 1
		}
		for _, first := range f.load.acknowledged[signal] {
			for id := first; id < first+items; id++ {
				if gateways[signal][id] == 0 {
					all[signal].lost++
				}
			}
		}
	}
	return all
}

// settle waits until everything that was acknowledged is delivered, stops what runs,
// from the agent on, and returns the outcomes and what was counted.
func (f *fleet) settle() (all [signals]outcome, counted int) {
	f.Helper()
	require.EventuallyWithT(f, func(c *assert.CollectT) {
		for signal, one := range f.outcomes() {
			assert.Zero(c, one.lost, "acknowledged %s are lost", names[signal])
		}
	}, patience, poll)
	assert.Zero(f, f.agent.Stop(f.T), "the agent's exit code after SIGTERM")
	harness.AwaitKafkaRead(f, f.kafka.Address)
	// The counters are read when an emission has not changed them.
	before := -1
	require.Eventually(f, func() bool {
		before, counted = counted, f.counted()
		return before == counted
	}, patience, 5*poll)
	for _, g := range f.gateways {
		f.stop(g)
	}
	return f.outcomes(), counted
}
