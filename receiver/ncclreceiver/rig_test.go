package ncclreceiver

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/rastest"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/metadatatest"
)

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// here is the address of the host of a rig, there that of another.
const here, there = "10.0.0.1", "10.0.0.2"

// rig is a poller on a host of its own, whose clock a test moves.
type rig struct {
	*poller
	cfg     *Config
	server  *rastest.Server
	sentM   consumertest.MetricsSink
	sentL   consumertest.LogsSink
	own     *componenttest.Telemetry
	now     time.Time
	refused error
}

// newRig makes a rig whose NCCL gives these replies, the last again and again.
func newRig(t *testing.T, replies ...rastest.Reply) *rig {
	t.Helper()
	server := rastest.New(t, replies...)
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoint, cfg.RootPath = server.Endpoint, t.TempDir()
	writeFile(t, cfg, "etc/hostname", "node-1\n")
	writeFile(t, cfg, "proc/stat", "btime 1700000000\n")
	r := &rig{cfg: cfg, server: server, own: componenttest.NewTelemetry(), now: begin}
	t.Cleanup(func() { require.NoError(t, r.own.Shutdown(context.Background())) })
	return r
}

// process adds a process of a run to the host.
func (r *rig) process(t *testing.T, pid int, environment ...string) {
	t.Helper()
	folder := "proc/" + strconv.Itoa(pid) + "/"
	writeFile(t, r.cfg, folder+"stat", fmt.Sprintf("%d (python) S%s\n", pid, strings.Repeat(" 1", 30)))
	writeFile(t, r.cfg, folder+"status", fmt.Sprintf("Uid:\t1000\t1000\nNSpid:\t%d\n", pid))
	writeFile(t, r.cfg, folder+"cgroup", "0::/system.slice/slurmstepd.scope/job_42/step_0\n")
	writeFile(t, r.cfg, folder+"environ", strings.Join(environment, "\x00")+"\x00")
}

func writeFile(t *testing.T, cfg *Config, name, text string) {
	t.Helper()
	path := filepath.Join(cfg.RootPath, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// start makes the poller with the rig's configuration.
func (r *rig) start(t *testing.T) {
	t.Helper()
	require.NoError(t, r.cfg.Validate())
	p, err := newPoller(r.cfg, metadatatest.NewSettings(r.own))
	require.NoError(t, err)
	p.client.Handshake = time.Minute
	p.addresses = func() map[netip.Addr]bool { return map[netip.Addr]bool{netip.MustParseAddr(here): true} }
	var metrics consumer.Metrics = &r.sentM
	logs, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if r.refused != nil {
			return r.refused
		}
		return r.sentL.ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	p.metrics.next.Store(&metrics)
	p.logs.next.Store(&logs)
	r.poller = p
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
}

// polls polls n times, an interval apart.
func (r *rig) polls(t *testing.T, n int) {
	t.Helper()
	if r.poller == nil {
		r.start(t)
	}
	for range n {
		r.poll(t.Context(), r.now)
		r.now = r.now.Add(r.cfg.CollectionInterval)
	}
}

// latest returns the newest metrics.
func (r *rig) latest(t *testing.T) pmetric.Metrics {
	t.Helper()
	all := r.sentM.AllMetrics()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// said returns the bodies of all records.
func (r *rig) said() (bodies []string) {
	for _, ld := range r.sentL.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				bodies = append(bodies, record.Body().Str())
			}
		}
	}
	return bodies
}

// outcomes returns the number of queries by outcome.
func (r *rig) outcomes(t *testing.T) map[string]int64 {
	t.Helper()
	return r.counts(t, "otelcol_receiver_nccl_queries", "outcome")
}

// runIDs returns the runs of all points.
func runIDs(md pmetric.Metrics) string {
	runs := make(map[string]bool)
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			points := m.Gauge().DataPoints
			if m.Type() == pmetric.MetricTypeSum {
				points = m.Sum().DataPoints
			}
			for _, p := range points().All() {
				run, _ := p.Attributes().Get("ml.run.id")
				runs[run.Str()] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(runs)), ",")
}
