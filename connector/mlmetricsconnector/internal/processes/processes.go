// Package processes keeps how many cores processes use.
package processes

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxProcesses limits the processes that are remembered.
	maxProcesses = 8192
	// shortest is the shortest time between two values of a counter that are compared.
	shortest = 100 * time.Millisecond
)

// Key identifies a process: by host and PID, or by service and instance.
type Key struct {
	// Host and PID are host.name and process.pid.
	Host, PID string
	// Namespace, Service and Instance are service.namespace, service.name and
	// service.instance.id.
	Namespace, Service, Instance string
}

// known reports whether the key is that of one process.
func (k *Key) known() bool { return k.Host != "" && k.PID != "" || k.Instance != "" }

// clone returns a copy that shares no memory.
func (k Key) clone() Key {
	return Key{strings.Clone(k.Host), strings.Clone(k.PID), strings.Clone(k.Namespace), strings.Clone(k.Service), strings.Clone(k.Instance)}
}

// process is what is known of one process.
type process struct {
	// seconds is the newest value of the counter of CPU time, at its time.
	seconds float64
	at      time.Time
	// cores is how many cores the process uses, if known.
	cores float64
	known bool
	seen  time.Time
}

// CPU has the CPU use of processes. The zero value is ready for use. It is not safe
// for concurrent use.
type CPU struct{ all map[Key]*process }

func (c *CPU) of(key Key, now time.Time) *process {
	if !key.known() {
		return nil
	}
	p := shared.Bounded(&c.all, key, maxProcesses, Key.clone)
	if p != nil {
		p.seen = now
	}
	return p
}

// Time records the counter of a process's CPU time, in seconds, at a time by the
// clock of its host. It arrived at now.
func (c *CPU) Time(key Key, seconds float64, at, now time.Time) {
	p := c.of(key, now)
	if p == nil {
		return
	}
	took := at.Sub(p.at)
	if !p.at.IsZero() && took >= 0 && took < shortest {
		return
	}
	p.known = !p.at.IsZero() && took > 0 && seconds >= p.seconds
	if p.known {
		p.cores = (seconds - p.seconds) / took.Seconds()
	}
	p.seconds, p.at = seconds, at
}

// Use records how many cores a process uses at least.
func (c *CPU) Use(key Key, cores float64, now time.Time) {
	if p := c.of(key, now); p != nil {
		p.cores, p.known = cores, true
	}
}

// Cores returns how many cores each process uses, as far as that is known, and
// forgets processes without a value for 5 minutes.
func (c *CPU) Cores(now time.Time) map[Key]float64 {
	cores := make(map[Key]float64, len(c.all))
	for key, p := range c.all {
		if now.Sub(p.seen) > gpus.GoneAfter {
			delete(c.all, key)
		} else if p.known {
			cores[key] = p.cores
		}
	}
	return cores
}

// Of returns what identifies the process of a resource.
func Of(attrs pcommon.Map, resource streams.Resource) Key {
	if key := (Key{Host: mlattr.IDAt(attrs, mlattr.HostName), PID: mlattr.IDAt(attrs, "process.pid")}); key.Host != "" && key.PID != "" {
		return key
	}
	return Key{Namespace: resource.Namespace, Service: resource.Service, Instance: mlattr.IDAt(attrs, "service.instance.id")}
}

// Loads is how busy GPUs and processes are. It does not change.
type Loads struct {
	runs     map[gpus.Run]float64
	services map[gpus.Service]gpus.Utilization
	cores    map[Key]float64
}

// NewLoads returns Loads: of the GPUs of runs and services, and the cores that processes use.
func NewLoads(of *gpus.Facts, cores map[Key]float64) *Loads {
	l := &Loads{runs: make(map[gpus.Run]float64), services: of.Services, cores: cores}
	for run, used := range of.Runs {
		if used.Use != nil && used.Use.Mean() >= 0 {
			l.runs[run] = used.Use.Mean()
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
		return busy.Mean()
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
