package gpureceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/merge"
)

// kernelLog reads errors from the kernel's log and merges them with NVML's.
type kernelLog struct {
	reader *kernellog.Reader
	merger *merge.Merger

	mu sync.Mutex
	// system is that of the last listing of the GPUs.
	system device.System
	// gpus are the GPUs by address, including those that have vanished.
	gpus map[string]device.Identity
}

// newKernelLog returns the kernel's log of a monitor, nil if it is not configured.
func newKernelLog(m *monitor) *kernelLog {
	if !m.cfg.KernelLog.Enabled || m.cfg.Source == SourceReplay {
		return nil
	}
	k := &kernelLog{
		merger: merge.New(m.notify),
		system: device.System{Host: workload.HostName(m.cfg.RootPath)},
		gpus:   make(map[string]device.Identity),
	}
	k.reader = kernellog.NewReader(kernellog.Options{
		Path:    m.cfg.KernelLog.Path,
		Logger:  m.settings.Logger,
		Changed: func(state kernellog.State) { k.merger.Reading(state == kernellog.OK) },
		Lost: func(messages int64) {
			m.telemetry.ReceiverGpuLostKernelMessages.Add(context.Background(), messages, metric.WithAttributes(m.self()))
		},
		Report: func(report kernellog.Report) { k.report(&report, m) },
	})
	return k
}

// update takes the identities of listed GPUs.
func (k *kernelLog) update(snapshot *device.Snapshot) {
	if k == nil || snapshot.Driver != device.DriverOK {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.system = snapshot.System
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i].Identity
		if at, ok := kernellog.Address(gpu.PCIBusID); ok && gpu.MIG == nil {
			k.know(at, *gpu)
		}
	}
}

// know notes a GPU. A host has few addresses, so that the limit holds only against
// a log that a user can write.
func (k *kernelLog) know(at string, gpu device.Identity) {
	if _, found := k.gpus[at]; found || len(k.gpus) < maxTracked {
		k.gpus[at] = gpu
	}
}

// report turns a report of the log into an event.
func (k *kernelLog) report(r *kernellog.Report, m *monitor) {
	k.mu.Lock()
	event := r.Event
	event.Time, event.System = m.now(), k.system
	gpu, found := k.gpus[r.Address]
	if !found || gpu.Index == device.IndexUnknown && r.UUID != "" {
		at := r.Address + ".0"
		gpu = device.Identity{ID: at, Index: device.IndexUnknown, PCIBusID: at}
		if r.UUID != "" {
			gpu.ID = r.UUID
			k.know(r.Address, gpu)
		}
	}
	k.mu.Unlock()
	if r.UUID != "" {
		return
	}
	if event.Switch != nil {
		m.notify(event)
		return
	}
	event.GPU = gpu
	k.merger.Kernel(event)
}
