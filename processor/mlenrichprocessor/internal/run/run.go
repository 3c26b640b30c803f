// Package run answers one question: which run does a process belong to?
//
// A run is one execution of training or of an agent. Its id is one that the
// process reports, or a hash of what tells the process from others if its
// client is known to run once a process.
package run

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// idLength is the length of an inferred run id in hexadecimal digits.
const idLength = 16

// Process is what a resource reports about its process. Every field may be
// empty.
type Process struct {
	Namespace string
	Service   string
	Host      string
	JobName   string
	Instance  string
	PID       string
	Started   string
	// Launcher is the parent's process id, which the ranks that a launcher such as
	// torchrun starts on a host have in common.
	Launcher  string
	WorldSize int64
}

// Read reads a process from the attributes of a resource and their facts.
func Read(attrs pcommon.Map, facts *vocabulary.Facts) Process {
	world, _ := facts.IntAt(vocabulary.SlotWorldSize)
	return Process{
		Namespace: facts.TextAt(vocabulary.SlotServiceNamespace),
		Service:   facts.TextAt(vocabulary.SlotServiceName),
		Host:      facts.TextAt(vocabulary.SlotHostName),
		JobName:   facts.TextAt(vocabulary.SlotJobName),
		Instance:  mlattr.IDAt(attrs, mlattr.ServiceInstanceID),
		PID:       mlattr.IDAt(attrs, mlattr.ProcessID),
		Started:   mlattr.IDAt(attrs, mlattr.ProcessStart),
		Launcher:  launcher(attrs),
		WorldSize: world,
	}
}

// launcher returns the process id of a process's parent, or "" for that of a process
// without one: the first process of a container, or one whose parent has ended.
func launcher(attrs pcommon.Map) string {
	if id := mlattr.IDAt(attrs, mlattr.ProcessParentPID); id != "0" && id != "1" {
		return id
	}
	return ""
}

// Key identifies the process among others as well as the resource allows.
// The ranks of one distributed job on a host share it: instance, pid and start time
// count only if there is one rank. If there are several, their launcher counts: its
// next job is another one, and ranks that it starts again are those of the same.
func (p *Process) Key() string {
	parts := []string{p.Namespace, p.Service, p.Host, p.JobName}
	switch {
	case p.WorldSize <= 1:
		parts = append(parts, p.Instance, p.PID, p.Started)
	case p.Launcher != "":
		parts = append(parts, p.Launcher)
	}
	return mlattr.Digest(idLength/2, parts...)
}

// ExactKey identifies the process and no other. It is empty if the resource
// does not tell the process from others.
func (p *Process) ExactKey() string {
	if p.Instance == "" && p.PID == "" {
		return ""
	}
	return mlattr.Digest(idLength/2, p.Namespace, p.Service, p.Host, p.Instance, p.PID, p.Started)
}

// nameOnly reports whether the resource names a service and nothing else, so
// that it cannot be known which process of an agent's service it was.
func (p *Process) nameOnly() bool {
	return p.Host == "" && p.JobName == "" && p.Instance == "" && p.PID == "" && p.WorldSize == 0
}

// Run is the run that a resource belongs to.
type Run struct {
	// ID is empty if the resource determines no run.
	ID string
	// Inferred is true if ID was computed, and sent by nobody.
	Inferred bool
	// PerTrace is true if each trace is a run of its own, which OfTrace names.
	PerTrace bool
}

// Of returns the run of a resource: the id that it reports, or else the key of
// its process if systems has a client whose process is a run.
func Of(facts *vocabulary.Facts, p *Process, key string, systems vocabulary.System) Run {
	if id, inferred := facts.Run(); id != "" {
		return Run{ID: id, Inferred: inferred}
	}
	inferred, clients := facts.At(vocabulary.SlotRunInferred), systems.With(table.ProcessIsRun)
	switch {
	case facts.At(vocabulary.SlotRunID) != nil || inferred != nil && !inferred.Bool:
		// The resource has a run that is unusable, or reports that its run is
		// not inferred. Neither may be contradicted.
		return Run{}
	case clients == 0 || vocabulary.ServesCallers(p.Service) || p.Service == "" && p.nameOnly():
		return Run{}
	case clients.With(table.TraceIsRun) == clients && p.nameOnly():
		return Run{PerTrace: true}
	default:
		return Run{ID: key, Inferred: true}
	}
}

// OfTrace returns the id of the run that a trace is, for a Run that is PerTrace.
func OfTrace(p *Process, trace pcommon.TraceID) string {
	return mlattr.Digest(idLength/2, p.Namespace, p.Service, string(trace[:]))
}
