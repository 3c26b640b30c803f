package nvmlsource

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestThrottled(t *testing.T) {
	for _, name := range device.ThrottleReasons {
		assert.Contains(t, throttleBits, name)
	}
	assert.Len(t, throttleBits, len(device.ThrottleReasons))
	for _, value := range throttled(0x1) {
		assert.Zero(t, value, "idle is no reason")
	}
	numbers := throttled(0x4 | 0x40)
	assert.InDelta(t, 1, numbers["sw_power_cap"], 0)
	assert.InDelta(t, 1, numbers["hw_thermal_slowdown"], 0)
	assert.InDelta(t, 0, numbers["hw_slowdown"], 0)
}
