package gpureceiver

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const (
	corrected   = metadata.AttributeErrorTypeCorrected
	uncorrected = metadata.AttributeErrorTypeUncorrected
)

// recordStatus makes the points of a GPU's health, and none if it is unknown.
func (p *points) recordStatus(present health.State) {
	if present == "" {
		return
	}
	for _, state := range health.States {
		p.RecordHwStatusDataPoint(p.now, oneIf(state == present), p.id, p.host, p.index,
			hwTypeGPU, metadata.MapAttributeHwState[string(state)], p.labels...)
	}
}

// healthMetrics are those about errors and repairs.
func healthMetrics() []gpuMetric {
	errors := func(of *device.Quantity, kind metadata.AttributeErrorType) gpuMetric {
		return number(declared.HwErrors.Name, of, func(p *points, count int64) {
			p.RecordHwErrorsDataPoint(p.now, count, p.id, p.host, p.index, hwTypeGPU, kind, p.labels...)
		})
	}
	return slices.Concat([]gpuMetric{
		needs(declared.HwStatus.Name, device.RemapPending, device.RemapFailed, device.RecoveryAction),
		needs(declared.NvidiaGpuXidErrors.Name),
		errors(device.ECCCorrected, corrected),
		errors(device.ECCUncorrected, uncorrected),
		labelled(declared.NvidiaGpuMemoryRemappedRows.Name, device.RemappedCorrectable,
			(*builder).RecordNvidiaGpuMemoryRemappedRowsDataPoint, metadata.AttributeNvidiaGpuMemoryRemapCauseCorrectable),
		labelled(declared.NvidiaGpuMemoryRemappedRows.Name, device.RemappedUncorrectable,
			(*builder).RecordNvidiaGpuMemoryRemappedRowsDataPoint, metadata.AttributeNvidiaGpuMemoryRemapCauseUncorrectable),
		plain(declared.NvidiaGpuMemoryRemapPending.Name, device.RemapPending, (*builder).RecordNvidiaGpuMemoryRemapPendingDataPoint),
		plain(declared.NvidiaGpuMemoryRemapFailed.Name, device.RemapFailed, (*builder).RecordNvidiaGpuMemoryRemapFailedDataPoint),
		labelled(declared.NvidiaGpuMemoryRetiredPages.Name, device.RetiredSingleBit,
			(*builder).RecordNvidiaGpuMemoryRetiredPagesDataPoint, metadata.AttributeNvidiaGpuMemoryRetirementCauseMultipleSingleBit),
		labelled(declared.NvidiaGpuMemoryRetiredPages.Name, device.RetiredDoubleBit,
			(*builder).RecordNvidiaGpuMemoryRetiredPagesDataPoint, metadata.AttributeNvidiaGpuMemoryRetirementCauseDoubleBit),
		plain(declared.NvidiaGpuRecoveryAction.Name, device.RecoveryAction, (*builder).RecordNvidiaGpuRecoveryActionDataPoint),
	}, lifetimeErrors(device.LifetimeCorrected, corrected), lifetimeErrors(device.LifetimeUncorrected, uncorrected))
}

// lifetimeErrors are the memory errors of a GPU's life by location.
func lifetimeErrors(of *device.Set, kind metadata.AttributeErrorType) []gpuMetric {
	metrics := make([]gpuMetric, 0, len(of.Names))
	for _, name := range of.Names {
		location := metadata.MapAttributeNvidiaGpuMemoryLocation[name]
		metrics = append(metrics, number(declared.NvidiaGpuEccErrorsLifetime.Name, of.Member(name), func(p *points, count int64) {
			p.RecordNvidiaGpuEccErrorsLifetimeDataPoint(p.now, count, p.id, p.host, p.index, kind, location, p.labels...)
		}))
	}
	return metrics
}

// recordXIDs makes the points of a GPU's error counts.
func (p *points) recordXIDs(errors *errorCounts) {
	if !p.cfg.Metrics.NvidiaGpuXidErrors.Enabled {
		return
	}
	for _, count := range errors.of(p.id) {
		var a workload.Attributes[metadata.MetricAttributeOption]
		a.Number(count.gpuInstance, metadata.WithNvidiaGpuMigGpuInstanceIDMetricAttribute)
		a.Number(count.computeInstance, metadata.WithNvidiaGpuMigComputeInstanceIDMetricAttribute)
		p.RecordNvidiaGpuXidErrorsDataPoint(p.now, count.value, p.id, p.host, p.index, count.code, p.with(a...)...)
	}
}
