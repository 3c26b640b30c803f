package gpureceiver

import (
	"reflect"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// sourceReplay is the value of nvidia.gpu.source on all recorded data.
const sourceReplay = "replay"

// hwTypeGPU is the value of hw.type.
const hwTypeGPU = metadata.AttributeHwTypeGpu

// points makes the points of one GPU at one time. A reading that is unavailable
// makes no point.
type points struct {
	*metadata.MetricsBuilder
	cfg   *Config
	now   pcommon.Timestamp
	id    string
	host  string
	index int64
	// labels are the attributes of every point beside the metric's own.
	labels []metadata.MetricAttributeOption
}

// with returns more attributes and the labels.
func (p *points) with(more ...metadata.MetricAttributeOption) []metadata.MetricAttributeOption {
	return append(more, p.labels...)
}

// hostLabels returns the attributes of every point of a snapshot beside the
// metric's own.
func hostLabels(snapshot *device.Snapshot) []metadata.MetricAttributeOption {
	if !snapshot.Replayed {
		return nil
	}
	return []metadata.MetricAttributeOption{metadata.WithNvidiaGpuSourceMetricAttribute(sourceReplay)}
}

// oneIf returns 1 for true and 0 for false.
func oneIf(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}

// gpuMetric is a metric, or a part of its points, with what it is made of.
type gpuMetric struct {
	name string
	// of are the quantities that the points need.
	of []*device.Quantity
	// record makes the points of readings. It is nil where they are made of
	// something else.
	record func(*points, *device.Readings)
}

// declared names the metrics of metadata.yaml.
var declared = &metadata.MetricsInfo

type builder = metadata.MetricsBuilder

// number is a metric whose points are made of a quantity.
func number[T int64 | float64](name string, of *device.Quantity, record func(*points, T)) gpuMetric {
	return gpuMetric{name: name, of: []*device.Quantity{of}, record: func(p *points, r *device.Readings) {
		if v := of.Of(r); v.Known {
			record(p, T(v.Value))
		}
	}}
}

// recorder is a method of the builder that makes a point of a GPU.
type recorder[T int64 | float64] = func(*builder, pcommon.Timestamp, T, string, string, int64, ...metadata.MetricAttributeOption)

// recorderBy is a recorder for points with one attribute of their own.
type recorderBy[T int64 | float64, A any] = func(*builder, pcommon.Timestamp, T, string, string, int64, A, ...metadata.MetricAttributeOption)

// plain is a metric whose one point is a quantity.
func plain[T int64 | float64](name string, of *device.Quantity, record recorder[T]) gpuMetric {
	return number(name, of, func(p *points, value T) {
		record(p.MetricsBuilder, p.now, value, p.id, p.host, p.index, p.labels...)
	})
}

// labelled is the point of a metric that has this value of the metric's own
// attribute.
func labelled[T int64 | float64, A any](name string, of *device.Quantity, record recorderBy[T, A], attribute A) gpuMetric {
	return number(name, of, func(p *points, value T) {
		record(p.MetricsBuilder, p.now, value, p.id, p.host, p.index, attribute, p.labels...)
	})
}

// each is a metric with a point for each member of a set. The metric's own
// attribute has the members' names.
func each[T int64 | float64, A any](name string, of *device.Set, record recorderBy[T, A], attributes map[string]A) []gpuMetric {
	var metrics []gpuMetric
	for i, member := range of.Names {
		metrics = append(metrics, labelled(name, of.Members[i], record, attributes[member]))
	}
	return metrics
}

// needs is a metric whose points are not made of readings, and for which a
// source has to read some quantities.
func needs(name string, of ...*device.Quantity) gpuMetric {
	return gpuMetric{name: name, of: of}
}

const (
	receive     = metadata.AttributeNetworkIoDirectionReceive
	transmit    = metadata.AttributeNetworkIoDirectionTransmit
	current     = metadata.AttributeNvidiaGpuPcieLinkBoundCurrent
	largest     = metadata.AttributeNvidiaGpuPcieLinkBoundMax
	corrected   = metadata.AttributeErrorTypeCorrected
	uncorrected = metadata.AttributeErrorTypeUncorrected
)

// allMetrics returns all metrics of the receiver: the table of what their points are
// made of.
func allMetrics() []gpuMetric {
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
	errors := func(of *device.Quantity, kind metadata.AttributeErrorType) gpuMetric {
		return number(declared.HwErrors.Name, of, func(p *points, count int64) {
			p.RecordHwErrorsDataPoint(p.now, count, p.id, p.host, p.index, hwTypeGPU, kind, p.labels...)
		})
	}
	lifetime := func(of *device.Set, kind metadata.AttributeErrorType) (all []gpuMetric) {
		for i, name := range of.Names {
			location := metadata.MapAttributeNvidiaGpuMemoryLocation[name]
			all = append(all, number(declared.NvidiaGpuEccErrorsLifetime.Name, of.Members[i], func(p *points, count int64) {
				p.RecordNvidiaGpuEccErrorsLifetimeDataPoint(p.now, count, p.id, p.host, p.index, kind, location, p.labels...)
			}))
		}
		return all
	}
	metrics := []gpuMetric{
		needs(declared.NvidiaGpuDriverState.Name),
		needs(declared.NvidiaGpuAttribution.Name, device.ProcessList),
		needs(declared.NvidiaGpuInfo.Name),
		needs(declared.NvidiaGpuKernelLogState.Name),
		needs(declared.NvidiaNvswitchSxidErrors.Name),

		needs(declared.NvidiaGpuProcesses.Name, device.ProcessList),
		needs(declared.NvidiaGpuProcessMemoryUsage.Name, device.ProcessList),
		needs(declared.NvidiaGpuProcessUtilization.Name, device.ProcessList, device.ProcessUtilization),
		needs(declared.NvidiaGpuWorkloadMemoryUsage.Name, device.ProcessList),
		needs(declared.NvidiaGpuWorkloadUtilization.Name, device.ProcessList, device.ProcessUtilization),

		plain(declared.NvidiaGpuSmUtilization.Name, device.SMUtilization, (*builder).RecordNvidiaGpuSmUtilizationDataPoint),
		plain(declared.NvidiaGpuSmOccupancy.Name, device.SMOccupancy, (*builder).RecordNvidiaGpuSmOccupancyDataPoint),
		plain(declared.NvidiaGpuDramUtilization.Name, device.DRAMUtilization, (*builder).RecordNvidiaGpuDramUtilizationDataPoint),

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

		labelled(declared.HwPower.Name, device.PowerDraw, (*builder).RecordHwPowerDataPoint, hwTypeGPU),
		labelled(declared.HwEnergy.Name, device.Energy, (*builder).RecordHwEnergyDataPoint, hwTypeGPU),
		labelled(declared.NvidiaGpuPowerLimit.Name, device.PowerLimit,
			(*builder).RecordNvidiaGpuPowerLimitDataPoint, metadata.AttributeNvidiaGpuPowerLimitTypeEnforced),
		plain(declared.NvidiaGpuPowerPeak.Name, device.PowerPeak, (*builder).RecordNvidiaGpuPowerPeakDataPoint),
		labelled(declared.NvidiaGpuPowerInstant.Name, device.PowerInstantGPU,
			(*builder).RecordNvidiaGpuPowerInstantDataPoint, metadata.AttributeNvidiaGpuPowerScopeGpu),
		labelled(declared.NvidiaGpuPowerInstant.Name, device.PowerInstantModule,
			(*builder).RecordNvidiaGpuPowerInstantDataPoint, metadata.AttributeNvidiaGpuPowerScopeModule),

		temperature(device.GPUTemperature, metadata.AttributeHwSensorLocationGpu),
		temperature(device.MemoryTemperature, metadata.AttributeHwSensorLocationMemory),
		limit(device.SlowdownTemperature, metadata.AttributeHwLimitTypeHighDegraded),
		limit(device.ShutdownTemperature, metadata.AttributeHwLimitTypeHighCritical),
		plain(declared.NvidiaGpuPerformanceState.Name, device.PerformanceState, (*builder).RecordNvidiaGpuPerformanceStateDataPoint),

		labelled(declared.HwGpuIo.Name, device.PCIeReceived, (*builder).RecordHwGpuIoDataPoint, receive),
		labelled(declared.HwGpuIo.Name, device.PCIeTransmitted, (*builder).RecordHwGpuIoDataPoint, transmit),
		labelled(declared.NvidiaGpuPcieThroughput.Name, device.PCIeReceiveRate, (*builder).RecordNvidiaGpuPcieThroughputDataPoint, receive),
		labelled(declared.NvidiaGpuPcieThroughput.Name, device.PCIeTransmitRate, (*builder).RecordNvidiaGpuPcieThroughputDataPoint, transmit),
		plain(declared.NvidiaGpuPcieReplays.Name, device.PCIeReplays, (*builder).RecordNvidiaGpuPcieReplaysDataPoint),
		labelled(declared.NvidiaGpuPcieLinkGeneration.Name, device.PCIeGeneration, (*builder).RecordNvidiaGpuPcieLinkGenerationDataPoint, current),
		labelled(declared.NvidiaGpuPcieLinkGeneration.Name, device.PCIeMaxGeneration, (*builder).RecordNvidiaGpuPcieLinkGenerationDataPoint, largest),
		labelled(declared.NvidiaGpuPcieLinkWidth.Name, device.PCIeWidth, (*builder).RecordNvidiaGpuPcieLinkWidthDataPoint, current),
		labelled(declared.NvidiaGpuPcieLinkWidth.Name, device.PCIeMaxWidth, (*builder).RecordNvidiaGpuPcieLinkWidthDataPoint, largest),

		labelled(declared.NvidiaGpuNvlinkIo.Name, device.NVLinkReceived, (*builder).RecordNvidiaGpuNvlinkIoDataPoint, receive),
		labelled(declared.NvidiaGpuNvlinkIo.Name, device.NVLinkTransmitted, (*builder).RecordNvidiaGpuNvlinkIoDataPoint, transmit),
		labelled(declared.NvidiaGpuNvlinkLinks.Name, device.NVLinkActiveLinks,
			(*builder).RecordNvidiaGpuNvlinkLinksDataPoint, metadata.AttributeNvidiaGpuNvlinkStateActive),
		labelled(declared.NvidiaGpuNvlinkLinks.Name, device.NVLinkInactiveLinks,
			(*builder).RecordNvidiaGpuNvlinkLinksDataPoint, metadata.AttributeNvidiaGpuNvlinkStateInactive),

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
	}
	for i, fan := range device.FanSpeeds.Members {
		metrics = append(metrics, labelled(declared.HwFanSpeedRatio.Name, fan, (*builder).RecordHwFanSpeedRatioDataPoint, "fan"+strconv.Itoa(i)))
	}
	for _, engine := range device.Engines {
		task := metadata.MapAttributeHwGpuTask[engine.Task]
		metrics = append(metrics,
			labelled(declared.HwGpuUtilization.Name, engine.Utilization, (*builder).RecordHwGpuUtilizationDataPoint, task),
			labelled(declared.NvidiaGpuUtilizationPeak.Name, engine.Peak, (*builder).RecordNvidiaGpuUtilizationPeakDataPoint, task),
			labelled(declared.NvidiaGpuBusyTime.Name, engine.BusyTime, (*builder).RecordNvidiaGpuBusyTimeDataPoint, task))
	}
	return slices.Concat(metrics,
		lifetime(device.LifetimeCorrected, corrected),
		lifetime(device.LifetimeUncorrected, uncorrected),
		each(declared.NvidiaGpuPipeUtilization.Name, device.PipeUtilization,
			(*builder).RecordNvidiaGpuPipeUtilizationDataPoint, metadata.MapAttributeNvidiaGpuPipe),
		each(declared.NvidiaGpuClockFrequency.Name, device.ClockFrequencies,
			(*builder).RecordNvidiaGpuClockFrequencyDataPoint, metadata.MapAttributeNvidiaGpuClockDomain),
		each(declared.NvidiaGpuClockLimit.Name, device.ClockLimits,
			(*builder).RecordNvidiaGpuClockLimitDataPoint, metadata.MapAttributeNvidiaGpuClockDomain),
		each(declared.NvidiaGpuThrottleActive.Name, device.ThrottleReasons,
			(*builder).RecordNvidiaGpuThrottleActiveDataPoint, metadata.MapAttributeNvidiaGpuThrottleReason),
		each(declared.NvidiaGpuThrottleTime.Name, device.ThrottleTimes,
			(*builder).RecordNvidiaGpuThrottleTimeDataPoint, metadata.MapAttributeNvidiaGpuThrottleReason),
		each(declared.NvidiaGpuNvlinkErrors.Name, device.NVLinkErrors,
			(*builder).RecordNvidiaGpuNvlinkErrorsDataPoint, metadata.MapAttributeErrorTypeNvlink))
}

// describedBy are the quantities of resource attributes.
var describedBy = map[string]*device.Quantity{
	"hw.serial_number":        device.Serial,
	"hw.firmware_version":     device.VBIOS,
	"nvidia.gpu.architecture": device.Architecture,
	"nvidia.gpu.numa.node":    device.NUMANode,
	"nvidia.cuda.version":     device.CUDAVersion,
}

// metrics returns those that the configuration enables.
func (cfg *Config) metrics() []gpuMetric {
	enabled := enabledNames(cfg.Metrics)
	return slices.DeleteFunc(allMetrics(), func(m gpuMetric) bool { return !enabled[m.name] })
}

// wants returns a function that reports whether an enabled metric or resource
// attribute needs a quantity.
func (cfg *Config) wants() func(*device.Quantity) bool {
	wanted := make(map[*device.Quantity]bool)
	for _, m := range cfg.metrics() {
		for _, quantity := range m.of {
			wanted[quantity] = true
		}
	}
	for name := range enabledNames(cfg.MetricsBuilderConfig.ResourceAttributes) {
		if quantity, found := describedBy[name]; found {
			wanted[quantity] = true
		}
	}
	return func(q *device.Quantity) bool { return wanted[q] }
}

// enabledNames returns the names that a generated configuration has enabled.
func enabledNames(group any) map[string]bool {
	names := make(map[string]bool)
	fields := reflect.ValueOf(group)
	for i := range fields.NumField() {
		if fields.Field(i).FieldByName("Enabled").Bool() {
			names[fields.Type().Field(i).Tag.Get("mapstructure")] = true
		}
	}
	return names
}

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

// recordXIDs makes the points of a GPU's error counts.
func (p *points) recordXIDs(errors *errorCounts) {
	if !p.cfg.Metrics.NvidiaGpuXidErrors.Enabled {
		return
	}
	for of, count := range errors.of(p.id) {
		var a workload.Attributes[metadata.MetricAttributeOption]
		a.Number(of.gpuInstance, metadata.WithNvidiaGpuMigGpuInstanceIDMetricAttribute)
		a.Number(of.computeInstance, metadata.WithNvidiaGpuMigComputeInstanceIDMetricAttribute)
		p.RecordNvidiaGpuXidErrorsDataPoint(p.now, count, p.id, p.host, p.index, of.code, p.with(a...)...)
	}
}

// recordDriver emits the metrics about all GPUs on a resource of the host.
func recordDriver(metrics *builder, now pcommon.Timestamp, snapshot *device.Snapshot, errors *errorCounts) {
	labels := hostLabels(snapshot)
	for _, state := range device.DriverStates {
		metrics.RecordNvidiaGpuDriverStateDataPoint(now, oneIf(state == snapshot.Driver), snapshot.Host,
			metadata.MapAttributeNvidiaGpuDriverState[string(state)], labels...)
	}
	for _, source := range workload.Sources {
		present := snapshot.Attribution[source]
		if present == "" {
			continue
		}
		for _, state := range workload.SourceStates {
			metrics.RecordNvidiaGpuAttributionDataPoint(now, oneIf(state == present), snapshot.Host,
				metadata.MapAttributeNvidiaGpuAttributionSource[string(source)],
				metadata.MapAttributeNvidiaGpuAttributionState[string(state)], labels...)
		}
	}
	if snapshot.KernelLog != "" {
		for _, state := range kernellog.States {
			metrics.RecordNvidiaGpuKernelLogStateDataPoint(now, oneIf(string(state) == snapshot.KernelLog), snapshot.Host,
				metadata.MapAttributeNvidiaGpuKernelLogState[string(state)])
		}
	}
	for of, count := range errors.of(ofSwitches) {
		metrics.RecordNvidiaNvswitchSxidErrorsDataPoint(now, count, snapshot.Host, of.address, of.code, of.fatal)
	}

	metrics.EmitForResource(metadata.WithResource(describe(metrics.NewResourceBuilder(), &snapshot.System, nil)))
}

// recordIdentity makes the point of a GPU's identity.
func (p *points) recordIdentity(snapshot *device.Snapshot, gpu *device.Identity) {
	var a workload.Attributes[metadata.MetricAttributeOption]
	a.Text(gpu.Name, metadata.WithHwNameMetricAttribute)
	a.Text(snapshot.DriverVersion, metadata.WithHwDriverVersionMetricAttribute)
	a.Text(gpu.PCIBusID, metadata.WithNvidiaGpuPciBusIDMetricAttribute)
	if mig := gpu.MIG; mig != nil {
		a.Number(workload.Number{Value: int64(mig.GPUInstance), Known: true}, metadata.WithNvidiaGpuMigGpuInstanceIDMetricAttribute)
		a.Number(workload.Number{Value: int64(mig.ComputeInstance), Known: true}, metadata.WithNvidiaGpuMigComputeInstanceIDMetricAttribute)
		a.Text(mig.Profile, metadata.WithNvidiaGpuMigProfileMetricAttribute)
	}
	p.RecordNvidiaGpuInfoDataPoint(p.now, 1, p.id, p.host, p.index, p.with(a...)...)
}
