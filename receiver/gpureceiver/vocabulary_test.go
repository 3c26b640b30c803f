package gpureceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// The names in metadata.yaml are those by which ml_enrich joins GPUs to runs.
func TestAttributesAreTheVocabularys(t *testing.T) {
	workload := metadata.MetricsInfo.NvidiaGpuWorkloadMemoryUsage.Attributes
	for _, name := range []string{
		mlattr.HardwareID, mlattr.HostName, mlattr.ServiceName,
		mlattr.RunID, mlattr.RunAttempt, mlattr.RankGlobal, mlattr.RankLocal, mlattr.WorldSize,
	} {
		assert.Contains(t, workload, name)
	}
}

// Prometheus exporters drop resource attributes, so that a GPU's points must
// say whose they are.
func TestEveryMetricOfAGPUNamesIt(t *testing.T) {
	info := metadata.MetricsInfo
	for name, attributes := range map[string][]string{
		info.HwEnergy.Name:                     info.HwEnergy.Attributes,
		info.HwGpuMemoryLimit.Name:             info.HwGpuMemoryLimit.Attributes,
		info.HwGpuMemoryUsage.Name:             info.HwGpuMemoryUsage.Attributes,
		info.HwGpuMemoryUtilization.Name:       info.HwGpuMemoryUtilization.Attributes,
		info.HwGpuUtilization.Name:             info.HwGpuUtilization.Attributes,
		info.HwPower.Name:                      info.HwPower.Attributes,
		info.HwTemperature.Name:                info.HwTemperature.Attributes,
		info.NvidiaGpuInfo.Name:                info.NvidiaGpuInfo.Attributes,
		info.NvidiaGpuWorkloadMemoryUsage.Name: info.NvidiaGpuWorkloadMemoryUsage.Attributes,
	} {
		for _, required := range []string{"hw.id", "host.name", "nvidia.gpu.index", "nvidia.gpu.source"} {
			assert.Contains(t, attributes, required, name)
		}
	}
}
