//go:build cgo && linux

package nvmlsource

import (
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// The numbers that are written down without NVML are those of NVML's header, and
// where the header is newer than a driver, those that the driver is asked with.
func TestNumbersAreThoseOfTheHeader(t *testing.T) {
	assert.Equal(t, [3]int{269, 270, 271}, [...]int{
		nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
		nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
	}, "drivers before use 251 to 253")
	for ours, header := range map[int]nvml.DeviceGpuRecoveryAction{
		device.RecoveryNone:          nvml.GPU_RECOVERY_ACTION_NONE,
		device.RecoveryGPUReset:      nvml.GPU_RECOVERY_ACTION_GPU_RESET,
		device.RecoveryNodeReboot:    nvml.GPU_RECOVERY_ACTION_NODE_REBOOT,
		device.RecoveryDrainP2P:      nvml.GPU_RECOVERY_ACTION_DRAIN_P2P,
		device.RecoveryDrainAndReset: nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET,
		device.RecoveryIMEXDomain:    nvml.GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN,
	} {
		assert.Equal(t, header, nvml.DeviceGpuRecoveryAction(ours))
	}
}

func TestTemperatures(t *testing.T) {
	assert.InDelta(t, 61, signed(61), 0)
	assert.InDelta(t, -5, signed(math.MaxUint32-4), 0)

	for value, expected := range map[float64]status{0: statusNotSupported, 1: statusSuccess, -5: statusSuccess} {
		_, result := sensor(fieldNumber{read: func() (float64, status) { return value, statusSuccess }}).read()
		assert.Equal(t, expected, result, "the memory's sensor tells %v", value)
	}
	_, result := sensor(fieldNumber{read: func() (float64, status) { return 0, statusGPUIsLost }}).read()
	assert.Equal(t, statusGPUIsLost, result)
}
