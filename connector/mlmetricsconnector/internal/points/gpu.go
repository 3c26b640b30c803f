package points

import (
	"cmp"
	"hash/maphash"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/links"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
)

// workloadSeed makes hashes of labels unpredictable for those who send them.
var workloadSeed = maphash.MakeSeed()

// noteGPU records a metric of GPUs. Other metrics have no effect.
func (s *Seen) noteGPU(m pmetric.Metric, resource pcommon.Map, now time.Time) {
	switch gpupoint.QuantityOf(m.Name()) {
	case gpupoint.None, gpupoint.MemoryReserved, gpupoint.WorkloadUtilization:
		return
	}
	device := gpupoint.DeviceOf(resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	cost, priced := 0.0, false
	if device.Name != "" {
		cost, priced = s.prices.Hour(device.Name)
	}
	for p, attrs := range gpupoint.Points(m, &device) {
		key := gpus.Key{Host: p.Host, ID: p.ID}
		r := gpus.Reading{Now: now}
		if p.At != 0 {
			r.At = p.At.AsTime()
		}
		switch {
		case p.Quantity == gpupoint.WorkloadMemory:
			s.noteWorkload(key, attrs, p.Value > 0, r)
			s.fleet.Describe(key, p.Index, device.Name)
		case p.Quantity == gpupoint.ProcessMemory:
			s.noteProcess(key, attrs)
		case p.ID == "":
		case p.Quantity == gpupoint.Throttle:
			s.fleet.Throttle(key, p.Name, p.Value > 0, r)
		case p.Quantity != gpupoint.Status || p.Name == mlattr.HardwareStateFailed:
			s.fleet.Set(key, p.Quantity, p.Value, r)
		}
		if priced && key.ID != "" {
			s.fleet.Set(key, gpus.Price, cost, r)
		}
	}
}

// noteWorkload records that a workload holds memory.
func (s *Seen) noteWorkload(key gpus.Key, attrs pcommon.Map, memory bool, r gpus.Reading) {
	run, owner := gpupoint.HolderOf(attrs)
	w := gpus.Workload{Run: run}
	if run == "" {
		// Those that belong to no run are told apart as the rule run_gpu:share:ratio
		// does.
		for _, label := range [...]string{owner.Job, owner.Container, owner.Namespace, owner.Pod, owner.Service, owner.UserID} {
			w.Other = w.Other*31 + maphash.String(workloadSeed, label)
		}
	}
	s.fleet.Hold(key, w, memory, owner, r)
}

// noteProcess records the process by which a rank of a run holds memory.
func (s *Seen) noteProcess(key gpus.Key, attrs pcommon.Map) {
	v, ok := attrs.Get(mlattr.ProcessID)
	run, owner := gpupoint.HolderOf(attrs)
	if ok && run != "" && key.ID != "" {
		s.fleet.Process(key, gpus.Run{ID: run, Service: owner.Service}, owner.Rank, mlattr.ReadPID(v))
	}
}

// seeVersions notes the versions of a host's driver, and of the firmware of its GPUs. It
// ignores the driver in resources of single GPUs, which several collectors may get, each some
// of them.
func seeVersions(history *change.History, resource pcommon.Map, now time.Time) {
	if history == nil {
		return
	}
	key, kind := mlattr.DriverVersion, mlattr.ChangeDriver
	if _, ofGPU := resource.Get(mlattr.HardwareID); ofGPU {
		key, kind = mlattr.FirmwareVersion, mlattr.ChangeFirmware
	}
	host := mlattr.IDAt(resource, mlattr.HostName)
	if text := mlattr.TextAt(resource, key); text != "" && host != "" {
		history.See([]change.Observation{{Of: change.Subject{Host: host}, Kind: kind, Value: text}}, now)
	}
}

// hasFaults says what has the faults that a metric counts.
var hasFaults = map[string]string{
	mlattr.PortErrors: links.Port, mlattr.PCIeErrors: links.PCIe, mlattr.GPUNVLinkErrors: links.NVLink, mlattr.MountSilence: links.Mount,
}

// noteLinks records errors of links, and file systems that do not answer, as the gpu receiver
// sends them. Other metrics have no effect.
func (s *Seen) noteLinks(m pmetric.Metric, now time.Time) {
	what, ok := hasFaults[m.Name()]
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, point := range mlattr.NumberPoints(m).All() {
		attrs := point.Attributes()
		id := cmp.Or(mlattr.IDAt(attrs, mlattr.HardwareID), mlattr.IDAt(attrs, mlattr.Mountpoint))
		if value, ok := mlattr.Number(point); ok && id != "" {
			s.links.Count(mlattr.IDAt(attrs, mlattr.HostName), links.Key{What: what, ID: id, Kind: mlattr.IDAt(attrs, mlattr.ErrorType)}, value, now)
		}
	}
}
