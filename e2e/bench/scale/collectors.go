package main

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/sys/unix"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// settle is how long a collector may take for what it has accepted.
const settle = 2 * time.Minute

// collector is a running agent or gateway.
type collector struct {
	testing.TB
	*harness.Collector
	sender *harness.GRPCSender
	// folder has its queue.
	folder string
}

// start starts a collector with a shipped configuration.
func start(tb testing.TB, config string, env []string, overrides map[string]any) *collector {
	tb.Helper()
	folder := filepath.Join(tb.TempDir(), "queue")
	c := &collector{TB: tb, folder: folder, Collector: harness.StartCollector(tb, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", config),
		Overrides: overrides,
		Env:       append(env, "OTELCOL_ML_QUEUE_DIR="+folder, "OTELCOL_ML_REPRO_DIR="+filepath.Join(folder, "reproductions")),
	})}
	sender, err := harness.NewGRPCSender(c.Address(tb, "receivers::otlp::protocols::grpc"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = sender.Close() })
	c.sender = sender
	return c
}

// agent starts one whose only gateway listens at an address.
func agent(tb testing.TB, gateway string, overrides map[string]any) *collector {
	tb.Helper()
	host, port, err := net.SplitHostPort(gateway)
	if err != nil {
		tb.Fatal(err)
	}
	return start(tb, "agent-gateway.yaml", []string{"GATEWAY_HOST=" + host, "GATEWAY_PORT=" + port}, overrides)
}

// gateway starts one that sends to a back end.
func gateway(tb testing.TB, backend string, overrides map[string]any, env ...string) *collector {
	tb.Helper()
	return start(tb, "gateway.yaml", append(env, "JAEGER_ENDPOINT="+backend, "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT="+backend), overrides)
}

// senders is how many requests are under way at once.
const senders = 4

// send sends requests and waits for the answers.
func (c *collector) send(traces []ptrace.Traces, metrics []pmetric.Metrics) {
	c.Helper()
	requests := make(chan func(context.Context) error)
	errs := make(chan error, senders)
	var running sync.WaitGroup
	for range senders {
		running.Go(func() {
			for request := range requests {
				if err := request(c.Context()); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for _, td := range traces {
		requests <- func(ctx context.Context) error { return c.sender.Traces(ctx, td) }
	}
	for _, md := range metrics {
		requests <- func(ctx context.Context) error { return c.sender.Metrics(ctx, md) }
	}
	close(requests)
	running.Wait()
	select {
	case err := <-errs:
		c.Fatal(err)
	default:
	}
}

// processor returns the processor time that the collector has had. The number of a
// process's clock is made of its id as in clock_getcpuclockid(3).
func (c *collector) processor() time.Duration {
	c.Helper()
	const schedulerClock = 2
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^c.PID()<<3|schedulerClock), &spent); err != nil {
		c.Fatal(err)
	}
	return time.Duration(spent.Nano())
}

// spent returns the processor time in microseconds that the collector needs for
// something, until done reports that all of it has left the collector.
func (c *collector) spent(something func(), done func() bool) float64 {
	c.Helper()
	before := c.processor()
	something()
	c.await("everything has left the collector", done)
	return float64((c.processor() - before).Nanoseconds()) / 1e3
}

// await waits for a condition.
func (c *collector) await(what string, condition func() bool) {
	c.Helper()
	for deadline := time.Now().Add(settle); !condition(); pass(c, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatalf("after %s not yet: %s", settle, what)
		}
	}
}

// pass lets time pass: the window of a measurement.
func pass(tb testing.TB, window time.Duration) {
	tb.Helper()
	select {
	case <-tb.Context().Done():
	case <-time.After(window):
	}
}

// own returns one of the collector's own metrics, by its name and a label.
func (c *collector) own(name string, labels harness.Labels) float64 {
	c.Helper()
	samples, err := harness.Scrape(c.Context(), c.Address(c, harness.TelemetryPath))
	if err != nil {
		c.Fatal(err)
	}
	for _, sample := range samples {
		if strings.HasPrefix(sample.Labels["__name__"], name) && len(harness.Select([]harness.Sample{sample}, sample.Labels["__name__"], labels)) == 1 {
			return sample.Value
		}
	}
	c.Fatalf("the collector has no metric %s %v", name, labels)
	return 0
}
