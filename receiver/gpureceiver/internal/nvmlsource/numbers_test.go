//go:build cgo && linux

package nvmlsource

import (
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// The numbers that are written down without NVML are those of NVML's header, and
// where the header is newer than a driver, those that the driver is asked with.
func TestNumbersAreThoseOfTheHeader(t *testing.T) {
	assert.Equal(t, [3]int{269, 270, 271}, [...]int{
		nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
		nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
	}, "drivers before use 251 to 253")
	for action, expected := range map[nvml.DeviceGpuRecoveryAction]xid.Effect{
		nvml.GPU_RECOVERY_ACTION_NONE:                xid.None,
		nvml.GPU_RECOVERY_ACTION_GPU_RESET:           xid.Fails,
		nvml.GPU_RECOVERY_ACTION_NODE_REBOOT:         xid.Fails,
		nvml.GPU_RECOVERY_ACTION_DRAIN_P2P:           xid.Degrades,
		nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET:     xid.Degrades,
		nvml.GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN: xid.Degrades,
	} {
		assert.Equal(t, expected, xid.AfterAction(float64(action)), action)
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
