package gpureceiver

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// recordingHead is of a host with two GPUs, the second one divided.
const recordingHead = `version: 1
origin: made for a test
host_name: h
driver_version: "580.1"
duration: 24h
gpus:
  - {uuid: GPU-a, name: NVIDIA H100, index: 0, pci_bus_id: "0000:01:00.0", processes: [{pid: 1, environ: [MLFLOW_RUN_ID=run-1]}, {pid: 2, environ: [MLFLOW_RUN_ID=run-2]}]}
  - {uuid: GPU-b, name: NVIDIA H100, index: 1, pci_bus_id: "0000:02:00.0"}
  - {uuid: MIG-b, name: NVIDIA H100, index: 1, mig: {parent: GPU-b, profile: 1g.10gb, gpu_instance: 7, compute_instance: 0}, processes: [{pid: 3, environ: [MLFLOW_RUN_ID=run-3]}]}
frames:
`

// replayOf returns a configuration that plays these frames.
func replayOf(t *testing.T, frames string) *Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording.yaml")
	require.NoError(t, os.WriteFile(path, []byte(recordingHead+frames), 0o600))
	cfg := createDefaultConfig().(*Config)
	cfg.Source = SourceReplay
	cfg.Replay.Path = path
	return cfg
}

// states returns the state of each GPU that has one.
func states(t *testing.T, metrics pmetric.Metrics) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, id := range ids(metrics) {
		points := pointsOf(metrics, id, "hw.status")
		if len(points) == 0 {
			continue
		}
		assert.Len(t, points, len(health.States), "every state of %s", id)
		for _, point := range points {
			assert.Equal(t, "gpu", text(point.Attributes(), "hw.type"))
			if point.IntValue() == 1 {
				assert.Empty(t, found[id], "one state at a time")
				found[id] = text(point.Attributes(), "hw.state")
			}
		}
	}
	return found
}

// What a GPU's state is over time. MIG devices have none of their own.
func TestStates(t *testing.T) {
	type at map[time.Duration]map[string]string
	bothOK := map[string]string{"GPU-a": "ok", "GPU-b": "ok"}
	b := func(state string) map[string]string { return map[string]string{"GPU-a": "ok", "GPU-b": state} }
	onlyA := map[string]string{"GPU-a": "ok"}
	for name, test := range map[string]struct {
		frames   string
		remember time.Duration
		expected at
	}{
		"lost, and reset": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
  - {at: 10s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, lost: true, xids: [{code: 79}]}]}
  - {at: 20s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
`,
			remember: time.Hour,
			expected: at{0: bothOK, 10 * time.Second: b("failed"), 20 * time.Second: bothOK},
		},
		"vanished, and back": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, xids: [{code: 95}]}]}
  - {at: 10s, gpus: [{uuid: GPU-a}]}
  - {at: 20s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
`,
			remember: time.Hour,
			expected: at{0: b("failed"), 10 * time.Second: b("failed"), 19 * time.Second: b("failed"), 20 * time.Second: bothOK},
		},
		"vanished, and forgotten": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
  - {at: 10s, gpus: [{uuid: GPU-a}]}
`,
			remember: 15 * time.Second,
			expected: at{0: bothOK, 14 * time.Second: b("failed"), 15 * time.Second: onlyA, 16 * time.Second: onlyA},
		},
		"nothing remembered": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, xids: [{code: 95}]}]}
  - {at: 10s, gpus: [{uuid: GPU-a}]}
`,
			expected: at{0: bothOK, 10 * time.Second: onlyA},
		},
		"a driver that fails says nothing, and time goes on": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
  - {at: 10s, driver_state: driver_missing}
  - {at: 20s, gpus: [{uuid: GPU-a}]}
`,
			remember: 25 * time.Second,
			expected: at{0: bothOK, 10 * time.Second: {}, 20 * time.Second: b("failed"), 25 * time.Second: onlyA},
		},
		"a driver that fails, and still lists": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
  - {at: 10s, driver_state: failed, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
  - {at: 20s, gpus: [{uuid: GPU-a}]}
`,
			remember: time.Hour,
			expected: at{0: bothOK, 10 * time.Second: {}, 20 * time.Second: b("failed")},
		},
		"a MIG device that is taken away": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}, {uuid: MIG-b}]}
  - {at: 10s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
`,
			remember: time.Hour,
			expected: at{0: bothOK, 10 * time.Second: bothOK},
		},
		"a GPU that sleeps": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a, asleep: true}, {uuid: GPU-b, repair: {remap_pending: true}}]}
  - {at: 10s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, asleep: true}]}
  - {at: 20s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
`,
			remember: time.Hour,
			expected: at{
				0:                {"GPU-b": "predicted_failure"},
				10 * time.Second: b("predicted_failure"),
				20 * time.Second: bothOK,
			},
		},
		"an error, for a time": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a, xids: [{code: 31}]}, {uuid: GPU-b, xids: [{code: 48}]}]}
`,
			remember: 30 * time.Second,
			expected: at{0: b("degraded"), 29 * time.Second: b("degraded"), 30 * time.Second: bothOK},
		},
		"the driver's own word": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, recovery_action: 0, xids: [{code: 95}]}]}
  - {at: 10s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, recovery_action: 4}]}
  - {at: 20s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, recovery_action: 1}]}
`,
			remember: time.Hour,
			expected: at{0: bothOK, 10 * time.Second: b("degraded"), 20 * time.Second: b("failed")},
		},
		"no answer": {
			frames: `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, unresponsive: true}]}
  - {at: 10s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
`,
			remember: time.Hour,
			expected: at{0: b("failed"), 10 * time.Second: bothOK},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := replayOf(t, test.frames)
			cfg.remember = test.remember
			r := newRig(t, cfg)
			begin := r.clock
			for elapsed := time.Duration(0); elapsed <= 31*time.Second; elapsed += time.Second {
				expected, found := test.expected[elapsed]
				if !found {
					continue
				}
				r.clock = begin.Add(elapsed)
				assert.Equal(t, expected, states(t, r.scrape(t)), elapsed.String())
			}
		})
	}
}

// A GPU that vanished is still told apart from others: its points have its
// identity, its counts of errors go on, and it has no values.
func TestAVanishedGPU(t *testing.T) {
	r := newRig(t, replayOf(t, `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, power: {energy_joules: 100, draw_watts: 50}}]}
  - {at: 10s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, xids: [{code: 79}]}]}
  - {at: 11s, gpus: [{uuid: GPU-a}]}
  - {at: 20s, gpus: [{uuid: GPU-a}, {uuid: GPU-b, power: {energy_joules: 3}}]}
`))
	begin := r.clock
	first := r.scrape(t)
	resource := func(metrics pmetric.Metrics) map[string]any {
		for _, resource := range metrics.ResourceMetrics().All() {
			if text(resource.Resource().Attributes(), "hw.id") == "GPU-b" {
				return resource.Resource().Attributes().AsRaw()
			}
		}
		return nil
	}
	gone := r.after(t, 11*time.Second)
	assert.Equal(t, resource(first), resource(gone))
	assert.Equal(t, "failed", states(t, gone)["GPU-b"])
	info := pointsOf(gone, "GPU-b", "nvidia.gpu.info")
	require.Len(t, info, 1)
	assert.Equal(t, pointsOf(first, "GPU-b", "nvidia.gpu.info")[0].Attributes().AsRaw(), info[0].Attributes().AsRaw())
	assert.Equal(t, int64(1), errorsOf(gone, "GPU-b")[79])
	assert.Empty(t, pointsOf(gone, "GPU-b", "hw.energy"))
	assert.Empty(t, pointsOf(gone, "GPU-b", "hw.power"))

	r.clock = begin.Add(20 * time.Second)
	back := r.scrape(t)
	assert.Equal(t, "ok", states(t, back)["GPU-b"])
	assert.Equal(t, int64(1), errorsOf(back, "GPU-b")[79])
	assert.InDelta(t, 103, value(t, back, "GPU-b", "hw.energy"), 1e-9, "it goes on where it was")
	assert.Equal(t, begin, pointsOf(back, "GPU-b", "hw.energy")[0].StartTimestamp().AsTime())
}

// errorsOf returns a GPU's errors by code, of all MIG devices together.
func errorsOf(metrics pmetric.Metrics, id string) map[int64]int64 {
	found := map[int64]int64{}
	for _, point := range pointsOf(metrics, id, "nvidia.gpu.xid.errors") {
		code, _ := point.Attributes().Get("nvidia.gpu.xid.code")
		found[code.Int()] += point.IntValue()
	}
	return found
}

// The first error is an increase from 0, and none is lost that comes between
// two readings.
func TestErrorsByCode(t *testing.T) {
	r := newRig(t, replayOf(t, `  - {at: 0s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}, {uuid: MIG-b}]}
  - {at: 1s, gpus: [{uuid: GPU-a, xids: [{code: 31}, {code: 31}]}, {uuid: GPU-b}]}
  - {at: 2s, gpus: [{uuid: GPU-a, xids: [{code: 31}, {code: 999}]}, {uuid: GPU-b, xids: [{code: 94, gpu_instance: 7, compute_instance: 0}]}]}
  - {at: 3s, gpus: [{uuid: GPU-a}, {uuid: GPU-b}]}
`))
	first := r.scrape(t)
	for _, id := range []string{"GPU-a", "GPU-b"} {
		found := errorsOf(first, id)
		assert.Len(t, found, len(xid.Common))
		for _, code := range xid.Common {
			count, seeded := found[int64(code)]
			assert.True(t, seeded, code)
			assert.Zero(t, count, code)
		}
	}
	assert.Empty(t, errorsOf(first, "MIG-b"), "a MIG device's errors are its GPU's, with its ids")

	next := r.after(t, time.Minute)
	assert.Equal(t, int64(3), errorsOf(next, "GPU-a")[31])
	assert.Equal(t, int64(1), errorsOf(next, "GPU-a")[999])
	assert.Zero(t, errorsOf(next, "GPU-a")[94])
	ids := []string{}
	for _, point := range pointsOf(next, "GPU-b", "nvidia.gpu.xid.errors") {
		if point.IntValue() > 0 {
			ids = append(ids, text(point.Attributes(), "nvidia.gpu.xid.code"),
				text(point.Attributes(), "nvidia.gpu.mig.gpu_instance.id"), text(point.Attributes(), "nvidia.gpu.mig.compute_instance.id"))
		}
	}
	assert.Equal(t, []string{"94", "7", "0"}, ids)
	assert.Equal(t, 3, next.ResourceMetrics().Len())
}

func TestRecoveryAction(t *testing.T) {
	metrics := newRig(t, replayOf(t, "  - {at: 0s, gpus: [{uuid: GPU-a, recovery_action: 4}, {uuid: GPU-b}]}\n")).scrape(t)
	assert.InDelta(t, 4, value(t, metrics, "GPU-a", "nvidia.gpu.recovery.action"), 0)
	assert.Empty(t, pointsOf(metrics, "GPU-b", "nvidia.gpu.recovery.action"), "what is not told is absent")
}

// The rule's states and those that metadata.yaml declares are two lists.
func TestStatesAreThoseOfTheMetric(t *testing.T) {
	assert.Len(t, metadata.MapAttributeHwState, len(health.States))
	for _, state := range health.States {
		assert.Contains(t, metadata.MapAttributeHwState, string(state))
		assert.Contains(t, readme(t), "\n- `"+string(state)+"`: ")
	}
}

// interruptedSource lists its GPU, unless the reading ends before.
type interruptedSource struct {
	toldSource
	interrupt func()
}

func (s *interruptedSource) Snapshot(context.Context) device.Snapshot {
	snapshot := device.Snapshot{System: device.System{Host: "h"}, Driver: device.DriverOK}
	if s.interrupt != nil {
		s.interrupt()
		return snapshot
	}
	snapshot.GPUs = []device.GPU{{Identity: device.Identity{ID: "GPU-a"}}}
	return snapshot
}

// A reading that was interrupted does not list every GPU. That says nothing.
func TestAnInterruptedReading(t *testing.T) {
	r := newRig(t, demoConfig())
	r.scraper.monitor.source = &interruptedSource{}
	assert.Equal(t, map[string]string{"GPU-a": "ok"}, states(t, r.scrape(t)))
	reading, cancel := context.WithCancel(t.Context())
	r.scraper.monitor.source = &interruptedSource{interrupt: cancel}
	metrics, err := r.scraper.ScrapeMetrics(reading)
	require.NoError(t, err)
	assert.Empty(t, states(t, metrics))
	require.NoError(t, r.scraper.Shutdown(t.Context()))
	assert.Empty(t, r.scraper.monitor.listeners, "nobody listens any more")
}
