package gpureceiver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const demoRecording = "testdata/captures/demo-2xh100.yaml"

func loadConfig(t *testing.T, path string) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf(path)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// TestReplay plays each folder's recording with its configuration and compares
// what the receiver gives after a time with expected_<time>.txt.
func TestReplay(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "replay", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			r := newRig(t, loadConfig(t, filepath.Join(folder, "config.yaml")))
			begin := r.clock
			expected, err := filepath.Glob(filepath.Join(folder, "expected_*.txt"))
			require.NoError(t, err)
			require.NotEmpty(t, expected, "write an empty file for each time and run with -update")
			times := map[time.Duration]string{}
			for _, path := range expected {
				elapsed, err := time.ParseDuration(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "expected_"), ".txt"))
				require.NoError(t, err)
				times[elapsed] = path
			}
			for _, elapsed := range slices.Sorted(maps.Keys(times)) {
				r.clock = begin.Add(elapsed)
				golden.Compare(t, times[elapsed], golden.Metrics(t, r.scrape(t)))
			}
		})
	}
}

func demoConfig() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Source = SourceReplay
	cfg.Replay.Path = demoRecording
	return cfg
}

// What a training job changes moves in the demo, on both GPUs, and counters
// only ever rise.
func TestDemoRecordingMoves(t *testing.T) {
	r := newRig(t, demoConfig())
	begin, first := r.clock, series(r.scrape(t))
	last, moved, fell := first, map[string]bool{}, []string{}
	for elapsed := time.Duration(0); elapsed < 4*time.Minute; elapsed += 7 * time.Second {
		r.clock = begin.Add(elapsed)
		now := series(r.scrape(t))
		for key, point := range now {
			if point.value != first[key].value {
				moved[key.id+" "+key.name] = true
			}
			if point.counter && point.value < last[key].value {
				fell = append(fell, fmt.Sprint(key, " after ", elapsed))
			}
		}
		last = now
	}
	assert.Empty(t, fell)
	for _, id := range []string{"GPU-6f1c3a52-0d1e-4b7a-9c53-7e2a81d4f0b6", "GPU-b84d27e9-51fc-4a06-8f39-1c6d05e7a2f3"} {
		for _, name := range []string{
			"hw.energy", "hw.gpu.memory.usage", "hw.gpu.memory.utilization", "hw.gpu.utilization", "hw.power", "hw.temperature",
			"nvidia.gpu.busy.time", "nvidia.gpu.clock.frequency", "nvidia.gpu.dram.utilization", "nvidia.gpu.memory.controller.utilization",
			"nvidia.gpu.nvlink.io", "nvidia.gpu.pipe.utilization", "nvidia.gpu.power.peak", "nvidia.gpu.sm.occupancy", "nvidia.gpu.sm.utilization",
			"nvidia.gpu.throttle.active", "nvidia.gpu.throttle.time", "nvidia.gpu.utilization.peak",
			"nvidia.gpu.workload.memory.usage", "nvidia.gpu.workload.utilization",
		} {
			assert.True(t, moved[id+" "+name], "%s of %s", name, id)
		}
	}
	assert.True(t, moved["GPU-b84d27e9-51fc-4a06-8f39-1c6d05e7a2f3 nvidia.gpu.xid.errors"])
}

// seriesKey names a series.
type seriesKey struct {
	id, name, attributes string
}

type seriesPoint struct {
	value   float64
	counter bool
}

// series returns the value of every series.
func series(metrics pmetric.Metrics) map[seriesKey]seriesPoint {
	all := map[seriesKey]seriesPoint{}
	for _, resource := range metrics.ResourceMetrics().All() {
		id := text(resource.Resource().Attributes(), "hw.id")
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				for _, point := range numberPoints(metric).All() {
					all[seriesKey{id, metric.Name(), fmt.Sprint(point.Attributes().AsRaw())}] = seriesPoint{
						value:   point.DoubleValue() + float64(point.IntValue()),
						counter: metric.Type() == pmetric.MetricTypeSum && metric.Sum().IsMonotonic(),
					}
				}
			}
		}
	}
	return all
}

// No two points of a metric have the same attributes: without its resource one
// would stand for both.
func TestPointsAreToldApart(t *testing.T) {
	configs, err := filepath.Glob(filepath.Join("testdata", "replay", "*", "config.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, configs)
	for _, path := range configs {
		r := newRig(t, loadConfig(t, path))
		for range 4 {
			points := map[string]bool{}
			for _, resource := range r.after(t, 10*time.Second).ResourceMetrics().All() {
				for _, scope := range resource.ScopeMetrics().All() {
					for _, metric := range scope.Metrics().All() {
						for _, point := range numberPoints(metric).All() {
							key := fmt.Sprint(metric.Name(), point.Attributes().AsRaw())
							assert.False(t, points[key], "%s: %s", path, key)
							points[key] = true
						}
					}
				}
			}
		}
	}
}

// What is not of this host's driver says so on every resource and every point.
func TestReplayIsLabelledEverywhere(t *testing.T) {
	count := 0
	for _, resource := range newRig(t, demoConfig()).scrape(t).ResourceMetrics().All() {
		assert.Equal(t, "replay", text(resource.Resource().Attributes(), "nvidia.gpu.source"))
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				for _, point := range numberPoints(metric).All() {
					assert.Equal(t, "replay", text(point.Attributes(), "nvidia.gpu.source"), metric.Name())
					assert.Equal(t, "gpu-node-1", text(point.Attributes(), "host.name"), metric.Name())
					count++
				}
			}
		}
	}
	assert.Positive(t, count)
}

// The demo's processes are what the join of GPUs and runs needs: ranks without
// a run id, and a service.
func TestDemoRecordingWorkloads(t *testing.T) {
	metrics := newRig(t, demoConfig()).scrape(t)
	var found []map[string]any
	for _, id := range ids(metrics) {
		for _, point := range pointsOf(metrics, id, "nvidia.gpu.workload.memory.usage") {
			attributes := point.Attributes().AsRaw()
			for _, same := range []string{"hw.id", "host.name", "nvidia.gpu.source"} {
				delete(attributes, same)
			}
			found = append(found, attributes)
		}
	}
	rank := func(rank, index int64) map[string]any {
		return map[string]any{
			"nvidia.gpu.index": index, "ml.rank.global": rank, "ml.rank.local": rank,
			"ml.world_size": int64(2), "ml.run.attempt": int64(0), "user.id": "1000",
		}
	}
	assert.ElementsMatch(t, []map[string]any{
		rank(0, 0),
		rank(1, 1),
		{"nvidia.gpu.index": int64(1), "service.name": "snakepit", "user.id": "1001"},
	}, found)
}

// The whole receiver as the collector runs it.
func TestReplayReceiver(t *testing.T) {
	cfg := demoConfig()
	cfg.InitialDelay = 0
	sink := new(consumertest.MetricsSink)
	receiver, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return sink.DataPointCount() > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, receiver.Shutdown(t.Context()))
	require.NoError(t, receiver.Shutdown(t.Context()))
	assert.Len(t, ids(sink.AllMetrics()[0]), 2)
}

// A recording that cannot be played is an error of the configuration, which
// the validate command and the start both tell with the place in the file.
func TestReplayThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct{ content, expected string }{
		"missing":   {"", "no such file"},
		"malformed": {"version: 1\nframez: []\n", "line 2: field framez not found"},
		"no YAML":   {"\t", "yaml"},
		"bad value": {
			"version: 1\norigin: o\nhost_name: h\ngpus: [{uuid: a}]\nframes:\n  - at: 0s\n    gpus:\n      - {uuid: a, power: {draw_watts: 7 W}}\n",
			`"frames[0]::gpus[0]" has "power.draw_watts": "7 W"; allowed is a number`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := demoConfig()
			cfg.Replay.Path = filepath.Join(t.TempDir(), "recording.yaml")
			if test.content != "" {
				require.NoError(t, os.WriteFile(cfg.Replay.Path, []byte(test.content), 0o600))
			}
			receiver, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			starting := receiver.Start(t.Context(), componenttest.NewNopHost())
			require.NoError(t, receiver.Shutdown(t.Context()))
			for _, err := range []error{confmap.Validate(cfg), starting} {
				require.ErrorContains(t, err, `"replay::path" is "`+cfg.Replay.Path)
				require.ErrorContains(t, err, test.expected)
			}
		})
	}
}

// ids returns the hw.id of each resource that has one.
func ids(metrics pmetric.Metrics) []string {
	var found []string
	for _, resource := range metrics.ResourceMetrics().All() {
		if id := text(resource.Resource().Attributes(), "hw.id"); id != "" {
			found = append(found, id)
		}
	}
	return found
}

func numberPoints(metric pmetric.Metric) pmetric.NumberDataPointSlice {
	if metric.Type() == pmetric.MetricTypeGauge {
		return metric.Gauge().DataPoints()
	}
	return metric.Sum().DataPoints()
}
