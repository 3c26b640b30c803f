package smoke

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// startKafkaAgent starts a collector with agent-kafka.yaml, without GPUs.
func startKafkaAgent(t *testing.T, broker string) *harness.Collector {
	t.Helper()
	dir := t.TempDir()
	return harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent-gateway.yaml"),
		Merged: []string{harness.Path("distribution", "config", "agent-kafka.yaml")},
		Env:    []string{"KAFKA_BROKERS=[" + broker + "]", "OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue")},
		Dir:    dir,
		Overrides: map[string]any{
			"service::pipelines::metrics::receivers":                []string{"otlp"},
			"service::pipelines::logs::receivers":                   []string{"otlp"},
			"exporters::kafka::sending_queue::batch::flush_timeout": "100ms",
		},
	})
}

// startKafkaGateway starts a collector with gateway-kafka.yaml.
func startKafkaGateway(t *testing.T, broker, id string, env []string, overrides map[string]any) *harness.Collector {
	t.Helper()
	return startKafkaGatewayIn(t, t.TempDir(), broker, id, env, overrides)
}

// startKafkaGatewayIn is startKafkaGateway with the folder of the queues.
func startKafkaGatewayIn(t *testing.T, dir, broker, id string, env []string, overrides map[string]any) *harness.Collector {
	t.Helper()
	return harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "gateway.yaml"),
		Merged: []string{harness.Path("distribution", "config", "gateway-kafka.yaml")},
		Env: append(env, "KAFKA_BROKERS=["+broker+"]", "COLLECTOR_INSTANCE_ID="+id,
			"OTELCOL_ML_QUEUE_DIR="+filepath.Join(dir, "queue")),
		Dir:       dir,
		Overrides: overrides,
	})
}

// All that belongs to a run goes through partitions of one number to one gateway, and
// runs are spread.
func TestKafkaBringsAllSignalsOfARunToOneGateway(t *testing.T) {
	t.Parallel()
	const runs = 30
	broker := harness.StartKafkaStandIn(t)
	ids, sinks := []string{"gateway-0", "gateway-1", "gateway-2"}, []*harness.Sink{}
	for _, id := range ids {
		sink := harness.StartSink(t)
		sinks = append(sinks, sink)
		startKafkaGateway(t, broker, id, []string{"JAEGER_ENDPOINT=" + sink.Endpoint, "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + sink.Endpoint}, map[string]any{
			// The sink is to see the routes.
			"service::pipelines::traces/in::processors":   []string{},
			"service::pipelines::traces/out::processors":  []string{},
			"service::pipelines::metrics::processors":     []string{},
			"service::pipelines::logs::processors":        []string{},
			"service::pipelines::logs/derived::exporters": []string{"debug"},
			"service::pipelines::metrics::exporters":      []string{"otlp_grpc/metrics", "ml_metrics"},
			"exporters::otlp_grpc/metrics":                map[string]any{"endpoint": sink.Endpoint, "tls": map[string]any{"insecure": true}},
		})
	}
	harness.AwaitKafkaMembers(t, broker, ids...)
	sender := senderTo(t, startKafkaAgent(t, broker))
	td, md, ld := runsOfOneService(runs)
	require.NoError(t, sender.Traces(t.Context(), td))
	require.NoError(t, sender.Metrics(t.Context(), md))
	require.NoError(t, sender.Logs(t.Context(), ld))

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		spans, points, records := 0, 0, 0
		for _, sink := range sinks {
			spans += len(sink.Spans())
			records += len(sink.LogRecords())
			for _, md := range sink.MetricRequests() {
				points += md.DataPointCount()
			}
		}
		assert.Equal(c, [3]int{runs + 1, runs + 1, runs + 1}, [3]int{spans, points, records})
	}, arrival, poll)
	assertRoutes(t, runs, sinks...)
}

// counted are counters of ml_metrics.
var counted = []string{"ml_steps_total", "ml_batches_total", "ml_samples_total", "ml_tokens_total", "ml_requests_total", "ml_errors_total"}

// Two gateways behind Kafka count together exactly what one collector counts.
func TestKafkaGatewaysCountLikeOneCollector(t *testing.T) {
	t.Parallel()
	overrides := map[string]any{"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s"}
	workload := harness.Workload{Scenarios: "all", Seed: 7, Duration: 2 * time.Second, Rate: 25, Ranks: 4}
	single := startWith(t, "production.yaml", maps.Clone(overrides))
	sent := harness.Generate(t, single, workload)
	require.NotEmpty(t, sent.Spans)

	broker := harness.StartKafkaStandIn(t)
	gateways := []*harness.Collector{
		startKafkaGateway(t, broker, "gateway-0", nil, maps.Clone(overrides)),
		startKafkaGateway(t, broker, "gateway-1", nil, maps.Clone(overrides)),
	}
	harness.AwaitKafkaMembers(t, broker, "gateway-0", "gateway-1")
	harness.Generate(t, startKafkaAgent(t, broker), workload)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		want := totals(c, t, single)
		assert.Greater(c, len(want), 20, "series of one collector")
		assert.Equal(c, want, totals(c, t, gateways...))
	}, arrival, poll)
}

// totals returns the sums of the counters over collectors, by their labels.
func totals(c *assert.CollectT, t *testing.T, collectors ...*harness.Collector) map[string]float64 {
	sums := map[string]float64{}
	for _, collector := range collectors {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		for _, name := range counted {
			for _, one := range harness.Select(samples, name, nil) {
				sums[labelsText(one.Labels)] += one.Value
			}
		}
	}
	return sums
}

// A gateway stops reading while its queue is full. What it has not read then arrives
// when it is back, also after SIGTERM.
func TestKafkaKeepsWhatAGatewayCannotTake(t *testing.T) {
	t.Parallel()
	const runs = 60
	broker, sink := harness.StartKafkaStandIn(t), harness.StartSink(t)
	dir := t.TempDir()
	full := startKafkaGatewayIn(t, dir, broker, "gateway-0", nil, map[string]any{
		"exporters::otlp_grpc/jaeger::sending_queue::queue_size":      8000,
		"exporters::otlp_grpc/jaeger::sending_queue::batch::min_size": 1000,
	})
	harness.AwaitKafkaMembers(t, broker, "gateway-0")
	td, _, _ := runsOfOneService(runs)
	require.NoError(t, senderTo(t, startKafkaAgent(t, broker)).Traces(t.Context(), td))
	full.AwaitOutput(t, "Backing off due to error from the next consumer.")
	assert.Zero(t, full.Stop(t))

	startKafkaGatewayIn(t, dir, broker, "gateway-0", []string{"JAEGER_ENDPOINT=" + sink.Endpoint}, nil)
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Len(c, sink.Spans(), runs+1) }, arrival, poll)
}

// What is no telemetry, and what is too large for a message, holds nothing up.
func TestKafkaSkipsWhatItCannotCarry(t *testing.T) {
	t.Parallel()
	broker, sink := harness.StartKafkaStandIn(t), harness.StartSink(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer client.Close()
	for partition := range int32(8) {
		result := client.ProduceSync(t.Context(), &kgo.Record{Topic: "otlp_spans", Partition: partition, Value: []byte("no telemetry")})
		require.NoError(t, result.FirstErr())
	}
	startKafkaGateway(t, broker, "gateway-0", []string{"JAEGER_ENDPOINT=" + sink.Endpoint}, nil)
	agent := startKafkaAgent(t, broker)
	sender := senderTo(t, agent)
	large, _, _ := runsOfOneService(0)
	for i := range 5 {
		large.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutStr(fmt.Sprintf("text.%d", i), strings.Repeat("x", 250000))
	}
	require.NoError(t, sender.Traces(t.Context(), large))
	agent.AwaitOutput(t, "Failed to split request.")
	td, _, _ := runsOfOneService(30)
	require.NoError(t, sender.Traces(t.Context(), td))
	require.Eventually(t, func() bool { return len(sink.Spans()) == 31 }, arrival, poll)
}
