// Package record makes log records of problems and changes.
package record

import (
	"cmp"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Batch has the log records of one emission, by program.
type Batch struct {
	Logs    plog.Logs
	scopes  map[streams.Resource]plog.ScopeLogs
	version string
	writer  streams.Label
	now     time.Time
}

// New returns a Batch without records. writer is an attribute that each gets, if it has a
// name.
func New(version string, writer streams.Label, now time.Time) *Batch {
	return &Batch{
		Logs: plog.NewLogs(), scopes: make(map[streams.Resource]plog.ScopeLogs),
		version: version, writer: writer, now: now,
	}
}

// add returns a new record of a program.
func (r *Batch) add(of streams.Resource, event string, at time.Time, severity plog.SeverityNumber, body string) plog.LogRecord {
	scope := shared.Entry(r.scopes, of, func() plog.ScopeLogs {
		rl := r.Logs.ResourceLogs().AppendEmpty()
		mlattr.PutText(rl.Resource().Attributes(), mlattr.ServiceNamespace, of.Namespace)
		mlattr.PutText(rl.Resource().Attributes(), mlattr.ServiceName, of.Service)
		scope := rl.ScopeLogs().AppendEmpty()
		scope.Scope().SetName(metadata.ScopeName)
		scope.Scope().SetVersion(r.version)
		return scope
	})
	record := scope.LogRecords().AppendEmpty()
	record.SetEventName(event)
	record.SetTimestamp(pcommon.NewTimestampFromTime(at))
	shared.FinishRecord(record, pcommon.NewTimestampFromTime(r.now), severity, body)
	if r.writer.Name != "" {
		// Not on the resource, which is the program that the record is about.
		record.Attributes().PutStr(r.writer.Name, r.writer.Value)
	}
	return record
}

// Problem adds the record of a problem that has begun, has other evidence, is stale, or has
// ended.
func (r *Batch) Problem(p *problem.Entry) {
	at, state := p.Detected, mlattr.ProblemBegan
	switch {
	case !p.Ended.IsZero():
		at, state = p.Ended, mlattr.ProblemEnded
	case p.Updated:
		at, state = r.now, mlattr.ProblemUpdated
	case p.Stale:
		at, state = r.now, mlattr.ProblemStale
	}
	number := plog.SeverityNumberInfo
	switch {
	case state != mlattr.ProblemBegan:
	case p.Severity == mlattr.SeverityPage:
		number = plog.SeverityNumberError
	case p.Severity == mlattr.SeverityTicket:
		number = plog.SeverityNumberWarn
	}
	attrs := r.add(p.Subject.Resource, mlattr.Problem, at, number, p.Sentence()).Attributes()
	attrs.EnsureCapacity(32)
	attrs.PutStr(mlattr.Problem, p.Kind)
	attrs.PutStr(mlattr.ProblemID, p.ID)
	attrs.PutStr(mlattr.ProblemState, state)
	attrs.PutStr(mlattr.ProblemSeverity, string(p.Severity))
	attrs.PutDouble(mlattr.ProblemOnset, unixSeconds(p.Onset))
	attrs.PutDouble(mlattr.ProblemDetected, unixSeconds(p.Detected))
	attrs.PutDouble(mlattr.ProblemEvidenceTime, unixSeconds(p.Evident))
	mlattr.PutText(attrs, mlattr.ProblemEndReason, p.EndReason)
	putNumber(attrs, mlattr.ProblemValue, p.Value)
	putNumber(attrs, mlattr.ProblemUsual, p.Usual)
	mlattr.PutText(attrs, mlattr.ProblemUnit, p.Unit)
	if p.Window > 0 {
		attrs.PutDouble(mlattr.ProblemWindow, p.Window.Seconds())
	}
	if p.Count > 0 {
		attrs.PutInt(mlattr.ProblemCount, p.Count)
	}
	mlattr.PutText(attrs, mlattr.ErrorType, p.Class)
	mlattr.PutText(attrs, mlattr.ExceptionMessage, p.Message)
	r.putPlaces(attrs, p)
	putTexts(attrs, mlattr.ProblemEvidence, p.Evidence)
	putTexts(attrs, mlattr.ProblemExcluded, p.Excluded)
	putTexts(attrs, mlattr.ProblemBefore, mlattr.Mapped(p.Before, func(c change.Change) string { return c.Time.UTC().Format(time.RFC3339) + " " + c.Text }))
	putNumber(attrs, mlattr.ProblemTelemetry, p.Telemetry)
	if p.GPUs > 0 {
		attrs.PutDouble(mlattr.ProblemGPUs, p.GPUs)
		attrs.PutDouble(mlattr.ProblemGPUHours, p.GPUHours(r.now))
	}
	mlattr.PutText(attrs, mlattr.ProblemNext, p.Next)
	mlattr.PutText(attrs, mlattr.ProblemCause, p.Cause)
}

// Change adds the record of something new.
func (r *Batch) Change(c *change.Change) {
	attrs := r.add(c.Of.Resource, mlattr.EventChange, c.Time, plog.SeverityNumberInfo, c.Text).Attributes()
	attrs.EnsureCapacity(6)
	attrs.PutStr(mlattr.ChangeKind, c.Kind)
	mlattr.PutText(attrs, mlattr.ChangeFrom, c.From)
	attrs.PutStr(mlattr.ChangeTo, c.To)
	mlattr.PutText(attrs, mlattr.ChangeSetting, c.Setting)
	mlattr.PutText(attrs, mlattr.RunID, c.RunID())
	mlattr.PutText(attrs, mlattr.HostName, c.Of.Host)
}

// putPlaces adds where a problem is, and which workload holds the GPUs.
func (*Batch) putPlaces(attrs pcommon.Map, p *problem.Entry) {
	mlattr.PutText(attrs, mlattr.RunID, cmp.Or(p.Subject.Run, p.HolderRun))
	if p.Subject.Resource.Service == "" {
		mlattr.PutText(attrs, mlattr.ServiceName, p.Holder.Service)
	}
	streams.PutLabel(attrs, mlattr.RankGlobal, p.Rank)
	host, gpu := p.Place()
	mlattr.PutText(attrs, mlattr.HostName, host)
	mlattr.PutText(attrs, mlattr.HardwareID, gpu)
	streams.PutLabel(attrs, mlattr.NVIDIAIndex, p.GPUIndex)
	if p.PID > 0 {
		attrs.PutInt(mlattr.ProcessID, p.PID)
	}
	if p.Recovery > 0 {
		attrs.PutInt(mlattr.GPURecoveryAction, int64(p.Recovery))
	}
	putTexts(attrs, mlattr.ProblemHeld, mlattr.Mapped(p.Held, func(key gpus.Key) string { return key.Host + "/" + key.ID }))
	mlattr.PutText(attrs, mlattr.SlurmJobID, p.Holder.Job)
	mlattr.PutText(attrs, mlattr.K8sNamespace, p.Holder.Namespace)
	mlattr.PutText(attrs, mlattr.K8sPod, p.Holder.Pod)
	mlattr.PutText(attrs, mlattr.ContainerID, p.Holder.Container)
	mlattr.PutText(attrs, mlattr.UserID, p.Holder.UserID)
	mlattr.PutText(attrs, mlattr.UserName, p.Holder.User)
}

// unixSeconds returns a time in seconds since 1970.
func unixSeconds(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }

// putNumber adds a number that is known.
func putNumber(attrs pcommon.Map, key string, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		attrs.PutDouble(key, value)
	}
}

func putTexts(attrs pcommon.Map, key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	all := attrs.PutEmptySlice(key)
	all.EnsureCapacity(len(texts))
	for _, text := range texts {
		all.AppendEmpty().SetStr(text)
	}
}
