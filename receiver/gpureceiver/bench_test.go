package gpureceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const benchmarkGPUs = 8

// BenchmarkScrapeReplay is a scrape of a recording: what it takes to make
// metrics of a snapshot, without a driver.
func BenchmarkScrapeReplay(b *testing.B) {
	measureScrapes(b, newRig(b, benchmarkConfig(b)), noDriver)
}

// noDriver is the time inside a driver where there is none.
func noDriver() time.Duration { return 0 }

// benchmarkConfig plays a host of 8 GPUs that tell everything that an H100 can.
func benchmarkConfig(tb testing.TB) *Config {
	tb.Helper()
	var gpus, frames strings.Builder
	for i := range benchmarkGPUs {
		id := fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i)
		fmt.Fprintf(&gpus, "  - {uuid: %s, name: NVIDIA H100 80GB HBM3, index: %d, pci_bus_id: '0000:%02x:00.0'}\n", id, i, 0x19+i)
		fmt.Fprintf(&frames, `      - uuid: %s
        activity:
          general: {utilization: 0.9, peak: 1, busy_seconds: 1000}
          encoder: {utilization: 0, peak: 0, busy_seconds: 0}
          decoder: {utilization: 0, peak: 0, busy_seconds: 0}
        pipes: {sm_utilization: 0.8, sm_occupancy: 0.5, dram_utilization: 0.4, pipe: {tensor: 0.6, fp16: 0.1, fp32: 0.1, fp64: 0, integer: 0.1}}
        memory: {total_bytes: 85520809984, used_bytes: 59022245888, reserved_bytes: 600000000, bar1_used_bytes: 4000000, controller_utilization: 0.4}
        power: {draw_watts: 612, peak_watts: 650, instant_gpu_watts: 600, instant_module_watts: 700, energy_joules: 8412650, limit_watts: {enforced: 700}}
        thermal: {gpu_celsius: 61, memory_celsius: 70, slowdown_celsius: 90, shutdown_celsius: 95}
        clocks:
          hertz: {graphics: 1980000000, sm: 1980000000, memory: 2619000000, video: 1545000000}
          limit_hertz: {graphics: 1980000000, sm: 1980000000, memory: 2619000000, video: 1545000000}
          throttle: {sw_power_cap: 1, sw_thermal_slowdown: 0, hw_slowdown: 0, hw_thermal_slowdown: 0, hw_power_brake_slowdown: 0, sync_boost: 0, applications_clocks: 0, display_clocks: 0}
          throttle_seconds: {sw_power_cap: 10, sw_thermal_slowdown: 0, hw_thermal_slowdown: 0, hw_power_brake_slowdown: 0, sync_boost: 0}
          performance_state: 0
        pcie: {received_bytes: 1000, transmitted_bytes: 1000, receive_bytes_per_second: 10, transmit_bytes_per_second: 10, replays: 0, generation: 5, max_generation: 5, width: 16, max_width: 16}
        nvlink: {received_bytes: 1000, transmitted_bytes: 1000, errors: {crc_flit: 0, crc_data: 0, replay: 0, recovery: 0, ecc: 0}, active_links: 18, inactive_links: 0}
        ecc: {corrected: 0, uncorrected: 0, lifetime_corrected: {device_memory: 0, l1_cache: 0, l2_cache: 0, register_file: 0, sram: 0}, lifetime_uncorrected: {device_memory: 0, l1_cache: 0, l2_cache: 0, register_file: 0, sram: 0}}
        repair: {remapped_rows_correctable: 0, remapped_rows_uncorrectable: 0, remap_pending: false, remap_failed: false}
        recovery_action: 0
`, id)
	}
	path := filepath.Join(tb.TempDir(), "host.yaml")
	text := "version: 1\norigin: made up for a benchmark\nhost_name: host\ndriver_version: 570.124.06\nduration: 60s\n" +
		"gpus:\n" + gpus.String() + "frames:\n  - at: 0s\n    gpus:\n" + frames.String()
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	cfg := createDefaultConfig().(*Config)
	cfg.Source, cfg.Replay.Path = SourceReplay, path
	return cfg
}

// measureScrapes reports what a scrape takes: points, allocations a point, and
// the time that it takes itself, without that inside the driver: the median,
// and the tenth percentile, which is nearer to a machine that does nothing else.
func measureScrapes(b *testing.B, r *rig, driver func() time.Duration) {
	b.Helper()
	// The first scrapes find the GPUs, and size what is used again.
	points := 0
	for range 5 {
		points = r.after(b, 10*time.Second).DataPointCount()
	}
	require.Positive(b, points)
	overheads := make([]float64, 0, 1<<20)
	insides := make([]float64, 0, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		insideBefore, begin := driver(), time.Now()
		r.after(b, 10*time.Second)
		elapsed, inside := time.Since(begin), driver()-insideBefore
		overheads = append(overheads, float64((elapsed-inside).Nanoseconds())/1000)
		insides = append(insides, float64(inside.Nanoseconds())/1000)
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(points), "points")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N)/float64(points), "allocs/point")
	b.ReportMetric(quantile(insides, 0.5), "driver-µs")
	b.ReportMetric(quantile(overheads, 0.5), "overhead-µs")
	b.ReportMetric(quantile(overheads, 0.1), "overhead-p10-µs")
}

func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[int(float64(len(values))*q)]
}
