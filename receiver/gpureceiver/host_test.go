package gpureceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/hosttree"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// hostMetrics are those of what a host has besides its GPUs.
var hostMetrics = map[string]bool{
	metadata.MetricsInfo.HostMountSilence.Name: true, metadata.MetricsInfo.HwNetworkUp.Name: true,
	metadata.MetricsInfo.HwNetworkBandwidthLimit.Name: true, metadata.MetricsInfo.InfinibandPortErrors.Name: true,
	metadata.MetricsInfo.InfinibandPortWaits.Name: true, metadata.MetricsInfo.PcieErrors.Name: true,
}

// newHostRig reads a host without a driver.
func newHostRig(t *testing.T, root string) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.RootPath, cfg.KernelLog.Enabled = root, false
	cfg.NVML.LibraryPath = filepath.Join(t.TempDir(), "absent.so")
	return newRig(t, cfg)
}

// ofHost returns only the metrics of what a host has besides its GPUs.
func ofHost(metrics pmetric.Metrics) pmetric.Metrics {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return !hostMetrics[m.Name()] })
		}
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool { return sm.Metrics().Len() == 0 })
	}
	metrics.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
	return metrics
}

// TestHost reads ports, PCIe links and mounts of a simulated host.
func TestHost(t *testing.T) {
	r := newHostRig(t, hosttree.Write(t))
	r.scraper.mounts.Ask = func(string) {}
	golden.Compare(t, filepath.Join("testdata", "host", "expected.txt"), golden.Metrics(t, ofHost(r.scrape(t))))
}

// TestHostWithoutLinks has no series.
func TestHostWithoutLinks(t *testing.T) {
	metrics := newHostRig(t, t.TempDir()).scrape(t)
	assert.NotEmpty(t, pointsOf(metrics, "", "nvidia.gpu.driver.state"))
	assert.Zero(t, ofHost(metrics).DataPointCount())
}

// TestMountThatDoesNotAnswer has the time for which it does not, and keeps no reading from the
// others.
func TestMountThatDoesNotAnswer(t *testing.T) {
	r := newHostRig(t, hosttree.Write(t))
	answer := make(chan struct{})
	r.scraper.mounts.Ask = func(path string) {
		if filepath.Base(path) == "home" {
			<-answer
		}
	}
	silence := func(metrics pmetric.Metrics) map[string]bool {
		is := make(map[string]bool)
		for _, point := range pointsOf(metrics, "", "host.mount.silence") {
			is[text(point.Attributes(), "system.filesystem.mountpoint")] = point.DoubleValue() > 0
		}
		return is
	}
	metrics := r.scrape(t)
	assert.True(t, silence(metrics)["/mnt/home"])
	assert.Len(t, silence(metrics), 3)
	assert.NotEmpty(t, pointsOf(metrics, "", "hw.network.up"))
	close(answer)
	require.Eventually(t, func() bool { return !silence(r.scrape(t))["/mnt/home"] }, time.Minute, time.Millisecond)
}

// TestHostOfARecording has none of this host: the recording is of another one.
func TestHostOfARecording(t *testing.T) {
	cfg := demoConfig()
	cfg.RootPath = hosttree.Write(t)
	assert.Zero(t, ofHost(newRig(t, cfg).scrape(t)).DataPointCount())
}
