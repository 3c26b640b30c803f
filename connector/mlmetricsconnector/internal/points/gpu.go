package points

import (
	"hash/maphash"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// workloadSeed makes hashes of labels unpredictable for those who send them.
var workloadSeed = maphash.MakeSeed()

// noteGPU records a metric of GPUs. Other metrics have no effect.
func (s *Seen) noteGPU(m pmetric.Metric, resource pcommon.Map, now time.Time) {
	var note func(gpus.Key, pmetric.NumberDataPoint, gpus.Reading)
	switch m.Name() {
	case mlattr.GPUWorkloadMemory:
		note = s.noteWorkload
	case mlattr.GPUUtilization, mlattr.GPUSMUtilization, mlattr.GPUBusyTime:
		note = func(key gpus.Key, point pmetric.NumberDataPoint, r gpus.Reading) { s.noteUse(m.Name(), key, point, r) }
	case mlattr.GPUStatus:
		note = s.noteStatus
	case mlattr.GPUPower, mlattr.GPUPowerLimit, mlattr.GPUMemoryUsage, mlattr.GPUMemoryLimit, mlattr.GPUThrottleActive:
		note = func(key gpus.Key, point pmetric.NumberDataPoint, r gpus.Reading) {
			s.noteSignal(m.Name(), key, point, r)
		}
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cost, priced := s.hourOf(resource)
	for _, point := range mlattr.NumberPoints(m).All() {
		if point.Flags().NoRecordedValue() {
			continue
		}
		attrs := point.Attributes()
		key := gpus.Key{Host: program.IDOf(attrs, mlattr.HostName), ID: program.IDOf(attrs, mlattr.HardwareID)}
		if key.Host == "" {
			key.Host = program.IDOf(resource, mlattr.HostName)
		}
		r := gpus.Reading{Now: now}
		if at := point.Timestamp(); at != 0 {
			r.At = at.AsTime()
		}
		note(key, point, r)
		if priced && key.ID != "" {
			s.fleet.Set(key, gpus.Price, cost, r)
		}
	}
}

// hourOf returns what an hour of the GPU of a resource costs. The caller holds the
// lock.
func (s *Seen) hourOf(resource pcommon.Map) (cost float64, ok bool) {
	name, ok := resource.Get(mlattr.HardwareName)
	if !ok {
		return 0, false
	}
	text, _ := mlattr.ReadText(name)
	return s.prices.Of(text)
}

// noteWorkload records that a workload holds memory.
func (s *Seen) noteWorkload(key gpus.Key, point pmetric.NumberDataPoint, r gpus.Reading) {
	run, owner := workloadOf(point.Attributes())
	w := gpus.Workload{Run: run}
	if run == "" {
		// Those that belong to no run are told apart as the rule run_gpu:share:ratio
		// does.
		for _, label := range [...]string{owner.Job, owner.Container, owner.Namespace, owner.Pod, owner.Service, owner.UserID} {
			w.Other = w.Other*31 + maphash.String(workloadSeed, label)
		}
	}
	s.fleet.Hold(key, w, Number(point) > 0, owner, r)
}

// workloadOf returns what the attributes of a workload's point say of it.
func workloadOf(attrs pcommon.Map) (run string, owner gpus.Owner) {
	for label, v := range attrs.All() {
		id, ok := mlattr.ReadID(v)
		if !ok {
			continue
		}
		switch label {
		case mlattr.RunID:
			if id != mlattr.Other { // many runs that ml_guard has not admitted
				run = id
			}
		case mlattr.ServiceName:
			owner.Service = id
		case mlattr.RankGlobal:
			if n, ok := mlattr.ReadInt(v); ok {
				owner.Rank = strconv.FormatInt(n, 10)
			}
		case mlattr.SlurmJobID:
			owner.Job = id
		case mlattr.K8sNamespace:
			owner.Namespace = id
		case mlattr.K8sPod:
			owner.Pod = id
		case mlattr.ContainerID:
			owner.Container = id
		case mlattr.UserID:
			owner.UserID = id
		case mlattr.UserName:
			owner.User = id
		}
	}
	return run, owner
}

// noteSignal records the power of a GPU, its memory, or a reason for lower clocks.
func (s *Seen) noteSignal(name string, key gpus.Key, point pmetric.NumberDataPoint, r gpus.Reading) {
	attrs := point.Attributes()
	if kind, typed := attrs.Get(mlattr.HardwareType); key.ID == "" || typed && kind.Str() != mlattr.HardwareTypeGPU {
		return
	}
	switch value := Number(point); name {
	case mlattr.GPUPower:
		s.fleet.Set(key, gpus.Power, value, r)
	case mlattr.GPUPowerLimit:
		if of, ok := attrs.Get(mlattr.GPUPowerLimitType); ok && of.Str() == mlattr.GPUPowerLimitEnforced {
			s.fleet.Set(key, gpus.PowerLimit, value, r)
		}
	case mlattr.GPUMemoryUsage:
		s.fleet.Set(key, gpus.Memory, value, r)
	case mlattr.GPUMemoryLimit:
		s.fleet.Set(key, gpus.MemoryLimit, value, r)
	default:
		if reason, ok := attrs.Get(mlattr.GPUThrottleReason); ok {
			s.fleet.Throttle(key, reason.Str(), value > 0, r)
		}
	}
}

// noteUse records how much a GPU works.
func (s *Seen) noteUse(name string, key gpus.Key, point pmetric.NumberDataPoint, r gpus.Reading) {
	value := Number(point)
	if key.ID == "" || !(value >= 0 && value <= math.MaxFloat64) {
		return
	}
	if name == mlattr.GPUSMUtilization {
		s.fleet.Set(key, gpus.SMUtilization, min(value, 1), r)
		return
	}
	switch task, ok := point.Attributes().Get(mlattr.GPUTask); {
	case !ok || task.Str() != mlattr.GPUTaskGeneral:
	case name == mlattr.GPUBusyTime:
		s.fleet.Set(key, gpus.BusyTime, value, r)
	default:
		s.fleet.Set(key, gpus.Utilization, min(value, 1), r)
	}
}

// noteStatus records whether a GPU has failed.
func (s *Seen) noteStatus(key gpus.Key, point pmetric.NumberDataPoint, r gpus.Reading) {
	attrs := point.Attributes()
	kind, typed := attrs.Get(mlattr.HardwareType)
	state, ok := attrs.Get(mlattr.HardwareState)
	if key.ID == "" || typed && kind.Str() != mlattr.HardwareTypeGPU || !ok || state.Str() != mlattr.HardwareStateFailed {
		return
	}
	s.fleet.Health(key, Number(point) > 0, r)
}

// Number returns the value of a point.
func Number(point pmetric.NumberDataPoint) float64 {
	switch point.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		return float64(point.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		return point.DoubleValue()
	default:
		return 0
	}
}

// seeDriver notes the version of the driver of a host's GPUs. It ignores resources of
// single GPUs, which several collectors may get, each some of them.
func seeDriver(history *change.History, resource pcommon.Map, now time.Time) {
	if history == nil {
		return
	}
	version, ok := resource.Get(mlattr.DriverVersion)
	if _, ofGPU := resource.Get(mlattr.HardwareID); !ok || ofGPU {
		return
	}
	host, text := program.IDOf(resource, mlattr.HostName), ""
	if text, ok = mlattr.ReadText(version); ok && host != "" {
		history.See([]change.Observation{{Of: change.Subject{Host: host}, Kind: mlattr.ChangeDriver, Value: text}}, now)
	}
}
