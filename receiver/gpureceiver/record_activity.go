package gpureceiver

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// activityMetrics are those about how busy a GPU is.
func activityMetrics() []gpuMetric {
	metrics := append([]gpuMetric{
		plain(declared.NvidiaGpuSmUtilization.Name, device.SMUtilization, (*builder).RecordNvidiaGpuSmUtilizationDataPoint),
		plain(declared.NvidiaGpuSmOccupancy.Name, device.SMOccupancy, (*builder).RecordNvidiaGpuSmOccupancyDataPoint),
		plain(declared.NvidiaGpuDramUtilization.Name, device.DRAMUtilization, (*builder).RecordNvidiaGpuDramUtilizationDataPoint),
	}, each(declared.NvidiaGpuPipeUtilization.Name, device.PipeUtilization,
		(*builder).RecordNvidiaGpuPipeUtilizationDataPoint, metadata.MapAttributeNvidiaGpuPipe)...)
	for _, engine := range device.Engines {
		task := metadata.MapAttributeHwGpuTask[engine.Task]
		for _, m := range []gpuMetric{
			labelled(declared.HwGpuUtilization.Name, engine.Utilization, (*builder).RecordHwGpuUtilizationDataPoint, task),
			labelled(declared.NvidiaGpuUtilizationPeak.Name, engine.Peak, (*builder).RecordNvidiaGpuUtilizationPeakDataPoint, task),
			labelled(declared.NvidiaGpuBusyTime.Name, engine.BusyTime, (*builder).RecordNvidiaGpuBusyTimeDataPoint, task),
		} {
			m.when = func(cfg *Config) bool { return slices.Contains(cfg.Engines, engine.Task) }
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// memoryMetrics are those about memory.
func memoryMetrics() []gpuMetric {
	return []gpuMetric{
		plain(declared.HwGpuMemoryLimit.Name, device.MemoryTotal, (*builder).RecordHwGpuMemoryLimitDataPoint),
		plain(declared.HwGpuMemoryUsage.Name, device.MemoryUsed, (*builder).RecordHwGpuMemoryUsageDataPoint),
		{
			name: declared.HwGpuMemoryUtilization.Name, of: []*device.Quantity{device.MemoryUsed, device.MemoryTotal},
			record: func(p *points, r *device.Readings) {
				if used, total := device.MemoryUsed.Of(r), device.MemoryTotal.Of(r); used.Known && total.Known {
					p.RecordHwGpuMemoryUtilizationDataPoint(p.now, used.Value/total.Value, p.id, p.host, p.index, p.labels...)
				}
			},
		},
		plain(declared.NvidiaGpuMemoryReserved.Name, device.MemoryReserved, (*builder).RecordNvidiaGpuMemoryReservedDataPoint),
		plain(declared.NvidiaGpuBar1Usage.Name, device.BAR1Used, (*builder).RecordNvidiaGpuBar1UsageDataPoint),
		plain(declared.NvidiaGpuMemoryControllerUtilization.Name, device.MemoryControllerUtilization,
			(*builder).RecordNvidiaGpuMemoryControllerUtilizationDataPoint),
	}
}
