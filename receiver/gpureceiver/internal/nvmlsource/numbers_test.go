//go:build cgo && linux

package nvmlsource

import (
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// The numbers that this package writes down, so that it compiles without NVML,
// are those of NVML's header.
func TestNumbersAreThoseOfTheHeader(t *testing.T) {
	for ours, header := range map[int]int{
		fieldRetiredSingleBit:   nvml.FI_DEV_RETIRED_SBE,
		fieldRetiredDoubleBit:   nvml.FI_DEV_RETIRED_DBE,
		fieldNVLinkCRCFlit:      nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
		fieldNVLinkCRCData:      nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
		fieldNVLinkReplay:       nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
		fieldNVLinkRecovery:     nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
		fieldThrottlePower:      nvml.FI_DEV_PERF_POLICY_POWER,
		fieldThrottleThermal:    nvml.FI_DEV_PERF_POLICY_THERMAL,
		fieldThrottleBoost:      nvml.FI_DEV_PERF_POLICY_SYNC_BOOST,
		fieldMemoryTemp:         nvml.FI_DEV_MEMORY_TEMP,
		fieldNVLinkCount:        nvml.FI_DEV_NVLINK_LINK_COUNT,
		fieldPCIeReplays:        nvml.FI_DEV_PCIE_REPLAY_COUNTER,
		fieldNVLinkDataTX:       nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
		fieldNVLinkDataRX:       nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
		fieldNVLinkECC:          nvml.FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL,
		fieldPowerInstant:       nvml.FI_DEV_POWER_INSTANT,
		fieldSlowdownMargin:     nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT,
		fieldNVLink5TX:          nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES,
		fieldNVLink5RX:          nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES,
		fieldRecoveryAction:     nvml.FI_DEV_GET_GPU_RECOVERY_ACTION,
		fieldThrottleSWThermal:  nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
		fieldThrottleHWThermal:  nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
		fieldThrottlePowerBrake: nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
	} {
		assert.Equal(t, header, ours)
	}

	for ours, header := range map[uint32]nvml.GpmMetricId{
		gpmSMUtilization:   nvml.GPM_METRIC_SM_UTIL,
		gpmSMOccupancy:     nvml.GPM_METRIC_SM_OCCUPANCY,
		gpmInteger:         nvml.GPM_METRIC_INTEGER_UTIL,
		gpmTensor:          nvml.GPM_METRIC_ANY_TENSOR_UTIL,
		gpmDRAM:            nvml.GPM_METRIC_DRAM_BW_UTIL,
		gpmFP64:            nvml.GPM_METRIC_FP64_UTIL,
		gpmFP32:            nvml.GPM_METRIC_FP32_UTIL,
		gpmFP16:            nvml.GPM_METRIC_FP16_UTIL,
		gpmPCIeTransmitted: nvml.GPM_METRIC_PCIE_TX_PER_SEC,
		gpmPCIeReceived:    nvml.GPM_METRIC_PCIE_RX_PER_SEC,
	} {
		assert.Equal(t, header, nvml.GpmMetricId(ours))
	}

	for ours, header := range map[valueType]nvml.ValueType{
		typeDouble: nvml.VALUE_TYPE_DOUBLE, typeUnsignedInt: nvml.VALUE_TYPE_UNSIGNED_INT,
		typeUnsignedLong: nvml.VALUE_TYPE_UNSIGNED_LONG, typeUnsignedLongLong: nvml.VALUE_TYPE_UNSIGNED_LONG_LONG,
		typeSignedLongLong: nvml.VALUE_TYPE_SIGNED_LONG_LONG, typeSignedInt: nvml.VALUE_TYPE_SIGNED_INT,
		typeUnsignedShort: nvml.VALUE_TYPE_UNSIGNED_SHORT,
	} {
		assert.Equal(t, header, nvml.ValueType(ours))
	}

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
