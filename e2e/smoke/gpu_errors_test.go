package smoke

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// gpuErrors is a recording of a GPU that fails, beside one that works.
const gpuErrors = `version: 1
origin: made for a test
host_name: gpu-node-1
duration: 24h
gpus:
  - {uuid: GPU-works, index: 0}
  - {uuid: GPU-fails, index: 1}
frames:
  - {at: 0s, gpus: [{uuid: GPU-works}, {uuid: GPU-fails}]}
  - {at: 1s, gpus: [{uuid: GPU-works}, {uuid: GPU-fails, lost: true, xids: [{code: 79}]}]}
`

// An error of a GPU is a log record and a count, and changes its state: one
// receiver, in a logs and in a metrics pipeline of the shipped configuration.
func TestErrorsOfAGPU(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "recording.yaml")
	require.NoError(t, os.WriteFile(path, []byte(gpuErrors), 0o600))
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			"GPU_RECORDING=" + path,
			"LOGS_EXPORTER=otlp_grpc/logs",
			"LOGS_ENDPOINT=" + sink.Endpoint,
		},
	})
	var records []plog.LogRecord
	require.Eventually(t, func() bool { records = sink.LogRecords(); return len(records) > 0 }, arrival, poll)
	require.Len(t, records, 1)
	assert.Equal(t, "nvidia.gpu.xid", records[0].EventName())
	assert.Equal(t, plog.SeverityNumberFatal, records[0].SeverityNumber())
	assert.Contains(t, records[0].Body().AsString(), "XID 79")
	attributes := records[0].Attributes().AsRaw()
	assert.Equal(t, "GPU-fails", attributes["hw.id"])
	assert.Equal(t, "gpu-node-1", attributes["host.name"])
	assert.Equal(t, int64(79), attributes["nvidia.gpu.xid.code"])
	assert.Equal(t, "replay", attributes["nvidia.gpu.source"])

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		for gpu, expected := range map[string]struct {
			state string
			count float64
		}{
			"GPU-works": {"ok", 0},
			"GPU-fails": {"failed", 1},
		} {
			found := harness.Select(samples, "hw_status", harness.Labels{"hw_id": gpu, "hw_state": expected.state})
			if assert.Len(c, found, 1, gpu) {
				assert.InDelta(c, 1, found[0].Value, 0, gpu)
			}
			found = harness.Select(samples, "nvidia_gpu_xid_errors_total", harness.Labels{"hw_id": gpu, "nvidia_gpu_xid_code": "79"})
			if assert.Len(c, found, 1, gpu) {
				assert.InDelta(c, expected.count, found[0].Value, 0, gpu)
			}
		}
	}, arrival, poll)
	stopDropIn(t, collector)
}
