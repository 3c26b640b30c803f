package gpureceiver

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the README says about the number of series is counted from a recording
// of GPUs that tell everything that an H100 can.
func TestReadmeTellsTheNumberOfSeries(t *testing.T) {
	text := readme(t)
	byDefault := benchmarkConfig(t)
	assert.Contains(t, text, fmt.Sprintf("\n- by default: %d\n", seriesPerGPU(t, byDefault)))

	withoutXIDs := benchmarkConfig(t)
	withoutXIDs.Metrics.NvidiaGpuXidErrors.Enabled = false
	assert.Contains(t, text, fmt.Sprintf("\n- without `nvidia.gpu.xid.errors`: %d\n", seriesPerGPU(t, withoutXIDs)))

	everything := benchmarkConfig(t)
	for _, metric := range reflect.ValueOf(&everything.Metrics).Elem().Fields() {
		metric.FieldByName("Enabled").SetBool(true)
	}
	assert.Contains(t, text, fmt.Sprintf("\n- with every metric: %d\n", seriesPerGPU(t, everything)))
}

func seriesPerGPU(t *testing.T, cfg *Config) int {
	t.Helper()
	r := newRig(t, cfg)
	gpus := ids(r.scrape(t))
	require.Len(t, gpus, benchmarkGPUs)
	count := 0
	for _, resource := range r.scrape(t).ResourceMetrics().All() {
		if text(resource.Resource().Attributes(), "hw.id") != gpus[0] {
			continue
		}
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				count += numberPoints(metric).Len()
			}
		}
	}
	return count
}
