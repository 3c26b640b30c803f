//go:build cgo && linux

package nvmlsource

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// unbound is a GPU whose calls are listed and never made, so that no library is
// needed.
func unbound() *boundGPU {
	return &boundGPU{binding: &binding{histories: make(map[historyKey]*sampleHistory)}, device: struct{ nvml.Device }{}}
}

// Each quantity that device declares is read by a call.
func TestEveryQuantityHasACall(t *testing.T) {
	read := map[string]bool{}
	for _, c := range unbound().Calls("GPU-x", func(*device.Quantity) bool { return true }) {
		for _, quantity := range c.yields {
			read[quantity.Name()] = true
		}
	}
	for _, quantity := range device.Quantities() {
		assert.True(t, read[quantity.Name()], "no call yields %s", quantity.Name())
	}
}

// A quantity that is wanted alone brings the calls that yield it, and the one
// for fields where they are made of fields; nothing wanted brings no call.
func TestCallsFollowFromWhatIsWanted(t *testing.T) {
	assert.Empty(t, unbound().Calls("GPU-x", func(*device.Quantity) bool { return false }))
	for _, quantity := range device.Quantities() {
		for _, c := range unbound().Calls("GPU-x", func(q *device.Quantity) bool { return q == quantity }) {
			if c.name == "fields" {
				assert.Empty(t, c.yields)
				continue
			}
			assert.Contains(t, c.yields, quantity, c.name)
		}
	}
}

// The names by which device has NVML's numbers are all known here.
func TestNamesHaveNumbers(t *testing.T) {
	for _, name := range device.ClockFrequencies.Names {
		assert.Contains(t, clockDomains, name)
	}
	for _, name := range device.LifetimeCorrected.Names {
		assert.Contains(t, memoryLocations, name)
	}
	for _, name := range device.ThrottleReasons.Names {
		assert.Contains(t, throttleBits, name)
	}
	assert.Len(t, throttleBits, len(device.ThrottleReasons.Names))
}

func TestThrottled(t *testing.T) {
	for _, value := range throttled(0x1) {
		assert.Zero(t, value, "idle is no reason")
	}
	numbers := throttled(0x4 | 0x40)
	assert.InDelta(t, 1, numbers["sw_power_cap"], 0)
	assert.InDelta(t, 1, numbers["hw_thermal_slowdown"], 0)
	assert.InDelta(t, 0, numbers["hw_slowdown"], 0)
}
