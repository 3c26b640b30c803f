package smoke

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/nvml"
)

const (
	fakeGPU0 = "GPU-00000000-0000-0000-0000-000000000000"
	fakeGPU1 = "GPU-00000000-0000-0000-0000-000000000001"
	// fakeMIG is a part of the first GPU.
	fakeMIG = "MIG-00000000-0000-0000-0001-000000000000"
)

// driver is the receiver's fake NVML library in the hands of a test.
type driver struct {
	library, control string
}

// buildDriver compiles the fake library, with symbols left out as a define of
// it says.
func buildDriver(t *testing.T, define string) *driver {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("NVML is read on Linux")
	}
	d := &driver{
		library: filepath.Join(t.TempDir(), "libnvidia-ml.so.1"),
		control: filepath.Join(t.TempDir(), "control"),
	}
	nvml.Build(t, d.library, define)
	d.set(t)
	return d
}

// set replaces what the library does.
func (d *driver) set(t *testing.T, lines ...string) {
	t.Helper()
	nvml.Set(t, d.control, lines...)
}

// start starts the built collector with the library at a path.
func (d *driver) start(t *testing.T, library string) *harness.Collector {
	t.Helper()
	return harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("e2e", "smoke", "testdata", "gpu.yaml"),
		Env: []string{"GPU_LIBRARY=" + library, "FAKE_NVML_CONTROL=" + d.control,
			"GPU_ROOT=" + harness.Path("receiver", "gpureceiver", "testdata", "root")},
	})
}

// awaitDriver waits until each wanted metric has a series of each GPU, and
// each unwanted one has none, and until the driver is in a state.
func awaitDriver(t *testing.T, collector *harness.Collector, state string, wanted, unwanted map[string][]string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		found := harness.Select(samples, "nvidia_gpu_driver_state", harness.Labels{"nvidia_gpu_driver_state": state})
		if assert.Len(c, found, 1) {
			assert.InDelta(c, 1, found[0].Value, 0, state)
		}
		for name, gpus := range wanted {
			for _, gpu := range gpus {
				assert.NotEmpty(c, harness.Select(samples, name, harness.Labels{"hw_id": gpu}), "%s of %s", name, gpu)
			}
		}
		for name, gpus := range unwanted {
			for _, gpu := range gpus {
				assert.Empty(c, harness.Select(samples, name, harness.Labels{"hw_id": gpu}), "%s of %s", name, gpu)
			}
		}
	}, arrival, poll)
}

// The built collector survives every driver that the receiver's own tests
// know, tells what there is to be told, and ends when it is asked to.
func TestDriversOfGPUs(t *testing.T) {
	t.Parallel()
	both := []string{fakeGPU0, fakeGPU1}
	for name, test := range map[string]struct {
		define  string
		control []string
		// later is what the library does after the first values have come.
		later            []string
		state            string
		wanted, unwanted map[string][]string
		// values are those of the first GPU in the end.
		values map[string]float64
	}{
		"full": {
			state:  "ok",
			wanted: map[string][]string{"hw_power_watts": both, "hw_energy_joules_total": both, "nvidia_gpu_workload_memory_usage_bytes": both},
		},
		"old driver": {
			define: "OLD_DRIVER", state: "ok",
			wanted:   map[string][]string{"hw_power_watts": both},
			unwanted: map[string][]string{"hw_energy_joules_total": both},
		},
		"no NVML library": {define: "NO_NVML", state: "library_missing"},
		"no driver":       {control: []string{"init 9"}, state: "driver_missing"},
		"version mismatch": {
			control: []string{"init 18"}, state: "version_mismatch",
			unwanted: map[string][]string{"hw_power_watts": both},
		},
		"hung GPU": {
			control: []string{"hang:nvmlDeviceGetPowerUsage 0"}, state: "ok",
			wanted:   map[string][]string{"hw_power_watts": {fakeGPU1}},
			unwanted: map[string][]string{"hw_power_watts": {fakeGPU0}},
		},
		"hung at start":   {control: []string{"hang:nvmlInit_v2 -1"}, state: "unresponsive"},
		"hung for events": {control: []string{"hang:nvmlEventSetWait_v2 -1"}, state: "ok", wanted: map[string][]string{"hw_power_watts": both}},
		"lost GPU": {
			later: []string{"lost 0"}, state: "ok",
			wanted: map[string][]string{"hw_power_watts": {fakeGPU1}, "nvidia_gpu_info": both},
		},
		"MIG": {
			control: []string{"mig 1"}, state: "ok",
			wanted: map[string][]string{"hw_power_watts": both, "nvidia_gpu_info": {fakeMIG, fakeGPU1}},
		},
		"growing process list": {
			control: []string{"growing 6"}, state: "ok",
			wanted: map[string][]string{"nvidia_gpu_workload_memory_usage_bytes": both},
		},
		"counters begin again": {
			control: []string{"energy 900000"}, later: []string{"energy 20000"}, state: "ok",
			// 900 J before, and 20 J since.
			values: map[string]float64{"hw_energy_joules_total": 920},
		},
		"panic in the binding": {
			control: []string{"process_samples 100", "overflow 1"}, state: "ok",
			wanted: map[string][]string{"hw_power_watts": both},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			define := test.define
			if define == "" {
				define = "COMPLETE"
			}
			d := buildDriver(t, define)
			d.set(t, test.control...)
			collector := d.start(t, d.library)
			if test.later != nil {
				awaitDriver(t, collector, "ok", map[string][]string{"hw_power_watts": both}, nil)
				d.set(t, test.later...)
			}
			awaitDriver(t, collector, test.state, test.wanted, test.unwanted)
			for metric, value := range test.values {
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
					require.NoError(c, err)
					found := harness.Select(samples, metric, harness.Labels{"hw_id": fakeGPU0})
					if assert.Len(c, found, 1) {
						assert.InDelta(c, value, found[0].Value, 0)
					}
				}, arrival, poll)
			}
			assert.True(t, collector.Running())
			assert.Zero(t, collector.Stop(t), "also while a call hangs in the driver")
		})
	}
}

// A library that comes after the collector was started is loaded.
func TestADriverThatIsInstalledLater(t *testing.T) {
	t.Parallel()
	d := buildDriver(t, "COMPLETE")
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	collector := d.start(t, library)
	awaitDriver(t, collector, "library_missing", nil, nil)
	require.NoError(t, os.Rename(d.library, library))
	awaitDriver(t, collector, "ok", map[string][]string{"hw_power_watts": {fakeGPU0, fakeGPU1}}, nil)
	assert.Zero(t, collector.Stop(t))
}
