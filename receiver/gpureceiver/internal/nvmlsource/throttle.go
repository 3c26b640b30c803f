package nvmlsource

import "github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"

// throttleBits are the bits of NVML's reasons for low clocks, by the names of
// device.ThrottleReasons.
var throttleBits = map[string]uint64{
	"applications_clocks":     0x2,
	"sw_power_cap":            0x4,
	"hw_slowdown":             0x8,
	"sync_boost":              0x10,
	"sw_thermal_slowdown":     0x20,
	"hw_thermal_slowdown":     0x40,
	"hw_power_brake_slowdown": 0x80,
	"display_clocks":          0x100,
}

// throttled says for each reason whether it is among those that hold.
func throttled(reasons uint64) device.Numbers {
	numbers := make(device.Numbers, len(throttleBits))
	for name, bit := range throttleBits {
		numbers[name] = 0
		if reasons&bit != 0 {
			numbers[name] = 1
		}
	}
	return numbers
}
