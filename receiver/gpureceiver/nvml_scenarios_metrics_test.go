//go:build cgo && linux

package gpureceiver

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const (
	migHalf0 = "MIG-00000000-0000-0000-0002-000000000000"
	migHalf1 = "MIG-00000000-0000-0000-0001-000000000000"
	migWhole = "MIG-00000000-0000-0000-0003-000000000000"
	migOther = "MIG-00000000-0000-0000-0004-000000000000"
	migLeft  = "MIG-00000000-0000-0000-0005-000000000000"
)

func init() {
	maps.Copy(scenarios, map[string]scenario{
		"every metric":            {control: "count 1\nsamples 1000000\nstep 500000\nengines 1\nfans 2", run: runEveryMetric},
		"nothing wanted":          {control: "record 1", run: runNothingWanted},
		"nothing supported":       {control: nothingSupported, run: runNothingSupported},
		"busy time":               {control: "samples 1000000\nstep 500000", run: runBusyTime},
		"GPM":                     {run: runGPM},
		"GPM of an older GPU":     {control: "capability 80", run: runGPMOfAnOlderGPU},
		"GPM garbage":             {control: "gpm:2 -5000\ngpm_status:3 3\ngpm:10 300000", run: runGPMGarbage},
		"GPM released":            {run: runGPMReleased},
		"fields":                  {control: "type:82 99\ntype:269 1\nfield:194 -2\nstatus:94 999\nstatus:230 2", run: runFields},
		"fields of an old driver": {library: "OLD_DRIVER", run: runFieldsOfAnOldDriver},
		"fabric":                  {control: "fabric_state 0", run: runFabric},
		"NVLink 5":                {control: "nvlink5 1000", run: runNVLink5},
		"MIG":                     {control: "mig 1", run: runMIG},
		"MIG without names":       {control: "mig 1\nunnamed 1", run: runMIGWithoutNames},
		"MIG reconfigured":        {control: "mig 1", run: runMIGReconfigured},
		"MIG switched off":        {control: "mig 0", run: runMIGSwitchedOff},
		"MIG of a lost GPU":       {control: "mig 1", run: runMIGOfALostGPU},
	})
}

// everything is a configuration with every metric and attribute on.
func (d *fakeDriver) everything(t *testing.T) *Config {
	t.Helper()
	cfg := d.config(t)
	setMetrics(t, cfg, true)
	cfg.slowInterval = 0
	return cfg
}

// names returns the metrics of the resource with this hw.id.
func names(metrics pmetric.Metrics, id string) []string {
	var found []string
	for _, resource := range metrics.ResourceMetrics().All() {
		if text(resource.Resource().Attributes(), "hw.id") != id {
			continue
		}
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				found = append(found, metric.Name())
			}
		}
	}
	slices.Sort(found)
	return found
}

// by returns the values of a metric by one of its attributes.
func by(metrics pmetric.Metrics, id, name, attribute string) map[string]float64 {
	values := map[string]float64{}
	for _, point := range pointsOf(metrics, id, name) {
		value := point.DoubleValue()
		if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(point.IntValue())
		}
		values[text(point.Attributes(), attribute)] = value
	}
	return values
}

// failed returns how often each call failed.
func (r *rig) failed(t *testing.T) map[string]int64 {
	t.Helper()
	metric, err := r.telemetry.GetMetric("otelcol_receiver_gpu_failed_calls")
	if err != nil {
		return nil
	}
	calls := map[string]int64{}
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		name, _ := point.Attributes.Value("nvml.call")
		code, _ := point.Attributes.Value("nvml.return")
		calls[name.AsString()+" "+code.AsString()] += point.Value
	}
	return calls
}

// Every value that NVML tells comes out where it belongs, once.
func runEveryMetric(t *testing.T, d *fakeDriver) {
	cfg, root := d.everything(t), t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(cfg.RootPath)))
	pci := filepath.Join(root, "sys", "bus", "pci", "devices", "0001:19:00.0")
	require.NoError(t, os.MkdirAll(pci, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(pci, "numa_node"), []byte("1\n"), 0o600))
	cfg.RootPath = root
	r := newRig(t, cfg)
	r.scrape(t)
	d.set(t, "count 1", "samples 2500000", "step 500000", "engines 1", "fans 2")
	assert.Len(t, pointsOf(r.after(t, 10*time.Second), gpu0, "nvidia.gpu.pcie.throughput"), 2)
	d.set(t, "count 1", "samples 4000000", "step 500000", "engines 1", "fans 2")
	r.clock = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	metrics := r.scrape(t)
	golden.Compare(t, filepath.Join("testdata", "nvml", "every_metric.txt"), golden.Metrics(t, metrics))
	assert.Empty(t, r.failed(t))
	recorded := append(names(metrics, gpu0), names(metrics, "")...)
	for _, info := range reflect.ValueOf(metadata.MetricsInfo).Fields() {
		if name := info.FieldByName("Name").String(); !ofKernelLog[name] && !hostMetrics[name] {
			assert.Contains(t, recorded, name)
		}
	}
}

// What nothing needs is not asked, field values included.
func runNothingWanted(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	setMetrics(t, cfg, false)
	cfg.MetricsBuilderConfig.ResourceAttributes.HwID.Enabled = true
	cfg.Metrics.HwPower.Enabled = true
	cfg.Metrics.NvidiaGpuInfo.Enabled = true
	metrics := newRig(t, cfg).scrape(t)
	assert.Equal(t, []string{"hw.power", "nvidia.gpu.info"}, names(metrics, gpu0))
	calls := strings.Join(d.calls(t), "\n")
	assert.Contains(t, calls, "nvmlDeviceGetPowerUsage")
	for _, name := range []string{
		"nvmlDeviceGetFieldValues", "nvmlDeviceGetSamples", "nvmlDeviceGetMemoryInfo_v2", "nvmlGpmSampleGet",
		"nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetSerial", "nvmlDeviceGetPcieThroughput",
		"RunningProcesses", "nvmlDeviceGetProcessUtilization",
	} {
		assert.NotContains(t, calls, name)
	}
}

// nothingSupported is a GPU that says who it is and nothing else.
const nothingSupported = `all 3
result:nvmlDeviceGetCount_v2 0
result:nvmlDeviceGetHandleByIndex_v2 0
result:nvmlDeviceGetUUID 0
result:nvmlDeviceGetName 0`

func runNothingSupported(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.everything(t))
	r.scrape(t)
	metrics := r.after(t, 10*time.Second)
	assert.Equal(t, []string{"hw.status", "nvidia.gpu.info"}, withoutXID(names(metrics, gpu0)))
	assert.Empty(t, r.failed(t))
	assert.Equal(t, "ok", driverState(t, metrics))
}

// withoutXID leaves out what events feed and no reading.
func withoutXID(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "nvidia.gpu.xid.errors" })
}

// The driver's samples give peaks and busy seconds: 10, 20 and 30 % for half
// a second each.
func runBusyTime(t *testing.T, d *fakeDriver) {
	busy := func(metrics pmetric.Metrics) float64 {
		return by(metrics, gpu0, "nvidia.gpu.busy.time", "hw.gpu.task")["general"]
	}
	peak := func(metrics pmetric.Metrics) float64 {
		return by(metrics, gpu0, "nvidia.gpu.utilization.peak", "hw.gpu.task")["general"]
	}
	r := newRig(t, d.config(t))
	metrics := r.scrape(t)
	assert.InDelta(t, 0, busy(metrics), 1e-9, "it begins with the first reading")
	assert.InDelta(t, 0.3, peak(metrics), 1e-9)
	assert.NotContains(t, by(metrics, gpu0, "nvidia.gpu.busy.time", "hw.gpu.task"), "encoder", "which has no samples")

	d.set(t, "samples 2500000", "step 500000")
	metrics = r.after(t, 10*time.Second)
	assert.InDelta(t, 0.3, busy(metrics), 1e-9)
	assert.InDelta(t, 0.3, peak(metrics), 1e-9)

	// Nothing new: the counter stays, and there was no peak.
	metrics = r.after(t, 10*time.Second)
	assert.InDelta(t, 0.3, busy(metrics), 1e-9)
	assert.Empty(t, by(metrics, gpu0, "nvidia.gpu.utilization.peak", "hw.gpu.task"))

	// A gap that the buffer did not hold is not made up.
	d.set(t, "samples 60000000", "step 500000")
	metrics = r.after(t, 10*time.Second)
	assert.InDelta(t, 0.3+0.25, busy(metrics), 1e-9)

	// The driver is loaded again.
	d.set(t, "all 9")
	r.after(t, 10*time.Second)
	d.set(t, "samples 70000000", "step 500000")
	metrics = r.after(t, time.Minute)
	assert.InDelta(t, 0.55+0.25, busy(metrics), 1e-9, "it goes on where it was")
}

func runGPM(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Metrics.HwGpuIo.Enabled = true
	r := newRig(t, cfg)
	metrics := r.scrape(t)
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.sm.utilization"), "one sample says nothing")

	metrics = r.after(t, 10*time.Second)
	assert.InDelta(t, 0.02, value(t, metrics, gpu0, "nvidia.gpu.sm.utilization"), 1e-9)
	assert.InDelta(t, 0.03, value(t, metrics, gpu1, "nvidia.gpu.sm.occupancy"), 1e-9)
	assert.InDelta(t, 0.10, value(t, metrics, gpu0, "nvidia.gpu.dram.utilization"), 1e-9)
	assert.Equal(t, map[string]float64{"tensor": 0.05, "fp16": 0.13, "fp32": 0.12, "fp64": 0.11, "integer": 0.04},
		by(metrics, gpu0, "nvidia.gpu.pipe.utilization", "nvidia.gpu.pipe"))
	const mebibyte = 1 << 20
	assert.Equal(t, map[string]float64{"transmit": 20 * 10 * mebibyte, "receive": 21 * 10 * mebibyte},
		by(metrics, gpu0, "hw.gpu.io", "network.io.direction"))

	// Too soon for another comparison: what was told stays.
	d.set(t, "gpm:2 50000")
	metrics = r.after(t, 99*time.Millisecond)
	assert.InDelta(t, 0.02, value(t, metrics, gpu0, "nvidia.gpu.sm.utilization"), 1e-9)
	metrics = r.after(t, time.Second-99*time.Millisecond)
	assert.InDelta(t, 0.5, value(t, metrics, gpu0, "nvidia.gpu.sm.utilization"), 1e-9)
	assert.InDelta(t, 20*11*mebibyte, by(metrics, gpu0, "hw.gpu.io", "network.io.direction")["transmit"], 0)

	d.set(t, "result:nvmlGpmSampleGet 999")
	metrics = r.after(t, time.Second)
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.sm.utilization"))
	assert.Equal(t, map[string]int64{"gpm UNKNOWN": 2}, r.failed(t))
}

func runGPMOfAnOlderGPU(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	metrics := r.after(t, time.Second)
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.sm.utilization"))
	assert.Empty(t, r.failed(t))
}

func runGPMGarbage(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	metrics := r.after(t, time.Second)
	for _, name := range []string{"nvidia.gpu.sm.utilization", "nvidia.gpu.sm.occupancy", "nvidia.gpu.dram.utilization"} {
		assert.Empty(t, pointsOf(metrics, gpu0, name))
	}
	assert.Len(t, pointsOf(metrics, gpu0, "nvidia.gpu.pipe.utilization"), 5)
}

// The samples of a session are freed with it, or else the fake ends the
// process, and those of the next are new.
func runGPMReleased(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	r.after(t, time.Second)
	d.set(t, "all 9")
	assert.Equal(t, "driver_missing", driverState(t, r.after(t, time.Second)))
	d.set(t)
	assert.Empty(t, pointsOf(r.after(t, time.Minute), gpu0, "nvidia.gpu.sm.utilization"))
	assert.Len(t, pointsOf(r.after(t, time.Second), gpu0, "nvidia.gpu.sm.utilization"), 1)
	require.NoError(t, r.scraper.Shutdown(t.Context()))
}

// Each field is judged by itself.
func runFields(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Metrics.HwTemperatureLimit.Enabled = true
	cfg.Metrics.NvidiaGpuPowerInstant.Enabled = true
	r := newRig(t, cfg)
	metrics := r.scrape(t)
	assert.Len(t, pointsOf(metrics, gpu0, "hw.temperature"), 1, "a type that nobody knows is no value")
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.pcie.replays"))
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.recovery.action"))
	assert.Empty(t, pointsOf(metrics, gpu0, "hw.temperature.limit"), "the GPU tells margins, not degrees")
	assert.Equal(t, map[string]float64{"gpu": 351, "module": 402}, by(metrics, gpu0, "nvidia.gpu.power.instant", "nvidia.gpu.power.scope"))
	assert.Equal(t, map[string]float64{
		"sw_power_cap": 1.5, "sync_boost": 0.25, "sw_thermal_slowdown": 0.75, "hw_thermal_slowdown": 0.5, "hw_power_brake_slowdown": 0,
	}, by(metrics, gpu0, "nvidia.gpu.throttle.time", "nvidia.gpu.throttle.reason"), "a field of 32 bits is another driver's")
	assert.Equal(t, map[string]int64{"memory_temperature UNEXPECTED_TYPE": 2, "pcie_replays UNKNOWN": 2}, r.failed(t))
}

// A GPU that is not behind NVSwitches has no state. The status is that of a completed registration.
func runFabric(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	assert.Empty(t, pointsOf(r.scrape(t), gpu0, "nvidia.gpu.fabric.state"))
	for _, step := range []struct {
		control  []string
		expected float64
	}{
		{[]string{"fabric_state 1", "fabric_status 999"}, 1},
		{[]string{"fabric_state 2"}, 2},
		{[]string{"fabric_state 3", "fabric_status 0"}, 3},
		{[]string{"fabric_state 3", "fabric_status 999"}, 4},
	} {
		d.set(t, step.control...)
		assert.InDelta(t, step.expected, value(t, r.after(t, time.Minute), gpu0, "nvidia.gpu.fabric.state"), 0, step.control)
	}
	assert.Empty(t, r.failed(t))
}

func runFieldsOfAnOldDriver(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.everything(t))
	metrics := r.scrape(t)
	assert.Equal(t, map[string]float64{"active": 3, "inactive": 1}, by(metrics, gpu0, "nvidia.gpu.nvlink.links", "nvidia.gpu.nvlink.state"))
	assert.Len(t, pointsOf(metrics, gpu0, "nvidia.gpu.throttle.active"), len(device.ThrottleReasons.Names))
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.throttle.time"))
	assert.Empty(t, r.failed(t))
}

func runNVLink5(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	io := func(metrics pmetric.Metrics) map[string]float64 {
		return by(metrics, gpu0, "nvidia.gpu.nvlink.io", "network.io.direction")
	}
	assert.Equal(t, map[string]float64{"transmit": 6000, "receive": 60000}, io(r.scrape(t)), "of links of 1, 2 and 3 times as much")
	d.set(t, "nvlink5 2000")
	assert.Equal(t, map[string]float64{"transmit": 12000, "receive": 120000}, io(r.after(t, time.Second)))
	d.set(t, "nvlink5 10")
	assert.Equal(t, map[string]float64{"transmit": 12060, "receive": 120600}, io(r.after(t, time.Second)), "the links began again")
	assert.Empty(t, r.failed(t))
}

// A GPU in MIG mode is followed by its devices. The memory and the activity of
// a GPU instance are told once.
func runMIG(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	metrics := r.after(t, 10*time.Second)
	assert.Equal(t, []string{gpu0, migHalf0, migHalf1, migWhole, gpu1}, ids(metrics))
	for id, expected := range map[string]struct {
		profile, gpuInstance, computeInstance string
	}{
		migHalf0: {"1c.2g.20gb", "3", "0"},
		migHalf1: {"1c.2g.20gb", "3", "1"},
		migWhole: {"1g.10gb", "5", "0"},
	} {
		info := pointsOf(metrics, id, "nvidia.gpu.info")
		require.Len(t, info, 1)
		attributes := info[0].Attributes()
		assert.Equal(t, expected.profile, text(attributes, "nvidia.gpu.mig.profile"))
		assert.Equal(t, expected.gpuInstance, text(attributes, "nvidia.gpu.mig.gpu_instance.id"))
		assert.Equal(t, expected.computeInstance, text(attributes, "nvidia.gpu.mig.compute_instance.id"))
		assert.Equal(t, gpu0, text(attributes, "hw.parent"))
		assert.Equal(t, "0", text(attributes, "nvidia.gpu.index"))
		assert.NotEmpty(t, pointsOf(metrics, id, "nvidia.gpu.workload.memory.usage"), "each has processes of its own")
		assert.Empty(t, pointsOf(metrics, id, "hw.gpu.utilization"))
		assert.Empty(t, pointsOf(metrics, id, "hw.power"), "which is the whole GPU's")
	}
	assert.InDelta(t, 5<<30, value(t, metrics, migHalf0, "hw.gpu.memory.usage"), 0)
	assert.InDelta(t, 0.02+0.03, value(t, metrics, migHalf0, "nvidia.gpu.sm.utilization"), 1e-9)
	assert.InDelta(t, 0.02+0.05, value(t, metrics, migWhole, "nvidia.gpu.sm.utilization"), 1e-9)
	assert.Empty(t, pointsOf(metrics, migHalf1, "hw.gpu.memory.usage"))
	assert.Empty(t, pointsOf(metrics, migHalf1, "nvidia.gpu.sm.utilization"))
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.sm.utilization"))
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.workload.memory.usage"))
	assert.Len(t, pointsOf(metrics, gpu0, "hw.power"), 1)
	assert.Len(t, pointsOf(metrics, gpu1, "nvidia.gpu.sm.utilization"), 1)
	assert.Empty(t, r.failed(t))
	require.NoError(t, r.scraper.Shutdown(t.Context()))
}

func runMIGWithoutNames(t *testing.T, d *fakeDriver) {
	metrics := newRig(t, d.config(t)).scrape(t)
	for _, id := range []string{migHalf0, migWhole} {
		assert.Empty(t, text(pointsOf(metrics, id, "nvidia.gpu.info")[0].Attributes(), "nvidia.gpu.mig.profile"))
	}
}

// A reconfiguration is seen at the next reading, without opening the driver
// again.
func runMIGReconfigured(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	r.after(t, time.Second)
	d.set(t, "mig 3")
	assert.Equal(t, []string{gpu0, migLeft, gpu1}, ids(r.after(t, time.Second)))
	metrics := r.after(t, time.Second)
	assert.InDelta(t, 0.05, value(t, metrics, migLeft, "nvidia.gpu.sm.utilization"), 1e-9, "it tells now what is its GPU instance's")
	assert.InDelta(t, 5<<30, value(t, metrics, migLeft, "hw.gpu.memory.usage"), 0)

	d.set(t, "mig 2")
	metrics = r.after(t, time.Second)
	assert.Equal(t, []string{gpu0, migOther, gpu1}, ids(metrics))
	assert.Equal(t, "3g.40gb", text(pointsOf(metrics, migOther, "nvidia.gpu.info")[0].Attributes(), "nvidia.gpu.mig.profile"))

	d.set(t, "mig 0")
	assert.Equal(t, []string{gpu0, gpu1}, ids(r.after(t, time.Second)))
	assert.Len(t, pointsOf(r.after(t, time.Second), gpu0, "nvidia.gpu.sm.utilization"), 1, "the whole GPU has it again")
	assert.Equal(t, []string{"The NVIDIA driver answers"}, r.logged())
	assert.Empty(t, r.failed(t))
	require.NoError(t, r.scraper.Shutdown(t.Context()))
}

func runMIGSwitchedOff(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	assert.Equal(t, []string{gpu0, gpu1}, ids(r.scrape(t)))
	d.set(t, "mig 1")
	assert.Len(t, ids(r.after(t, time.Second)), 5)
}

// A GPU that fell off the bus takes its MIG devices with it, and nobody else.
func runMIGOfALostGPU(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	d.set(t, "mig 1", "lost 0")
	metrics := r.after(t, time.Second)
	assert.Contains(t, ids(metrics), gpu0)
	assert.Empty(t, pointsOf(metrics, migWhole, "hw.gpu.memory.usage"))
	assert.Len(t, pointsOf(metrics, gpu1, "hw.power"), 1)
}
