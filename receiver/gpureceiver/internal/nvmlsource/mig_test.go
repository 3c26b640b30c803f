package nvmlsource

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestMIGProfile(t *testing.T) {
	const gibibyte = 1 << 30
	for name, test := range map[string]struct {
		size     migSize
		expected string
	}{
		"1g of an A100 40GB":         {migSize{1, 1, 4864, 40 * gibibyte}, "1g.5gb"},
		"3g of an A100 40GB":         {migSize{3, 3, 19968, 40 * gibibyte}, "3g.20gb"},
		"7g of an A100 40GB":         {migSize{7, 7, 40192, 40 * gibibyte}, "7g.40gb"},
		"1g of an H100 80GB":         {migSize{1, 1, 9856, 80 * gibibyte}, "1g.10gb"},
		"half of a 2g of an H100":    {migSize{2, 1, 20096, 80 * gibibyte}, "1c.2g.20gb"},
		"a 1g with twice its memory": {migSize{1, 1, 19968, 80 * gibibyte}, "1g.20gb"},
		"unknown":                    {migSize{}, ""},
		"no slices":                  {migSize{0, 0, 9856, 80 * gibibyte}, ""},
		"no memory":                  {migSize{1, 1, 0, 80 * gibibyte}, ""},
		"more than there is":         {migSize{1, 1, 1 << 40, gibibyte}, "1g.1gb"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.expected, test.size.profile())
		})
	}
}

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
	gpu
	mode  status
	parts []*migPart
}

func (g *migGPU) MIGDevices() (int, status) { return len(g.parts), g.mode }

func (g *migGPU) MIGDevice(index int) (gpu, status) {
	if g.parts[index] == nil {
		return nil, statusNotFound
	}
	// The library gives a new handle each time.
	handle := *g.parts[index]
	return &handle, handle.result
}

// migPart is a MIG device.
type migPart struct {
	gpu
	id, name string
	gi, ci   int
	result   status
	released *int
	renewed  int
}

func (p *migPart) UUID() (string, status)        { return p.id, statusSuccess }
func (p *migPart) Name() (string, status)        { return p.name, statusSuccess }
func (p *migPart) Instances() (int, int, status) { return p.gi, p.ci, statusSuccess }
func (*migPart) Size() (migSize, status)         { return migSize{}, statusNotSupported }
func (p *migPart) Renew(gpu)                     { p.renewed++ }
func (p *migPart) Release()                      { *p.released++ }
func (*migPart) Calls(_ string, wants func(*device.Quantity) bool) []call {
	calls := []call{{name: "compute_instance"}}
	if wants(device.MemoryTotal) {
		calls = append(calls, call{name: "memory"})
	}
	return calls
}

func TestFindMIG(t *testing.T) {
	released := 0
	part := func(id, profile string, gi, ci int) *migPart {
		return &migPart{id: id, name: "NVIDIA X MIG " + profile, gi: gi, ci: ci, result: statusSuccess, released: &released}
	}
	broken := part("MIG-broken", "", 9, 0)
	broken.result = statusUnknown
	handle := &migGPU{mode: statusSuccess, parts: []*migPart{
		nil, part("MIG-b1", "1c.2g.20gb", 3, 1), nil, part("MIG-b0", "1c.2g.20gb", 3, 0), part("MIG-a", "1g.10gb", 1, 0), broken,
	}}
	parent := &knownGPU{handle: handle, identity: device.Identity{ID: "GPU-x", Name: "NVIDIA X", Index: 2, PCIBusID: "0000:01:00.0"}}
	all := func(*device.Quantity) bool { return true }

	listing, result := findMIG(parent, nil, all)
	require.Equal(t, statusSuccess, result)
	assert.Equal(t, []failure{{"mig_device", statusUnknown}}, listing.failures)
	require.Len(t, listing.devices, 3)
	var found []device.Identity
	var calls []int
	for _, k := range listing.devices {
		found = append(found, k.identity)
		calls = append(calls, len(k.calls))
	}
	identity := func(id, profile string, gi, ci int) device.Identity {
		return device.Identity{ID: id, Name: "NVIDIA X", Index: 2, PCIBusID: "0000:01:00.0",
			MIG: &device.MIG{Parent: "GPU-x", Profile: profile, GPUInstance: gi, ComputeInstance: ci}}
	}
	assert.Equal(t, []device.Identity{
		identity("MIG-a", "1g.10gb", 1, 0), identity("MIG-b0", "1c.2g.20gb", 3, 0), identity("MIG-b1", "1c.2g.20gb", 3, 1),
	}, found)
	assert.Equal(t, []int{2, 2, 1}, calls, "the first of a GPU instance tells what belongs to all of it")

	// What stays is the same object with a fresh handle; what is gone, or took
	// another's place, is let go.
	before := listing.devices
	handle.parts = []*migPart{part("MIG-a", "1g.10gb", 1, 0), part("MIG-b1", "1c.2g.20gb", 3, 1)}
	released = 0
	listing, result = findMIG(parent, before, all)
	require.Equal(t, statusSuccess, result)
	require.Len(t, listing.devices, 2)
	assert.Same(t, before[0], listing.devices[0])
	assert.NotSame(t, before[2], listing.devices[1], "it leads its GPU instance now")
	assert.Len(t, listing.devices[1].calls, 2)
	assert.Equal(t, 3, released, "the spare handle of MIG-a, and those of b0 and b1")

	// MIG is switched off.
	handle.parts = nil
	listing, result = findMIG(parent, listing.devices, all)
	assert.Equal(t, statusSuccess, result)
	assert.Empty(t, listing.devices)

	handle.mode = statusGPUIsLost
	_, result = findMIG(parent, nil, all)
	assert.Equal(t, statusGPUIsLost, result)
}
