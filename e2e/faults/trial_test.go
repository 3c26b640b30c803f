package faults

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	// patience is how long a condition may take on a busy machine; a test that
	// passes does not wait for it.
	patience = 2 * time.Minute
	poll     = 50 * time.Millisecond
)

// queue is where the exporter keeps what the back end has not taken yet.
type queue struct {
	// name is what the page calls it.
	name string
	disk bool
	// settings are added to the shipped configuration, by their path.
	settings map[string]any
}

const exporter = "exporters::otlp_grpc/jaeger::"

// whenRefused says what becomes of what the exporter does not take. As shipped it is
// dropped. Trials set it to refuse, so that what is acknowledged must arrive.
const whenRefused = "processors::ml_guard/out::out::when_refused"

var (
	inMemory = queue{name: "memory"}
	// A client waits until the back end has answered.
	waiting = queue{name: "memory, `wait_for_result`", settings: map[string]any{
		exporter + "sending_queue::wait_for_result": true,
	}}
	onDisk      = queue{name: "disk", disk: true}
	onDiskFsync = queue{name: "disk, `fsync`", disk: true, settings: map[string]any{
		"extensions::file_storage/queue::fsync": true,
	}}
)

// trial is one collector with a back end, and a load that compares them.
type trial struct {
	*testing.T
	backend *backend
	load    *load
	queue   queue
	// settings are further ones, by their path.
	settings map[string]any
	// config is the name of the shipped configuration.
	config string
	// address is where the collector takes spans after each start, "" for another one each
	// time.
	address string
	// fileLimit is the size in bytes that no file of the collector's may exceed,
	// which is how a full disk looks to a queue; 0 is without limit.
	fileLimit int64
	// folder has the files of the queue.
	folder    string
	collector *harness.Collector
}

func newTrial(t *testing.T, queue queue) *trial {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "queue")
	require.NoError(t, os.Mkdir(folder, 0o700))
	return &trial{
		T: t, backend: newBackend(t), queue: queue, folder: folder,
		load:     &load{spans: 100},
		settings: map[string]any{whenRefused: "refuse"}, config: "agent.yaml",
	}
}

// start starts the collector with a shipped configuration, usually that of the agent,
// and for a queue on disk what the compose stack adds to it. What is sent again
// is sent again soon, so that a trial does not take minutes.
func (tr *trial) start() {
	tr.Helper()
	overrides := map[string]any{
		exporter + "retry_on_failure::initial_interval": "100ms",
		exporter + "retry_on_failure::max_interval":     "1s",
	}
	maps.Copy(overrides, tr.queue.settings)
	maps.Copy(overrides, tr.settings)
	if tr.address != "" {
		overrides["receivers::otlp::protocols::grpc::endpoint"] = tr.address
	}
	options := harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", tr.config),
		Overrides: overrides,
		Env: []string{
			"JAEGER_ENDPOINT=" + tr.backend.address,
			"OTELCOL_ML_QUEUE_DIR=" + tr.folder,
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(tr.TempDir(), "reproductions"),
		},
		FileLimit: tr.fileLimit,
	}
	if tr.queue.disk {
		options.Merged = []string{harness.Path("docker", "collector", "stack.yaml")}
	}
	tr.collector = harness.StartCollector(tr, options)
}

// endpoint is where the collector takes spans.
func (tr *trial) endpoint() string {
	if tr.address != "" {
		return tr.address
	}
	return tr.collector.Address(tr, "receivers::otlp::protocols::grpc")
}

// sending calls fault while spans are sent, and returns when all requests are
// answered.
func (tr *trial) sending(fault func()) {
	tr.Helper()
	ctx, cancel := context.WithCancel(tr.Context())
	var running sync.WaitGroup
	endpoint := tr.endpoint()
	running.Go(func() { tr.load.run(ctx, tr.T, endpoint) })
	defer running.Wait()
	defer cancel()
	fault()
}

// sendAll sends everything that the load has to send.
func (tr *trial) sendAll() {
	tr.Helper()
	tr.load.run(tr.Context(), tr.T, tr.endpoint())
}

// await waits for a condition.
func (tr *trial) await(what string, condition func() bool) {
	tr.Helper()
	require.Eventually(tr, condition, patience, poll, what)
}

// awaitAcknowledged waits until this many more spans are acknowledged.
func (tr *trial) awaitAcknowledged(more int) {
	tr.Helper()
	before, _ := tr.load.counts()
	tr.await("spans are acknowledged", func() bool {
		now, _ := tr.load.counts()
		return now >= before+more
	})
}

// awaitRefused waits until spans are refused.
func (tr *trial) awaitRefused() {
	tr.Helper()
	tr.await("spans are refused", func() bool {
		_, refused := tr.load.counts()
		return refused > 0
	})
}

// awaitArrived waits until this many more spans have arrived.
func (tr *trial) awaitArrived(more int) {
	tr.Helper()
	before := tr.backend.arrived()
	tr.await("spans arrive", func() bool { return tr.backend.arrived() >= before+more })
}

// awaitTries waits until the back end has answered this many more requests.
func (tr *trial) awaitTries(more int) {
	tr.Helper()
	before := tr.backend.requests()
	tr.await("the collector tries again", func() bool { return tr.backend.requests() >= before+more })
}

// reload has the collector read its configuration again, and waits until it
// runs with it.
func (tr *trial) reload() {
	tr.Helper()
	before := tr.starts()
	require.NoError(tr, syscall.Kill(tr.collector.PID(), syscall.SIGHUP))
	tr.await("it runs again", func() bool { return tr.starts() > before })
}

// starts returns how often the collector has begun to run.
func (tr *trial) starts() int {
	return strings.Count(tr.collector.Output(), "Everything is ready.")
}

// metric returns the sum of one of the collector's own metrics.
func (tr *trial) metric(name string, labels harness.Labels) float64 {
	tr.Helper()
	samples, err := harness.Scrape(tr.Context(), tr.collector.Address(tr, harness.TelemetryPath))
	require.NoError(tr, err)
	total := 0.0
	for _, sample := range harness.Select(samples, name, labels) {
		total += sample.Value
	}
	return total
}

// awaitBatches waits until ml_metrics has counted exactly this many batches, which
// is what the spans of the load are.
func (tr *trial) awaitBatches(want int) {
	tr.Helper()
	require.EventuallyWithT(tr, func(c *assert.CollectT) {
		samples, err := harness.Scrape(tr.Context(), tr.collector.Address(tr, "exporters::prometheus"))
		if !assert.NoError(c, err) {
			return
		}
		total := 0.0
		for _, sample := range harness.Select(samples, "ml_batches_total", nil) {
			total += sample.Value
		}
		assert.Equal(c, float64(want), total) //nolint:testifylint // counts are whole
	}, patience, poll)
}

// settle waits until the queue is empty and ends the collector.
func (tr *trial) settle() {
	tr.Helper()
	require.EventuallyWithT(tr, func(c *assert.CollectT) {
		samples, err := harness.Scrape(tr.Context(), tr.collector.Address(tr, harness.TelemetryPath))
		if !assert.NoError(c, err) {
			return
		}
		waiting := harness.Select(samples, "otelcol_exporter_queue_size", harness.Labels{"exporter": "otlp_grpc/jaeger"})
		if assert.NotEmpty(c, waiting) {
			assert.Zero(c, waiting[0].Value, "bytes in the queue")
		}
	}, patience, poll)
	assert.Zero(tr, tr.collector.Stop(tr), "exit code after SIGTERM")
}

// outcome is what a trial counted.
type outcome struct {
	acknowledged, refused, lost, twice int
}

func (tr *trial) outcome() outcome {
	acknowledged, refused := tr.load.counts()
	lost, twice := tr.backend.compare(tr.load.ids())
	return outcome{acknowledged: acknowledged, refused: refused, lost: lost, twice: twice}
}
