package gpureceiver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadatatest"
)

// fakeKernelLog is a pipe that keeps records apart, as /dev/kmsg does.
type fakeKernelLog struct {
	path  string
	write *os.File
	count int
}

func newFakeKernelLog(t *testing.T) *fakeKernelLog {
	t.Helper()
	pipe := make([]int, 2)
	require.NoError(t, syscall.Pipe2(pipe, syscall.O_DIRECT|syscall.O_CLOEXEC))
	read, write := os.NewFile(uintptr(pipe[0]), "read"), os.NewFile(uintptr(pipe[1]), "write")
	t.Cleanup(func() {
		require.NoError(t, write.Close())
		require.NoError(t, read.Close())
	})
	return &fakeKernelLog{path: fmt.Sprintf("/proc/self/fd/%d", pipe[0]), write: write}
}

func (f *fakeKernelLog) says(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		f.count++
		_, err := fmt.Fprintf(f.write, "3,%d,5,-;%s\n", f.count, line)
		require.NoError(t, err)
	}
}

// kernelRig is a receiver with metrics and logs, a source whose events the test tells,
// and the kernel's log at a path.
type kernelRig struct {
	source  *toldSource
	scraper *gpuScraper
	logs    *gpuLogs
	sink    *consumertest.LogsSink
}

func newKernelRig(t *testing.T, path string) *kernelRig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.NVML.LibraryPath = filepath.Join(t.TempDir(), "none.so")
	cfg.KernelLog.Path = path
	require.NoError(t, cfg.Validate())
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	settings := metadatatest.NewSettings(telemetry)
	rig := &kernelRig{source: &toldSource{}, sink: new(consumertest.LogsSink)}
	process := func(pid uint32, run string) device.Process {
		return device.Process{PID: pid, Workload: workload.Workload{RunID: run}}
	}
	rig.source.gpus = []device.GPU{{
		Identity:  device.Identity{ID: "GPU-a", Name: "NVIDIA H100 80GB HBM3", PCIBusID: "0000:9b:00.0"},
		Processes: []device.Process{process(7, "run-1"), process(8, "run-2")}, EventsKnown: true,
	}, {
		Identity:  device.Identity{ID: "GPU-b", Index: 1, PCIBusID: "0009:01:00.0"},
		Processes: []device.Process{process(9, "run-3")},
	}}
	clock, all := newClock(), &monitors{}
	start(t, cfg, settings, all, rig, clock)
	return rig
}

func start(t *testing.T, cfg *Config, settings receiver.Settings, all *monitors, rig *kernelRig, clock *clock) {
	t.Helper()
	held := all.Use(settings.ID, func() (*monitor, error) {
		m, err := newMonitor(cfg, settings, clock.now)
		require.NoError(t, err)
		m.source = rig.source
		return m, nil
	})
	require.NoError(t, held.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, held.Shutdown(context.Background())) })
	rig.scraper = newScraper(cfg, settings, all)
	rig.scraper.now = clock.now
	require.NoError(t, rig.scraper.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, rig.scraper.Shutdown(context.Background())) })
	rig.logs = startLogs(t, cfg, settings, all, rig.sink, func(l *gpuLogs) { l.now = clock.now })
}

func (r *kernelRig) scrape(t *testing.T) pmetric.Metrics {
	t.Helper()
	metrics, err := r.scraper.ScrapeMetrics(t.Context())
	require.NoError(t, err)
	return metrics
}

// kernelState returns the state of the kernel's log, empty if it has none.
func (r *kernelRig) kernelState(t *testing.T) string {
	t.Helper()
	return present(r.scrape(t), "", "nvidia.gpu.kernel_log.state", "nvidia.gpu.kernel_log.state")
}

// present returns the only value of an attribute for which a metric is 1, and empty if
// there is none or several.
func present(metrics pmetric.Metrics, id, metric, attribute string) string {
	var states []string
	for _, point := range pointsOf(metrics, id, metric) {
		if point.IntValue() == 1 {
			states = append(states, text(point.Attributes(), attribute))
		}
	}
	if len(states) != 1 {
		return ""
	}
	return states[0]
}

// The lines of the kernel's log become records like NVML's, with what else they say;
// each error is one record and counts once, also if both report it.
func TestKernelLog(t *testing.T) {
	kernel := newFakeKernelLog(t)
	kernel.says(t, "NVRM: GPU at PCI:0000:18:00: GPU-3c1d5f0a-7b42-4e19-8a6d-52f0c9e1b374")
	rig := newKernelRig(t, kernel.path)
	require.Eventually(t, func() bool { return rig.kernelState(t) == "ok" }, time.Minute, time.Millisecond)

	kernel.says(t,
		"NVRM: Xid (PCI:0000:9b:00): 31, pid=8, name=python3.10, Ch 00000008, intr 00000000. MMU Fault",
		"NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000)",
		"NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
		"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion Link DLREQ interrupt",
		"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Severity 0 Engine instance 44 Sub-engine instance 00",
		"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Data {0x0000002c, 0x00000000, 0x00000000}",
		"nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
		"NVRM: GPU 0000:18:00.0: GPU has fallen off the bus",
		"NVRM: Xid (PCI:0000:19:00): 119, pid=1, name=nvidia-smi, Timeout after 6s",
	)
	golden.Compare(t, filepath.Join("testdata", "kernel_log", "expected.txt"), golden.Logs(t, await(t, rig.sink, 7)))
	ofNVML := eventOf("GPU-a", 31)
	ofNVML.GPU.PCIBusID = "0000:9b:00.0"
	rig.source.tell(ofNVML)
	kernel.says(t, "NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.", "NVRM: Xid (PCI:0000:18:00): 43, Ch 00000008")
	await(t, rig.sink, 8)
	assert.Equal(t, 8, rig.sink.LogRecordCount(), "a GPU is gone once")
	metrics := rig.scrape(t)
	assert.Equal(t, int64(1), errorsOf(metrics, "GPU-a")[31], "the log has what NVML reports")
	assert.Equal(t, int64(1), errorsOf(metrics, "GPU-b")[149])
	assert.Contains(t, errorsOf(metrics, "GPU-b"), int64(48), "the log knows of no error")
	switches := map[string]int64{}
	for _, point := range pointsOf(metrics, "", "nvidia.nvswitch.sxid.errors") {
		raw := point.Attributes().AsRaw()
		switches[fmt.Sprintln(raw["nvidia.nvswitch.pci.bus_id"], raw["nvidia.nvswitch.sxid.code"], raw["nvidia.nvswitch.sxid.fatal"])] = point.IntValue()
	}
	assert.Equal(t, map[string]int64{"0000:04:00.0 22013 false\n": 1, "0000:00:00.0 20034 true\n": 1}, switches)
	assert.Equal(t, "failed", present(metrics, "GPU-b", "hw.status", "hw.state"))
	assert.Equal(t, "ok", present(metrics, "GPU-a", "hw.status", "hw.state"))
}

// Without the log, NVML's errors are reported as before, and at once.
func TestWithoutAKernelLog(t *testing.T) {
	rig := newKernelRig(t, filepath.Join(t.TempDir(), "kmsg"))
	require.Eventually(t, func() bool { return rig.kernelState(t) == "absent" }, time.Minute, time.Millisecond)
	rig.source.tell(eventOf("GPU-a", 31))
	assert.Equal(t, int64(1), errorsOf(rig.scrape(t), "GPU-a")[31])
	await(t, rig.sink, 1)
	assert.Empty(t, errorsOf(rig.scrape(t), "GPU-b"), "nothing reports its errors")
}

// The process in the driver's message names the workload on a GPU that several use. A
// program that was not on the GPU is none of them.
func TestTheWorkloadOfAProcess(t *testing.T) {
	var seen tenants
	process := func(pid uint32, run string) device.Process {
		return device.Process{PID: pid, Workload: workload.Workload{RunID: run}}
	}
	seen.update(&device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{
		{Identity: device.Identity{ID: "shared"}, Processes: []device.Process{process(7, "run-1"), process(8, "run-2")}},
		{Identity: device.Identity{ID: "alone"}, Processes: []device.Process{process(9, "run-3")}},
	}})
	for _, test := range []struct {
		gpu      string
		code     uint64
		pid      int64
		expected string
	}{
		{"shared", 31, 8, "run-2"}, {"shared", 31, 7, "run-1"}, {"shared", 31, 10, ""},
		{"alone", 31, 9, "run-3"}, {"alone", 31, 10, ""}, {"alone", 119, 10, "run-3"},
	} {
		event := eventOf(test.gpu, test.code)
		event.PID = workload.Number{Value: test.pid, Known: true}
		assert.Equal(t, test.expected, seen.of(&event).RunID, strings.Join([]string{test.gpu, fmt.Sprint(test.code, test.pid)}, " "))
	}
	assert.Empty(t, seen.of(&device.Event{GPU: device.Identity{ID: "alone"}, Switch: &device.Switch{}}).RunID)
}
