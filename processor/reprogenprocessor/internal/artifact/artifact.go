// Package artifact turns a failure into the three files of an artifact:
// a script, the trace around the failure and a report. Everything that comes
// from telemetry is redacted here, before it is written in any form.
package artifact

import (
	"errors"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// MaxBytes is the size of an artifact, its three files together, in bytes.
const MaxBytes = 1 << 20

// maxTraceBytes is the share of MaxBytes that the trace may take before the
// ancestors, and then the span's attributes, are left out.
const maxTraceBytes = 400 << 10

// maxReportBytes is the share of the report.
const maxReportBytes = 64 << 10

// The names of the files.
const (
	ScriptName = "repro.py"
	TraceName  = "trace.json"
	ReportName = "report.md"
)

var (
	// errUnsafe means that a script would hold more than the template and its data.
	// It shows a defect of this package: the encoder already excludes it.
	errUnsafe = errors.New("the script would hold more than the template and its data")
	// ErrTooLarge means that an artifact would be larger than asked for.
	ErrTooLarge = errors.New("the artifact would be too large")
)

// Builder makes the files of artifacts. It is safe for concurrent use.
type Builder struct {
	kinds kind.Registry
	// modules are the operator's allowed_modules.
	modules []string
	parts   map[string][]byte // of scripts, by name
}

// New returns a Builder for the kinds, whose scripts may call what the modules list.
func New(kinds kind.Registry, modules []string) *Builder {
	b := &Builder{kinds: kinds, modules: modules, parts: make(map[string][]byte)}
	b.readParts(files)
	for _, k := range kinds {
		b.readParts(k.Files)
	}
	return b
}

// Files are the contents of an artifact.
type Files struct {
	Script, Trace, Report []byte
	// Redactions lists what was withheld.
	Redactions []redact.Path
}

// All returns the files, those that a person reads first.
func (f Files) All() []store.File {
	return []store.File{{Name: ScriptName, Content: f.Script}, {Name: ReportName, Content: f.Report}, {Name: TraceName, Content: f.Trace}}
}

// Build makes the files of an artifact. It returns ErrTooLarge or another error if
// the script cannot be written; WithoutCall may then help.
func (b *Builder) Build(f *failure.Failure) (Files, error) {
	var redactor redact.Redactor
	k := b.kinds.Get(f.Kind)
	spec := specOf(f, k, b.modules, &redactor)
	script, err := b.renderScript(f, k, spec, MaxBytes-maxTraceBytes-maxReportBytes)
	if err != nil {
		return Files{}, err
	}
	trace := traceOf(f, &redactor)
	report, err := reportOf(f, k, spec, &redactor)
	if err != nil {
		return Files{}, err
	}
	out := Files{Script: script, Trace: trace, Report: report, Redactions: redactor.Paths}
	if len(script)+len(trace)+len(report) > MaxBytes {
		return Files{}, ErrTooLarge
	}
	return out, nil
}

// WithoutCall returns the failure as a context: what is left to write when
// the call itself cannot be.
func WithoutCall(f *failure.Failure, reason failure.Reason) *failure.Failure {
	c := *f
	c.Kind, c.Reason, c.Call = failure.Context, reason, nil
	return &c
}
