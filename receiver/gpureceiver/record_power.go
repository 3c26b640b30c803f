package gpureceiver

import (
	"slices"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// powerMetrics are those about power and energy.
func powerMetrics() []gpuMetric {
	limits := each(declared.NvidiaGpuPowerLimit.Name, device.PowerLimits,
		(*builder).RecordNvidiaGpuPowerLimitDataPoint, metadata.MapAttributeNvidiaGpuPowerLimitType)
	for i, kind := range device.PowerLimits.Names {
		limits[i].when = func(cfg *Config) bool { return slices.Contains(cfg.PowerLimits, kind) }
	}
	return append([]gpuMetric{
		labelled(declared.HwPower.Name, device.PowerDraw, (*builder).RecordHwPowerDataPoint, hwTypeGPU),
		labelled(declared.HwEnergy.Name, device.Energy, (*builder).RecordHwEnergyDataPoint, hwTypeGPU),
		plain(declared.NvidiaGpuPowerPeak.Name, device.PowerPeak, (*builder).RecordNvidiaGpuPowerPeakDataPoint),
		labelled(declared.NvidiaGpuPowerInstant.Name, device.PowerInstantGPU,
			(*builder).RecordNvidiaGpuPowerInstantDataPoint, metadata.AttributeNvidiaGpuPowerScopeGpu),
		labelled(declared.NvidiaGpuPowerInstant.Name, device.PowerInstantModule,
			(*builder).RecordNvidiaGpuPowerInstantDataPoint, metadata.AttributeNvidiaGpuPowerScopeModule),
	}, limits...)
}

// thermalMetrics are those about temperatures and fans.
func thermalMetrics() []gpuMetric {
	temperature := func(of *device.Quantity, sensor metadata.AttributeHwSensorLocation) gpuMetric {
		return number(declared.HwTemperature.Name, of, func(p *points, celsius float64) {
			p.RecordHwTemperatureDataPoint(p.now, celsius, p.id, p.host, p.index, hwTypeGPU, sensor, p.labels...)
		})
	}
	limit := func(of *device.Quantity, kind metadata.AttributeHwLimitType) gpuMetric {
		return number(declared.HwTemperatureLimit.Name, of, func(p *points, celsius float64) {
			p.RecordHwTemperatureLimitDataPoint(p.now, celsius, p.id, p.host, p.index,
				hwTypeGPU, metadata.AttributeHwSensorLocationGpu, kind, p.labels...)
		})
	}
	metrics := []gpuMetric{
		temperature(device.GPUTemperature, metadata.AttributeHwSensorLocationGpu),
		temperature(device.MemoryTemperature, metadata.AttributeHwSensorLocationMemory),
		limit(device.SlowdownTemperature, metadata.AttributeHwLimitTypeHighDegraded),
		limit(device.ShutdownTemperature, metadata.AttributeHwLimitTypeHighCritical),
	}
	for i, fan := range device.FanSpeeds.Members() {
		metrics = append(metrics, labelled(declared.HwFanSpeedRatio.Name, fan, (*builder).RecordHwFanSpeedRatioDataPoint, "fan"+strconv.Itoa(i)))
	}
	return metrics
}

// clockMetrics are those about clocks and what holds them down.
func clockMetrics() []gpuMetric {
	return slices.Concat(
		each(declared.NvidiaGpuClockFrequency.Name, device.ClockFrequencies,
			(*builder).RecordNvidiaGpuClockFrequencyDataPoint, metadata.MapAttributeNvidiaGpuClockDomain),
		each(declared.NvidiaGpuClockLimit.Name, device.ClockLimits,
			(*builder).RecordNvidiaGpuClockLimitDataPoint, metadata.MapAttributeNvidiaGpuClockDomain),
		each(declared.NvidiaGpuThrottleActive.Name, device.ThrottleReasons,
			(*builder).RecordNvidiaGpuThrottleActiveDataPoint, metadata.MapAttributeNvidiaGpuThrottleReason),
		each(declared.NvidiaGpuThrottleTime.Name, device.ThrottleTimes,
			(*builder).RecordNvidiaGpuThrottleTimeDataPoint, metadata.MapAttributeNvidiaGpuThrottleReason),
		[]gpuMetric{plain(declared.NvidiaGpuPerformanceState.Name, device.PerformanceState, (*builder).RecordNvidiaGpuPerformanceStateDataPoint)},
	)
}
