//go:build cgo && linux

package gpureceiver

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxAllocationsPerPoint is the most that a scrape may allocate for each of
// its points. Most are those of pdata, which has each attribute as an object.
const maxAllocationsPerPoint = 16

// BenchmarkScrapeNVML is a scrape of a host of 8 GPUs through a library that
// counts the time that it takes itself.
//
// A process can load one library only, and this benchmark loads it into its
// own: it runs once a process, without tests, as make bench does it.
func BenchmarkScrapeNVML(b *testing.B) {
	if benchmarked {
		b.Skip("this process has loaded the library of the benchmark before; run it again instead of -count")
	}
	benchmarked = true
	clock := filepath.Join(b.TempDir(), "clock")
	require.NoError(b, os.WriteFile(clock, make([]byte, 8), 0o600))
	control := filepath.Join(b.TempDir(), "control")
	require.NoError(b, os.WriteFile(control, fmt.Appendf(nil, "count %d\nsamples 100\n", benchmarkGPUs), 0o600))
	b.Setenv("FAKE_NVML_CLOCK", clock)
	b.Setenv(controlVariable, control)
	cfg := createDefaultConfig().(*Config)
	cfg.Source, cfg.NVML.LibraryPath, cfg.RootPath = SourceNVML, buildTimedLibrary(b), b.TempDir()
	cfg.KernelLog.Enabled = false

	file, err := os.Open(clock)
	require.NoError(b, err)
	total, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	require.NoError(b, err)
	require.NoError(b, file.Close())
	b.Cleanup(func() { require.NoError(b, syscall.Munmap(total)) })
	inside := func() time.Duration { return time.Duration(binary.NativeEndian.Uint64(total)) }

	b.Run("default", func(b *testing.B) { measureScrapes(b, newRig(b, cfg), inside) })
	b.Run("30 points a GPU", func(b *testing.B) {
		few := *cfg
		thirtyPoints(&few)
		measureScrapes(b, newRig(b, &few), inside)
	})
}

// thirtyPoints leaves 30 points to each GPU, about what dcgm-exporter gives by
// default, with identity, health and workload. The rounds of slow calls, which
// are made beside the scrapes, are left out.
func thirtyPoints(cfg *Config) {
	cfg.slowInterval = 24 * time.Hour
	m := &cfg.Metrics
	for _, off := range []*bool{
		&m.HwFanSpeedRatio.Enabled,
		&m.NvidiaGpuBusyTime.Enabled, &m.NvidiaGpuUtilizationPeak.Enabled, &m.NvidiaGpuPowerPeak.Enabled,
		&m.NvidiaGpuSmUtilization.Enabled, &m.NvidiaGpuSmOccupancy.Enabled,
		&m.NvidiaGpuDramUtilization.Enabled, &m.NvidiaGpuPipeUtilization.Enabled,
		&m.NvidiaGpuThrottleActive.Enabled, &m.NvidiaGpuThrottleTime.Enabled,
		&m.NvidiaGpuNvlinkIo.Enabled, &m.NvidiaGpuNvlinkErrors.Enabled, &m.NvidiaGpuNvlinkLinks.Enabled,
		&m.NvidiaGpuXidErrors.Enabled, &m.NvidiaGpuRecoveryAction.Enabled, &m.NvidiaGpuWorkloadUtilization.Enabled,
	} {
		*off = false
	}
}

var benchmarked bool

func buildTimedLibrary(b *testing.B) string {
	b.Helper()
	output, err := exec.CommandContext(b.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	require.NoError(b, err)
	path := filepath.Join(b.TempDir(), "libnvidia-ml.so.1")
	sources, err := filepath.Glob(filepath.Join("testdata", "nvml", "*.c"))
	require.NoError(b, err)
	arguments := append([]string{
		"-shared", "-fPIC", "-O1", "-finstrument-functions", "-Wl,--wrap=fopen", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS",
		"-I" + filepath.Join(strings.TrimSpace(string(output)), "pkg", "nvml"), "-o", path,
	}, sources...)
	output, err = exec.CommandContext(b.Context(), "gcc", arguments...).CombinedOutput()
	require.NoError(b, err, "%s", output)
	return path
}

func init() {
	scenarios["cost"] = scenario{control: fmt.Sprintf("count %d\nsamples 100", benchmarkGPUs), run: runCost}
}

// runCost asserts the part of a scrape's cost that is the same on every
// machine.
func runCost(t *testing.T, d *fakeDriver) {
	everything, few := d.config(t), d.config(t)
	thirtyPoints(few)
	for name, cfg := range map[string]*Config{"default": everything, "30 points a GPU": few} {
		t.Run(name, func(t *testing.T) {
			const scrapes = 200
			r := newRig(t, cfg)
			points := 0
			for range 20 {
				points = r.after(t, 10*time.Second).DataPointCount()
			}
			require.GreaterOrEqual(t, points, 30*benchmarkGPUs)

			// One object kept of each scrape would be 200. What is done beside
			// the scrapes, such as the first slow round, may keep something for
			// good at its own time, and does not go on.
			retained := int64(scrapes)
			for try := 0; try < 3 && retained >= scrapes/2; try++ {
				before := settledHeap()
				for range scrapes {
					r.after(t, 10*time.Second)
				}
				allocations := float64(readHeap().Mallocs-before.Mallocs) / scrapes
				retained = int64(settledHeap().HeapObjects) - int64(before.HeapObjects)
				t.Logf("%d points, %.1f allocations a point, %d objects left", points, allocations/float64(points), retained)
				if !raceEnabled {
					assert.LessOrEqual(t, allocations/float64(points), float64(maxAllocationsPerPoint))
				}
			}
			assert.Less(t, retained, int64(scrapes/2), "objects that %d scrapes have left behind", scrapes)
		})
	}
}

func readHeap() runtime.MemStats {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats
}

// settledHeap collects what nothing needs, twice, since pools give up what they
// hold at the second time.
func settledHeap() runtime.MemStats {
	runtime.GC()
	runtime.GC()
	return readHeap()
}
