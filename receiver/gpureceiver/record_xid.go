package gpureceiver

import (
	"math"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// recordXIDs makes the points of a GPU's error counts.
func (p *points) recordXIDs(errors *errorCounts) {
	if !p.cfg.Metrics.NvidiaGpuXidErrors.Enabled {
		return
	}
	for _, count := range errors.of(p.id) {
		options := p.labels
		if id := count.gpuInstance; id.Known {
			options = p.with(metadata.WithNvidiaGpuMigGpuInstanceIDMetricAttribute(id.Value))
			if id := count.computeInstance; id.Known {
				options = append(options, metadata.WithNvidiaGpuMigComputeInstanceIDMetricAttribute(id.Value))
			}
		}
		p.RecordNvidiaGpuXidErrorsDataPoint(p.now, count.value, p.id, p.host, p.index, count.code, options...)
	}
}

// codeValue is the attribute value of a code. Real codes are small.
func codeValue(code uint64) int64 {
	return int64(min(code, math.MaxInt64))
}

// severities are the log severities by the XIDs' own.
var severities = map[xid.Severity]plog.SeverityNumber{
	xid.Notice:  plog.SeverityNumberInfo,
	xid.Program: plog.SeverityNumberWarn,
	xid.Device:  plog.SeverityNumberError,
	xid.Gone:    plog.SeverityNumberFatal,
}

// eventAttributes are the known optional attributes of an event's record.
func eventAttributes(event *queuedEvent, meaning *xid.Meaning) []metadata.EventAttributeOption {
	var options []metadata.EventAttributeOption
	text := func(value string, attribute func(string) metadata.EventAttributeOption) {
		if value != "" {
			options = append(options, attribute(value))
		}
	}
	number := func(value workload.Number, attribute func(int64) metadata.EventAttributeOption) {
		if value.Known {
			options = append(options, attribute(value.Value))
		}
	}
	if meaning.Known {
		text(xid.Reference, metadata.WithNvidiaGpuXidReferenceEventAttribute)
	}
	if event.Replayed {
		text(sourceReplay, metadata.WithNvidiaGpuSourceEventAttribute)
	}
	text(event.GPU.Name, metadata.WithHwNameEventAttribute)
	text(event.GPU.PCIBusID, metadata.WithNvidiaGpuPciBusIDEventAttribute)
	number(event.GPUInstance, metadata.WithNvidiaGpuMigGpuInstanceIDEventAttribute)
	number(event.ComputeInstance, metadata.WithNvidiaGpuMigComputeInstanceIDEventAttribute)

	w := &event.workload
	text(w.RunID, metadata.WithMlRunIDEventAttribute)
	number(w.RunAttempt, metadata.WithMlRunAttemptEventAttribute)
	number(w.RankGlobal, metadata.WithMlRankGlobalEventAttribute)
	number(w.RankLocal, metadata.WithMlRankLocalEventAttribute)
	number(w.WorldSize, metadata.WithMlWorldSizeEventAttribute)
	text(w.SlurmJobID, metadata.WithSlurmJobIDEventAttribute)
	text(w.ContainerID, metadata.WithContainerIDEventAttribute)
	text(w.PodUID, metadata.WithK8sPodUIDEventAttribute)
	text(w.Pod.Namespace, metadata.WithK8sNamespaceNameEventAttribute)
	text(w.Pod.Name, metadata.WithK8sPodNameEventAttribute)
	text(w.Pod.Container, metadata.WithK8sContainerNameEventAttribute)
	text(w.ServiceName, metadata.WithServiceNameEventAttribute)
	text(w.UserID, metadata.WithUserIDEventAttribute)
	return options
}
