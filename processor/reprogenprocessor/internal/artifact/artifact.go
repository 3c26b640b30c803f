// Package artifact turns a failure into the three files of an artefact:
// a script, the trace around the failure and a report. Everything that comes
// from telemetry is redacted here, before it is written in any form.
package artifact

import (
	"errors"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// MaxBytes is the size of an artefact, its three files together, where nothing
// else is asked for.
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
	// ErrUnsafe says that a script would not be what the template says. It
	// means a defect of this package: the encoder already excludes it.
	ErrUnsafe = errors.New("the script would hold more than the template and its data")
	// ErrTooLarge says that an artefact would be larger than asked for.
	ErrTooLarge = errors.New("the artefact would be too large")
)

// Gates are the operator's permissions that are stamped into the script.
type Gates struct {
	// AllowedModules are the entries of allowed_modules.
	AllowedModules []string
	// AllowedCommands are the entries of allowed_commands.
	AllowedCommands []string
	// AllowedHosts are the entries of allowed_hosts.
	AllowedHosts []string
}

// Files are the contents of an artefact.
type Files struct {
	Script, Trace, Report []byte
	// Redactions lists what was withheld.
	Redactions []redact.Path
}

// Size returns the files' length in bytes.
func (f Files) Size() int64 { return int64(len(f.Script) + len(f.Trace) + len(f.Report)) }

// Build makes the files of an artefact of at most maxBytes. It returns ErrUnsafe or ErrTooLarge
// if the script cannot be written; WithoutCall may then help.
func Build(f *failure.Failure, gates Gates, maxBytes int) (Files, error) {
	var redactor redact.Redactor
	spec := specOf(f, gates, &redactor)
	script, err := renderScript(f, spec, maxBytes-maxTraceBytes-maxReportBytes)
	if err != nil {
		return Files{}, err
	}
	trace := traceOf(f, &redactor)
	report := reportOf(f, spec, &redactor)
	files := Files{Script: script, Trace: trace, Report: report, Redactions: redactor.Paths}
	if files.Size() > int64(maxBytes) {
		return Files{}, ErrTooLarge
	}
	return files, nil
}

// WithoutCall returns the failure as a context: what is left to write when
// the call itself cannot be.
func WithoutCall(f *failure.Failure, reason payload.Reason) *failure.Failure {
	c := *f
	c.Kind = failure.Context
	c.Reason = reason
	c.Call = nil
	c.Withheld = nil
	return &c
}
