//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// fieldCalls are one call for all wanted fields, and what takes them apart.
func (g *boundGPU) fieldCalls(wanted func(call string) bool) []call {
	batch := &fieldBatch{ask: g.askFields, io: wanted(callNVLinkIO)}
	var parts []call
	part := func(c call) {
		c.part = true
		parts = append(parts, c)
	}
	field := func(id, scope uint32, unit float64) func() (float64, status) {
		key := batch.want(id, scope)
		return func() (float64, status) {
			value, result := batch.number(key)
			return value * unit, result
		}
	}

	if wanted(callMemoryTemperature) {
		part(number(callMemoryTemperature, sensor(field(fieldMemoryTemp, 0, 1)), func(r *device.Readings) *device.Number { return &r.Thermal.Memory }))
	}
	if wanted(callTemperatureLimits) {
		batch.want(fieldSlowdownMargin, 0)
		parts = append(parts, g.temperatureLimits(batch)...)
	}
	if wanted(callPowerInstant) {
		part(number(callPowerInstant, field(fieldPowerInstant, 0, milli), func(r *device.Readings) *device.Number { return &r.Power.InstantGPU }))
		part(number(callPowerInstant, field(fieldPowerInstant, moduleScope, milli), func(r *device.Readings) *device.Number { return &r.Power.InstantModule }))
	}
	if wanted(callThrottleTimes) {
		times := func(r *device.Readings) *device.Numbers { return &r.Clocks.ThrottleSeconds }
		long := func(id uint32) func() (float64, status) {
			key := batch.want(id, 0)
			return func() (float64, status) {
				value, result := batch.longNumber(key)
				return value * nano, result
			}
		}
		part(named(callThrottleTimes, field(fieldThrottlePower, 0, nano), times, "sw_power_cap"))
		part(named(callThrottleTimes, field(fieldThrottleBoost, 0, nano), times, "sync_boost"))
		part(named(callThrottleTimes, either(long(fieldThrottleSWThermal), field(fieldThrottleThermal, 0, nano)), times, "sw_thermal_slowdown"))
		part(named(callThrottleTimes, long(fieldThrottleHWThermal), times, "hw_thermal_slowdown"))
		part(named(callThrottleTimes, long(fieldThrottlePowerBrake), times, "hw_power_brake_slowdown"))
	}
	if wanted(callPCIeReplays) {
		part(number(callPCIeReplays, field(fieldPCIeReplays, 0, 1), func(r *device.Readings) *device.Number { return &r.PCIe.Replays }))
	}
	if wanted(callNVLinkErrors) {
		errors := func(r *device.Readings) *device.Numbers { return &r.NVLink.Errors }
		part(named(callNVLinkErrors, field(fieldNVLinkCRCFlit, 0, 1), errors, "crc_flit"))
		part(named(callNVLinkErrors, field(fieldNVLinkCRCData, 0, 1), errors, "crc_data"))
		part(named(callNVLinkErrors, field(fieldNVLinkReplay, 0, 1), errors, "replay"))
		part(named(callNVLinkErrors, field(fieldNVLinkRecovery, 0, 1), errors, "recovery"))
		part(named(callNVLinkErrors, field(fieldNVLinkECC, 0, 1), errors, "ecc"))
	}
	if wanted(callNVLinkIO) {
		const kibibyte = 1024
		batch.want(fieldNVLinkCount, 0)
		sum := func(id uint32) func() (float64, status) {
			return func() (float64, status) { return batch.linkSum(id) }
		}
		part(number(callNVLinkIO, either(field(fieldNVLinkDataRX, allLinks, kibibyte), sum(fieldNVLink5RX)), func(r *device.Readings) *device.Number { return &r.NVLink.Received }))
		part(number(callNVLinkIO, either(field(fieldNVLinkDataTX, allLinks, kibibyte), sum(fieldNVLink5TX)), func(r *device.Readings) *device.Number { return &r.NVLink.Transmitted }))
	}
	if wanted(callNVLinkLinks) {
		batch.want(fieldNVLinkCount, 0)
		parts = append(parts, call{name: callNVLinkLinks, read: func() (func(*device.Readings), status) { return g.linkStates(batch) }})
	}
	if wanted(callRetiredPages) {
		part(number(callRetiredPages, field(fieldRetiredSingleBit, 0, 1), func(r *device.Readings) *device.Number { return &r.Repair.RetiredSingleBit }))
		part(number(callRetiredPages, field(fieldRetiredDoubleBit, 0, 1), func(r *device.Readings) *device.Number { return &r.Repair.RetiredDoubleBit }))
	}
	if wanted(callRecoveryAction) {
		part(number(callRecoveryAction, field(fieldRecoveryAction, 0, 1), func(r *device.Readings) *device.Number { return &r.RecoveryAction }))
	}
	if len(batch.keys) == 0 {
		return parts
	}
	fetch := call{name: callFields, read: func() (func(*device.Readings), status) {
		return func(*device.Readings) {}, batch.fetch()
	}}
	return append([]call{fetch}, parts...)
}

// sensor leaves out 0 °C, which GPUs answer that do not have the sensor.
func sensor(ask func() (float64, status)) func() (float64, status) {
	return func() (float64, status) {
		value, result := ask()
		if result == statusSuccess && value == 0 {
			return 0, statusNotSupported
		}
		return value, result
	}
}

// either asks the second where the first is not supported.
func either(first, second func() (float64, status)) func() (float64, status) {
	return func() (float64, status) {
		if value, result := first(); !result.unsupported() {
			return value, result
		}
		return second()
	}
}

// askFields makes the call. The call succeeds as a whole also where a field
// failed.
func (g *boundGPU) askFields(keys []fieldKey) ([]fieldAnswer, status) {
	if !g.has("nvmlDeviceGetFieldValues") {
		return nil, statusFunctionNotFound
	}
	values := make([]nvml.FieldValue, len(keys))
	for i, key := range keys {
		values[i].FieldId, values[i].ScopeId = key.id, key.scope
	}
	if ret := g.device.GetFieldValues(values); ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	answers := make([]fieldAnswer, len(keys))
	for i := range values {
		answers[i] = fieldAnswer{
			key: keys[i], result: statusOf(nvml.Return(values[i].NvmlReturn)),
			kind: valueType(values[i].ValueType), raw: values[i].Value,
		}
	}
	return answers, statusSuccess
}

// linkStates counts the NVLinks that are up and down. A GPU that does not say
// how many it has is asked until there is no next one.
func (g *boundGPU) linkStates(batch *fieldBatch) (func(*device.Readings), status) {
	if !g.has("nvmlDeviceGetNvLinkState") {
		return nil, statusFunctionNotFound
	}
	links, result := batch.links()
	if result != statusSuccess {
		links = maxLinks
	}
	var active, inactive int
	result = statusNotSupported
	for link := range links {
		state, ret := g.device.GetNvLinkState(int(link))
		told := statusOf(ret)
		if told == statusInvalidArgument {
			break
		}
		if told != statusSuccess {
			if active+inactive == 0 {
				result = told
			}
			break
		}
		result = statusSuccess
		if state == nvml.FEATURE_ENABLED {
			active++
		} else {
			inactive++
		}
	}
	return func(r *device.Readings) {
		r.NVLink.ActiveLinks, r.NVLink.InactiveLinks = device.Read(float64(active)), device.Read(float64(inactive))
	}, result
}
