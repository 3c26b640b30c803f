//go:build cgo && linux

package nvmlsource

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestMergeProcessLists(t *testing.T) {
	idle := func() device.Numbers { return device.Numbers{"general": 0, "encoder": 0, "decoder": 0} }
	for name, test := range map[string]struct {
		lists    processLists
		expected []device.Process
	}{
		"nothing": {},
		"of several types": {
			processLists{byType: map[string][]nvml.ProcessInfo{
				"compute":  {{Pid: 1, UsedGpuMemory: 10}, {Pid: 2, UsedGpuMemory: unavailableMemory}},
				"graphics": {{Pid: 1, UsedGpuMemory: 10}, {Pid: 3, UsedGpuMemory: 5}},
				"mps":      {{Pid: 2, UsedGpuMemory: 7}},
			}},
			[]device.Process{
				{PID: 1, Types: []string{"compute", "graphics"}, Memory: device.Read(10.0)},
				{PID: 2, Types: []string{"compute", "mps"}, Memory: device.Read(7.0)},
				{PID: 3, Types: []string{"graphics"}, Memory: device.Read(5.0)},
			},
		},
		"the same twice": {
			processLists{byType: map[string][]nvml.ProcessInfo{"compute": {{Pid: 1, UsedGpuMemory: unavailableMemory}, {Pid: 1, UsedGpuMemory: 0}}}},
			[]device.Process{{PID: 1, Types: []string{"compute"}, Memory: device.Read(0.0)}},
		},
		"samples": {
			processLists{
				byType: map[string][]nvml.ProcessInfo{"compute": {{Pid: 1, UsedGpuMemory: 1}, {Pid: 2, UsedGpuMemory: 1}}},
				samples: []nvml.ProcessUtilizationSample{
					{Pid: 1, SmUtil: 20, EncUtil: 4}, {Pid: 1, SmUtil: 40, DecUtil: 2},
					{Pid: 1, SmUtil: 4000000}, {Pid: 9, SmUtil: 50},
				},
				sampled: true,
			},
			[]device.Process{
				{PID: 1, Types: []string{"compute"}, Memory: device.Read(1.0), Utilization: device.Numbers{"general": 0.3, "encoder": 0.02, "decoder": 0.01}},
				{PID: 2, Types: []string{"compute"}, Memory: device.Read(1.0), Utilization: idle()},
			},
		},
		"a sample that cannot be true comes first": {
			processLists{
				byType:  map[string][]nvml.ProcessInfo{"compute": {{Pid: 1, UsedGpuMemory: 1}}},
				samples: []nvml.ProcessUtilizationSample{{Pid: 1, DecUtil: 101}, {Pid: 1, SmUtil: 20}, {Pid: 1, SmUtil: 101}},
				sampled: true,
			},
			[]device.Process{
				{PID: 1, Types: []string{"compute"}, Memory: device.Read(1.0), Utilization: device.Numbers{"general": 0.2, "encoder": 0, "decoder": 0}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dropped := 0
			merged := test.lists.merge(func() { dropped++ })
			assert.Zero(t, dropped)
			assert.Len(t, merged, len(test.expected))
			for i := range test.expected {
				assert.InDeltaMapValues(t, test.expected[i].Utilization, merged[i].Utilization, 1e-9)
				merged[i].Utilization = test.expected[i].Utilization
			}
			assert.Equal(t, test.expected, merged)
		})
	}
}

func TestMergeIsBounded(t *testing.T) {
	many := make([]nvml.ProcessInfo, maxProcesses+5)
	for i := range many {
		many[i].Pid = uint32(i)
	}
	dropped := 0
	merged := (&processLists{byType: map[string][]nvml.ProcessInfo{"compute": many, "mps": many[:1]}}).merge(func() { dropped++ })
	assert.Len(t, merged, maxProcesses)
	assert.Equal(t, 5, dropped)
	assert.Equal(t, []string{"compute", "mps"}, merged[0].Types)
}

// A process of which no sample can be true did not idle: what it used is
// dropped and counted.
func TestProcessWithoutATrueSample(t *testing.T) {
	lists := processLists{
		byType:  map[string][]nvml.ProcessInfo{"compute": {{Pid: 1, UsedGpuMemory: 1}}},
		samples: []nvml.ProcessUtilizationSample{{Pid: 1, SmUtil: 808334905}}, sampled: true,
	}
	merged := lists.merge(func() {})
	gpu := device.GPU{Processes: merged}
	dropped := 0
	gpu.DropImplausible(func(string) { dropped++ })
	assert.Equal(t, 3, dropped)
	assert.Empty(t, gpu.Processes[0].Utilization)
}
