package gpureceiver

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/hosttree"
)

const (
	amdGPU    = "GPU-6f2c9ad1d4a1e1b7"
	amdRadeon = "0000:0c:00.0"
)

// amdTree writes the files of a simulated host with AMD GPUs and a process.
func amdTree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "root"))))
	tree, err := os.ReadFile(filepath.Join("testdata", "amd", "tree.txt"))
	require.NoError(t, err)
	hosttree.Change(t, root, strings.Split(string(tree), "\n")...)
	return root
}

// newAMDRig reads a host without NVIDIA's driver.
func newAMDRig(t *testing.T, root string, change ...func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.RootPath, cfg.KernelLog.Enabled = root, false
	cfg.NVML.LibraryPath = filepath.Join(t.TempDir(), "absent.so")
	setMetrics(t, cfg, true)
	for _, set := range change {
		set(cfg)
	}
	return newRig(t, cfg)
}

// TestAMD reads two AMD GPUs and the process on one of them.
func TestAMD(t *testing.T) {
	r := newAMDRig(t, amdTree(t))
	metrics := r.scrape(t)
	addresses := make(map[string]bool)
	for _, point := range pointsOf(metrics, "", "pcie.errors") {
		addresses[text(point.Attributes(), "hw.id")] = true
	}
	assert.Equal(t, map[string]bool{"0000:c1:00.0": true}, addresses)
	assert.Empty(t, pointsOf(metrics, "", "nvidia.gpu.driver.state"), "the page would look for NVIDIA's GPUs")
	metrics.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool { return text(rm.Resource().Attributes(), "hw.id") == "" })
	golden.Compare(t, filepath.Join("testdata", "amd", "expected.txt"), golden.Metrics(t, metrics))
	assert.Len(t, r.logs.FilterMessageSnippet("Reads an AMD GPU").All(), 2)
}

// TestAMDGone: a GPU that the driver no longer has is failed, one that sleeps keeps its state,
// and one that comes back is read.
func TestAMDGone(t *testing.T) {
	root := amdTree(t)
	r := newAMDRig(t, root)
	r.scrape(t)
	link := filepath.Join(root, "sys/bus/pci/drivers/amdgpu", amdRadeon)
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.NoError(t, os.Remove(link))
	hosttree.Change(t, root, "sys/devices/0000:c1:00.0/power/runtime_status = suspended")
	metrics := r.after(t, 10*time.Second)
	assert.Equal(t, "failed", states(t, metrics)[amdRadeon])
	assert.Equal(t, "ok", states(t, metrics)[amdGPU])
	assert.Empty(t, pointsOf(metrics, amdGPU, "hw.power"))
	require.NoError(t, os.Symlink(target, link))
	assert.Equal(t, "ok", states(t, r.after(t, 10*time.Second))[amdRadeon])
}

// TestAMDThatHangs has a file of a driver that lets its reader wait. The other GPU is read,
// which is asked later.
func TestAMDThatHangs(t *testing.T) {
	root := amdTree(t)
	file := filepath.Join(root, "sys/devices", amdRadeon, "gpu_busy_percent")
	require.NoError(t, os.Remove(file))
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	r := newAMDRig(t, root, func(cfg *Config) { cfg.Timeout = time.Second })
	for range 5 {
		metrics := r.after(t, 10*time.Second)
		assert.Equal(t, "failed", states(t, metrics)[amdRadeon])
		assert.Equal(t, "ok", states(t, metrics)[amdGPU])
		assert.InDelta(t, 268.0, value(t, metrics, amdGPU, "hw.power"), 0)
	}
	answers := func() {
		writer, err := os.OpenFile(file, os.O_WRONLY, 0) // once its reader waits
		require.NoError(t, err)
		_, err = writer.WriteString("50\n")
		require.NoError(t, err)
		require.NoError(t, writer.Close())
	}
	answers()
	require.NoError(t, os.Remove(file))
	hosttree.Change(t, root, "sys/devices/"+amdRadeon+"/gpu_busy_percent = 51")
	require.Eventually(t, func() bool {
		return states(t, r.after(t, 10*time.Second))[amdRadeon] == "ok"
	}, time.Minute, time.Millisecond)
}

// TestAMDHostile has files with other things than numbers.
func TestAMDHostile(t *testing.T) {
	root := amdTree(t)
	for _, name := range []string{
		"gpu_busy_percent", "mem_info_vram_used", "hwmon/hwmon5/power1_average", "hwmon/hwmon5/temp2_input",
		"ras/umc_err_count", "current_link_speed", "unique_id", "product_name",
	} {
		hosttree.Change(t, root, "sys/devices/0000:c1:00.0/"+name+" = NaN \xff"+strings.Repeat("9", 4000))
	}
	hosttree.Change(t, root, "sys/class/kfd/kfd/proc/4242/vram_51045 = -1", "sys/class/kfd/kfd/topology/nodes/1/properties = location_id -1 x\n\nsimd_count")
	assert.NotPanics(t, func() { newAMDRig(t, root).scrape(t) })
}
