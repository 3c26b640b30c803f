package smoke

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The built collector reads the kernel's log with the shipped configuration, also
// without a driver: an error of a GPU and one of an NVSwitch are a record each, and the
// latter is counted.
func TestKernelLog(t *testing.T) {
	t.Parallel()
	// A pipe that keeps records apart, as /dev/kmsg does.
	pipe := make([]int, 2)
	require.NoError(t, syscall.Pipe2(pipe, syscall.O_DIRECT|syscall.O_CLOEXEC))
	read, write := os.NewFile(uintptr(pipe[0]), "read"), os.NewFile(uintptr(pipe[1]), "write")
	t.Cleanup(func() {
		require.NoError(t, write.Close())
		require.NoError(t, read.Close())
	})
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Overrides: map[string]any{
			"receivers::gpu::kernel_log::path":    fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), pipe[0]),
			"receivers::gpu::collection_interval": "1s",
		},
		Env: []string{"LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + sink.Endpoint},
	})
	samples := func(c require.TestingT, name string, labels harness.Labels) []harness.Sample {
		all, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		return harness.Select(all, name, labels)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		state := samples(c, "nvidia_gpu_kernel_log_state", harness.Labels{"nvidia_gpu_kernel_log_state": "ok"})
		if assert.Len(c, state, 1) {
			assert.InDelta(c, 1, state[0].Value, 0)
		}
	}, arrival, poll)

	for i, line := range []string{
		"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP!",
		"nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
	} {
		_, err := fmt.Fprintf(write, "3,%d,5,-;%s\n", i+1, line)
		require.NoError(t, err)
	}
	var records []plog.LogRecord
	require.Eventually(t, func() bool { records = sink.LogRecords(); return len(records) == 2 }, arrival, poll)
	assert.Equal(t, "nvidia.gpu.xid", records[0].EventName())
	assert.Equal(t, "0000:9b:00.0", records[0].Attributes().AsRaw()["hw.id"])
	assert.Equal(t, "nvidia-smi", records[0].Attributes().AsRaw()["process.executable.name"])
	assert.Equal(t, "nvidia.nvswitch.sxid", records[1].EventName())
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		counted := samples(c, "nvidia_nvswitch_sxid_errors_total", harness.Labels{"nvidia_nvswitch_sxid_code": "20034", "nvidia_nvswitch_sxid_fatal": "true"})
		if assert.Len(c, counted, 1) {
			assert.InDelta(c, 1, counted[0].Value, 0)
		}
	}, arrival, poll)
	stopDropIn(t, collector)
}
