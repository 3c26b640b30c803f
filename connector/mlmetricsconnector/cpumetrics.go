package mlmetricsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Metrics of a process by the conventions, as clients and host_metrics send them.
const (
	processCPUTime        = "process.cpu.time"
	processCPUUtilization = "process.cpu.utilization"
)

// processOf returns what identifies the process of a resource.
func processOf(attrs pcommon.Map, resource streams.Resource) processes.Key {
	if key := (processes.Key{Host: idOf(attrs, mlattr.HostName), PID: idOf(attrs, "process.pid")}); key.Host != "" && key.PID != "" {
		return key
	}
	return processes.Key{Namespace: resource.Namespace, Service: resource.Service, Instance: idOf(attrs, "service.instance.id")}
}

// noteCPU records a metric of the CPU time of a process. Other metrics have no
// effect.
func (s *seenMetrics) noteCPU(m pmetric.Metric, attrs pcommon.Map, resource streams.Resource, now time.Time) {
	if name := m.Name(); name != processCPUTime && name != processCPUUtilization {
		return
	}
	sum, at, known := 0.0, now, false
	for _, point := range mlattr.NumberPoints(m).All() {
		if point.Flags().NoRecordedValue() || !computes(point.Attributes()) {
			continue
		}
		sum, known = sum+number(point), true
		if point.Timestamp() != 0 {
			at = point.Timestamp().AsTime()
		}
	}
	if !known || !(sum >= 0) {
		return
	}
	key := processOf(attrs, resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Name() == processCPUTime {
		s.cpu.Time(key, sum, at, now)
	} else {
		// Of all cores, so that it is at least so many of one.
		s.cpu.Use(key, sum, now)
	}
}

// computes reports whether a point is about the time in which a process computes,
// not that in which it waits.
func computes(attrs pcommon.Map) bool {
	for _, key := range [...]string{"cpu.mode", "process.cpu.state", "state", "type"} {
		switch mode := idOf(attrs, key); mode {
		case "", "user", "system", "nice":
		default:
			return false
		}
	}
	return true
}

// loads is how busy GPUs and processes are. It does not change.
type loads struct {
	runs     map[gpus.Run]float64
	services map[gpus.Service]float64
	cores    map[processes.Key]float64
}

// unknownLoad is the load of what is not measured.
const unknownLoad = -1

// utilization returns that of the GPUs of the run, else of those that the service
// holds on the host, or unknownLoad.
func (l *loads) utilization(of *streams.Source) float64 {
	if busy, ok := l.runs[gpus.Run{ID: of.Run.ID, Service: of.Resource.Service}]; ok && of.Run.ID != "" {
		return busy
	}
	if busy, ok := l.services[gpus.Service{Host: of.Run.Host, Service: of.Resource.Service}]; ok {
		return busy
	}
	return unknownLoad
}

// coresOf returns how many cores a process uses, or unknownLoad.
func (l *loads) coresOf(attrs pcommon.Map, resource streams.Resource) float64 {
	if len(l.cores) == 0 {
		return unknownLoad
	}
	if cores, ok := l.cores[processOf(attrs, resource)]; ok {
		return cores
	}
	return unknownLoad
}

// publishLoads makes the loads known to readers. The caller holds the lock.
func (s *seenMetrics) publishLoads(now time.Time) {
	l := &loads{runs: make(map[gpus.Run]float64), services: s.fleet.Services(now), cores: s.cpu.Cores(now)}
	for run, use := range s.fleet.Runs(now) {
		if use.Utilization >= 0 {
			l.runs[run] = use.Utilization
		}
	}
	s.loads.Store(l)
}
