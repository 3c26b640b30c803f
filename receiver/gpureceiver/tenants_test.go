package gpureceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// The workload of an event is told only where no other one can be meant.
func TestTenants(t *testing.T) {
	run := func(ids ...string) []device.Process {
		var processes []device.Process
		for _, id := range ids {
			processes = append(processes, device.Process{Workload: workload.Workload{RunID: id}})
		}
		return processes
	}
	served := func(serves bool, others ...device.Process) device.GPU {
		server := device.Process{Details: workload.Details{Executable: "nvidia-cuda-mps"}, Serves: serves}
		return device.GPU{Identity: device.Identity{ID: "GPU-b"}, Processes: append(others, server)}
	}
	mig := func(id string, gpuInstance, computeInstance int) device.Identity {
		return device.Identity{ID: id, MIG: &device.MIG{Parent: "GPU-b", GPUInstance: gpuInstance, ComputeInstance: computeInstance}}
	}
	instance := func(id int64) workload.Number { return workload.Number{Value: id, Known: true} }
	divided := []device.GPU{
		{Identity: device.Identity{ID: "GPU-a"}, Processes: run("other")},
		{Identity: device.Identity{ID: "GPU-b"}},
		{Identity: mig("MIG-1", 1, 0), Processes: run("one", "one")},
		{Identity: mig("MIG-2", 2, 0), Processes: run("two")},
		{Identity: mig("MIG-3", 2, 1), Processes: run("three")},
	}
	owned := []device.GPU{{Identity: device.Identity{ID: "GPU-b"}, Owners: []workload.Pod{{Name: "pod"}}}}
	for name, test := range map[string]struct {
		gpus                         []device.GPU
		driver                       device.DriverState
		gpuInstance, computeInstance workload.Number
		expected, pod                string
	}{
		"nobody":                     {gpus: []device.GPU{{Identity: device.Identity{ID: "GPU-b"}}}},
		"one":                        {gpus: []device.GPU{{Identity: device.Identity{ID: "GPU-b"}, Processes: run("one")}}, expected: "one"},
		"two processes of one":       {gpus: []device.GPU{{Identity: device.Identity{ID: "GPU-b"}, Processes: run("one", "one")}}, expected: "one"},
		"two":                        {gpus: []device.GPU{{Identity: device.Identity{ID: "GPU-b"}, Processes: run("one", "two")}}},
		"one, and one unknown":       {gpus: []device.GPU{{Identity: device.Identity{ID: "GPU-b"}, Processes: run("", "two")}}},
		"the whole of a divided":     {gpus: divided},
		"the whole, used by one":     {gpus: divided[:3], expected: "one"},
		"a GPU instance":             {gpus: divided, gpuInstance: instance(1), expected: "one"},
		"a shared GPU instance":      {gpus: divided, gpuInstance: instance(2)},
		"a compute instance":         {gpus: divided, gpuInstance: instance(2), computeInstance: instance(1), expected: "three"},
		"an instance nobody has":     {gpus: divided, gpuInstance: instance(3)},
		"an idle GPU's pod":          {gpus: owned, pod: "pod"},
		"a client of MPS":            {gpus: []device.GPU{served(true, run("one")...)}, expected: "one"},
		"two clients of MPS":         {gpus: []device.GPU{served(true, run("one", "two")...)}},
		"unknown clients of MPS":     {gpus: []device.GPU{served(false, run("one")...)}},
		"a driver that failed since": {driver: device.DriverFailed, expected: "before"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen tenants
			seen.update(&device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{{Identity: device.Identity{ID: "GPU-b"}, Processes: run("before")}}})
			if test.driver == "" {
				test.driver = device.DriverOK
			}
			seen.update(&device.Snapshot{Driver: test.driver, GPUs: test.gpus})
			found := seen.of(&device.Event{
				GPU: device.Identity{ID: "GPU-b"}, GPUInstance: test.gpuInstance, ComputeInstance: test.computeInstance,
			})
			assert.Equal(t, test.expected, found.RunID)
			assert.Equal(t, test.pod, found.Pod.Name)
		})
	}
}
