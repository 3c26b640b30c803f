package processes

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Of returns what identifies the process of a resource.
func Of(attrs pcommon.Map, resource streams.Resource) Key {
	if key := (Key{Host: program.IDOf(attrs, mlattr.HostName), PID: program.IDOf(attrs, "process.pid")}); key.Host != "" && key.PID != "" {
		return key
	}
	return Key{Namespace: resource.Namespace, Service: resource.Service, Instance: program.IDOf(attrs, "service.instance.id")}
}

// Loads is how busy GPUs and processes are. It does not change.
type Loads struct {
	runs     map[gpus.Run]float64
	services map[gpus.Service]float64
	cores    map[Key]float64
}

// NewLoads returns Loads: of the GPUs of runs, of those that services hold, and the cores
// that processes use.
func NewLoads(uses map[gpus.Run]gpus.Use, services map[gpus.Service]float64, cores map[Key]float64) *Loads {
	l := &Loads{runs: make(map[gpus.Run]float64), services: services, cores: cores}
	for run, use := range uses {
		if use.Utilization >= 0 {
			l.runs[run] = use.Utilization
		}
	}
	return l
}

// unknownLoad is the load of what is not measured.
const unknownLoad = -1

// Utilization returns that of the GPUs of the run, else of those that the service
// holds on the host, or unknownLoad.
func (l *Loads) Utilization(of *streams.Source) float64 {
	if busy, ok := l.runs[gpus.Run{ID: of.Run.ID, Service: of.Resource.Service}]; ok && of.Run.ID != "" {
		return busy
	}
	if busy, ok := l.services[gpus.Service{Host: of.Run.Host, Service: of.Resource.Service}]; ok {
		return busy
	}
	return unknownLoad
}

// CoresOf returns how many cores a process uses, or unknownLoad.
func (l *Loads) CoresOf(attrs pcommon.Map, resource streams.Resource) float64 {
	if len(l.cores) == 0 {
		return unknownLoad
	}
	if cores, ok := l.cores[Of(attrs, resource)]; ok {
		return cores
	}
	return unknownLoad
}
