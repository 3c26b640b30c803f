package gpureceiver

import (
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const (
	corrected   = metadata.AttributeErrorTypeCorrected
	uncorrected = metadata.AttributeErrorTypeUncorrected
)

// recordStatus emits how a GPU is, and nothing where that is not known.
func (p *points) recordStatus(present health.State) {
	if present == "" {
		return
	}
	for _, state := range health.States {
		p.RecordHwStatusDataPoint(p.now, oneIf(state == present), p.id, p.host, p.index,
			hwTypeGPU, metadata.MapAttributeHwState[string(state)], p.labels...)
	}
}

func (p *points) recordErrors(readings *device.Readings) {
	for _, kind := range []struct {
		name     metadata.AttributeErrorType
		volatile device.Number
		lifetime device.Numbers
	}{
		{corrected, readings.ECC.Corrected, readings.ECC.LifetimeCorrected},
		{uncorrected, readings.ECC.Uncorrected, readings.ECC.LifetimeUncorrected},
	} {
		if kind.volatile.Known {
			p.RecordHwErrorsDataPoint(p.now, int64(kind.volatile.Value), p.id, p.host, p.index, hwTypeGPU, kind.name, p.labels...)
		}
		for _, location := range device.MemoryLocations {
			if value, known := kind.lifetime[location]; known {
				p.RecordNvidiaGpuEccErrorsLifetimeDataPoint(p.now, int64(value), p.id, p.host, p.index,
					kind.name, metadata.MapAttributeNvidiaGpuMemoryLocation[location], p.labels...)
			}
		}
	}

	repair := &readings.Repair
	if v := repair.RemappedCorrectable; v.Known {
		p.RecordNvidiaGpuMemoryRemappedRowsDataPoint(p.now, int64(v.Value), p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuMemoryRemapCauseCorrectable, p.labels...)
	}
	if v := repair.RemappedUncorrectable; v.Known {
		p.RecordNvidiaGpuMemoryRemappedRowsDataPoint(p.now, int64(v.Value), p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuMemoryRemapCauseUncorrectable, p.labels...)
	}
	if v := repair.RemapPending; v.Known {
		p.RecordNvidiaGpuMemoryRemapPendingDataPoint(p.now, oneIf(v.Value), p.id, p.host, p.index, p.labels...)
	}
	if v := repair.RemapFailed; v.Known {
		p.RecordNvidiaGpuMemoryRemapFailedDataPoint(p.now, oneIf(v.Value), p.id, p.host, p.index, p.labels...)
	}
	if v := repair.RetiredSingleBit; v.Known {
		p.RecordNvidiaGpuMemoryRetiredPagesDataPoint(p.now, int64(v.Value), p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuMemoryRetirementCauseMultipleSingleBit, p.labels...)
	}
	if v := repair.RetiredDoubleBit; v.Known {
		p.RecordNvidiaGpuMemoryRetiredPagesDataPoint(p.now, int64(v.Value), p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuMemoryRetirementCauseDoubleBit, p.labels...)
	}
	if v := readings.RecoveryAction; v.Known {
		p.RecordNvidiaGpuRecoveryActionDataPoint(p.now, int64(v.Value), p.id, p.host, p.index, p.labels...)
	}
}
