package mllinesconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// appendTo adds the process's spans, with its resource.
func (p *process) appendTo(td ptrace.Traces) {
	spans := p.Take()
	if p.noted = false; len(spans) == 0 {
		return
	}
	rs := td.ResourceSpans().AppendEmpty()
	attrs := rs.Resource().Attributes()
	p.stream.origin.Resource.CopyTo(attrs)
	if !p.stream.origin.HasService {
		attrs.PutStr(mlattr.ServiceName, p.Name())
	}
	if p.rank >= 0 {
		attrs.PutInt(mlattr.RankGlobal, p.rank)
	}
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(metadata.ScopeName)
	list := ss.Spans()
	list.EnsureCapacity(len(spans))
	for i := range spans {
		write(&spans[i], list.AppendEmpty())
	}
}

// write writes a span.
func write(s *training.Span, to ptrace.Span) {
	to.SetTraceID(s.Trace)
	to.SetSpanID(s.ID)
	to.SetParentSpanID(s.Parent)
	to.SetName(s.Name)
	to.SetKind(ptrace.SpanKindInternal)
	to.SetStartTimestamp(pcommon.NewTimestampFromTime(s.Start))
	to.SetEndTimestamp(pcommon.NewTimestampFromTime(s.End))
	attrs := to.Attributes()
	put := func(key, value string) {
		if value != "" {
			attrs.PutStr(key, value)
		}
	}
	put(mlattr.Phase, s.Phase)
	put(mlattr.Operation, s.Operation)
	if s.Number > 0 {
		attrs.PutInt(mlattr.Step, s.Number)
	}
	if s.BatchSize > 0 {
		attrs.PutInt(mlattr.BatchSize, s.BatchSize)
	}
	if s.Reading != nil {
		writeValues(s.Reading, attrs)
	}
	if f := s.Failure; f != nil {
		to.Status().SetCode(ptrace.StatusCodeError)
		to.Status().SetMessage(f.Message)
		if f.Rank >= 0 {
			attrs.PutInt(mlattr.RankGlobal, f.Rank)
		}
		put(mlattr.HostName, f.Host)
		if f.LocalRank >= 0 {
			attrs.PutInt(mlattr.RankLocal, f.LocalRank)
		}
		event := to.Events().AppendEmpty()
		event.SetName(mlattr.ExceptionEvent)
		event.SetTimestamp(to.EndTimestamp())
		event.Attributes().PutStr(mlattr.ExceptionType, f.Class)
		event.Attributes().PutStr(mlattr.ExceptionMessage, f.Message)
		if f.Stack != "" {
			event.Attributes().PutStr("exception.stacktrace", f.Stack)
		}
	}
}

// gradientNorm is the attribute of the norm of the gradient of a step, which nothing reads
// but people.
const gradientNorm = "ml.gradient.norm"

func writeValues(r *format.Reading, attrs pcommon.Map) {
	for _, of := range [...]struct {
		value format.Value
		key   string
	}{
		{format.Loss, mlattr.Loss}, {format.ValLoss, mlattr.ValLoss}, {format.LearningRate, mlattr.LearningRate}, {format.GradNorm, gradientNorm},
		{format.TokensPerSecond, mlattr.TokensPerSecond}, {format.SamplesPerSecond, mlattr.SamplesPerSecond},
	} {
		if number, ok := r.Get(of.value); ok {
			attrs.PutDouble(of.key, number)
		}
	}
	if _, ok := r.Get(format.Loss); ok {
		attrs.PutStr(mlattr.LossScope, mlattr.LossScopeBatch)
	}
	_, tokens := r.Get(format.TokensPerSecond)
	_, samples := r.Get(format.SamplesPerSecond)
	if r.Rule.Scope != "" && (tokens || samples) {
		attrs.PutStr(mlattr.ThroughputScope, r.Rule.Scope)
	}
	if epoch, ok := r.Get(format.EpochNumber); ok && epoch >= 0 && epoch < mlattr.MaxCount {
		attrs.PutInt(mlattr.Epoch, int64(epoch))
	}
}
