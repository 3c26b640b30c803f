//go:build cgo && linux

package nvmlsource

import (
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestNamedProfile(t *testing.T) {
	for name, expected := range map[string]string{
		"NVIDIA A100-SXM4-40GB MIG 1g.5gb":           "1g.5gb",
		"NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb":       "1c.2g.20gb",
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb+me":       "1g.10gb+me",
		"NVIDIA H100 80GB HBM3":                      "",
		"":                                           "",
		"NVIDIA A100 MIG ":                           "",
		"NVIDIA A100 MIG \x00\xff":                   "",
		"NVIDIA A100 MIG something g. else":          "",
		"A MIG 1g.5gb1g.5gb1g.5gb1g.5gb1g.5gb1g.5gb": "",
	} {
		assert.Equal(t, expected, namedProfile(name), name)
	}
}

// FuzzNamedProfile takes whatever name a driver gives.
func FuzzNamedProfile(f *testing.F) {
	f.Add("NVIDIA A100-SXM4-40GB MIG 1g.5gb")
	f.Fuzz(func(t *testing.T, name string) {
		profile := namedProfile(name)
		require.LessOrEqual(t, len(profile), 32)
		require.Regexp(t, `^[0-9a-z.+-]*$`, profile)
	})
}

// migGPU is a GPU in MIG mode.
type migGPU struct {
	mock.Device
	mode  nvml.Return
	parts []*migPart
}

// migPart is a MIG device.
type migPart struct {
	id, name string
	gi, ci   int
	result   nvml.Return
}

func newMIG(parts ...*migPart) *migGPU {
	g := &migGPU{parts: parts}
	g.GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_ENABLE, 0, g.mode }
	g.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return len(g.parts), nvml.SUCCESS }
	g.GetMigDeviceHandleByIndexFunc = func(index int) (nvml.Device, nvml.Return) {
		p := g.parts[index]
		if p == nil {
			return nil, nvml.ERROR_NOT_FOUND
		}
		// The library gives a new handle each time.
		return &mock.Device{
			GetUUIDFunc:              func() (string, nvml.Return) { return p.id, nvml.SUCCESS },
			GetNameFunc:              func() (string, nvml.Return) { return p.name, nvml.SUCCESS },
			GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return p.gi, nvml.SUCCESS },
			GetComputeInstanceIdFunc: func() (int, nvml.Return) { return p.ci, nvml.SUCCESS },
		}, p.result
	}
	return g
}

func TestFindMIG(t *testing.T) {
	part := func(id, profile string, gi, ci int) *migPart {
		return &migPart{id: id, name: "NVIDIA X MIG " + profile, gi: gi, ci: ci}
	}
	broken := part("MIG-broken", "", 9, 0)
	broken.result = nvml.ERROR_UNKNOWN
	handle := newMIG(nil, part("MIG-b1", "1c.2g.20gb", 3, 1), nil, part("MIG-b0", "1c.2g.20gb", 3, 0), part("MIG-a", "1g.10gb", 1, 0), broken)
	parent := &knownGPU{gpu: bound(handle), identity: device.Identity{ID: "GPU-x", Name: "NVIDIA X", Index: 2, PCIBusID: "0000:01:00.0"}}
	memory := func(q *device.Quantity) bool { return q == device.MemoryTotal }
	held := func() int { return len(parent.library.gpm) - 1 }

	listing, result := findMIG(parent, nil)
	require.Equal(t, statusSuccess, result)
	assert.Equal(t, []failure{{"mig_device", statusUnknown}}, listing.failures)
	require.Len(t, listing.devices, 3)
	var found []device.Identity
	var calls []int
	for _, k := range listing.devices {
		found = append(found, k.identity)
		calls = append(calls, len(k.questions(memory)))
	}
	identity := func(id, profile string, gi, ci int) device.Identity {
		return device.Identity{ID: id, Name: "NVIDIA X", Index: 2, PCIBusID: "0000:01:00.0",
			MIG: &device.MIG{Parent: "GPU-x", Profile: profile, GPUInstance: gi, ComputeInstance: ci}}
	}
	assert.Equal(t, []device.Identity{
		identity("MIG-a", "1g.10gb", 1, 0), identity("MIG-b0", "1c.2g.20gb", 3, 0), identity("MIG-b1", "1c.2g.20gb", 3, 1),
	}, found)
	assert.Equal(t, []int{2, 2, 1}, calls, "the first of a GPU instance tells what belongs to all of it")
	assert.Equal(t, 3, held())

	// What stays is the same object with a fresh handle; what is gone, or took
	// another's place, is let go.
	before, stale := slices.Clone(listing.devices), listing.devices[0].device
	handle.parts = []*migPart{part("MIG-a", "1g.10gb", 1, 0), part("MIG-b1", "1c.2g.20gb", 3, 1)}
	listing, result = findMIG(parent, before)
	require.Equal(t, statusSuccess, result)
	require.Len(t, listing.devices, 2)
	assert.Same(t, before[0], listing.devices[0])
	assert.NotSame(t, before[2], listing.devices[1], "it leads its GPU instance now")
	assert.Len(t, listing.devices[1].questions(memory), 2)
	assert.NotSame(t, stale, before[0].device)
	assert.Equal(t, 2, held(), "the spare handle of MIG-a, and those of b0 and b1, are let go")

	// MIG is switched off.
	handle.parts = nil
	listing, result = findMIG(parent, listing.devices)
	assert.Equal(t, statusSuccess, result)
	assert.Empty(t, listing.devices)
	assert.Zero(t, held())

	handle.mode = nvml.ERROR_GPU_IS_LOST
	_, result = findMIG(parent, nil)
	assert.Equal(t, statusGPUIsLost, result)
}
