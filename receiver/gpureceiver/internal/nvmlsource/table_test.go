//go:build cgo && linux

package nvmlsource

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// unbound is a GPU whose calls are listed and never made, so that no library is
// needed.
func unbound() *knownGPU {
	return &knownGPU{gpu: &gpu{library: &library{}, device: struct{ nvml.Device }{}}, histories: make(map[nvml.SamplingType]*sampleHistory)}
}

// Each quantity that device declares is read by a call.
func TestEveryQuantityHasACall(t *testing.T) {
	read := map[string]bool{}
	for _, c := range unbound().questions(func(*device.Quantity) bool { return true }) {
		for _, quantity := range c.yields {
			read[quantity.Name] = true
		}
	}
	for _, quantity := range device.Quantities {
		assert.True(t, read[quantity.Name], "no call yields %s", quantity.Name)
	}
}

// A quantity that is wanted alone brings the calls that yield it, and the one
// for fields where they are made of fields; nothing wanted brings no call.
func TestCallsFollowFromWhatIsWanted(t *testing.T) {
	assert.Empty(t, unbound().questions(func(*device.Quantity) bool { return false }))
	for _, quantity := range device.Quantities {
		for _, c := range unbound().questions(func(q *device.Quantity) bool { return q == quantity }) {
			if c.name == "fields" {
				assert.Empty(t, c.yields)
				continue
			}
			assert.Contains(t, c.yields, quantity, c.name)
		}
	}
}

func TestThrottled(t *testing.T) {
	throttled := func(reasons uint64) device.Readings {
		of := table{gpu: bound(&mock.Device{GetCurrentClocksEventReasonsFunc: func() (uint64, nvml.Return) { return reasons, nvml.SUCCESS }})}
		var read values
		assert.Equal(t, statusSuccess, of.throttleReasons(&read))
		var r device.Readings
		store(read.numbers, &r)
		return r
	}
	idle := throttled(0x1)
	for _, reason := range device.ThrottleReasons.Members {
		assert.Equal(t, device.Read(0), reason.Of(&idle), "idle is no reason")
	}
	r := throttled(0x4 | 0x40)
	for reason, expected := range map[string]float64{"sw_power_cap": 1, "hw_thermal_slowdown": 1, "hw_slowdown": 0} {
		assert.Equal(t, device.Read(expected), device.ThrottleReasons.Member(reason).Of(&r), reason)
	}
}

// bound is a GPU of a library that has every symbol.
func bound(handle nvml.Device) *gpu {
	l := &library{
		nvml: &mock.Interface{ExtensionsFunc: func() nvml.ExtendedInterface {
			return &mock.ExtendedInterface{LookupSymbolFunc: func(string) error { return nil }}
		}},
		symbols: make(map[string]bool), gpm: make(map[*gpmSamples]struct{}),
	}
	return l.bind(handle)
}
