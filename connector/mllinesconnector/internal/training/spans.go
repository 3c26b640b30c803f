package training

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Made returns the number of spans since the previous MoveTo.
func (p *Process) Made() int { return p.spans.Len() }

// MoveTo moves the spans since the previous call to others.
func (p *Process) MoveTo(to ptrace.SpanSlice) { p.spans.MoveAndAppendTo(to) }

// add adds a span of the process's trace, with its phase, one of the Phase values of mlattr,
// and the number of its step, 0 for none. Its ids are the same when its lines are read again.
func (p *Process) add(name, phase string, number int64, start, end time.Time) ptrace.Span {
	if start.Unix() < 0 {
		start = end // a clock that was never set
	}
	s := p.spans.AppendEmpty()
	s.SetTraceID(p.trace)
	s.SetSpanID(idOf(p.trace, name, uint64(number), uint64(end.UnixNano()))) // #nosec G115 -- hashed
	s.SetName(name)
	s.SetKind(ptrace.SpanKindInternal)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	mlattr.PutText(s.Attributes(), mlattr.Phase, phase)
	if number > 0 {
		s.Attributes().PutInt(mlattr.Step, number)
	}
	return s
}

// writeFailure writes why a training ended.
func writeFailure(f *failure.Failure, s ptrace.Span) {
	attrs := s.Attributes()
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage(f.Message)
	if f.Rank >= 0 {
		attrs.PutInt(mlattr.RankGlobal, f.Rank)
	}
	mlattr.PutText(attrs, mlattr.HostName, f.Host)
	if f.LocalRank >= 0 {
		attrs.PutInt(mlattr.RankLocal, f.LocalRank)
	}
	event := s.Events().AppendEmpty()
	event.SetName(mlattr.ExceptionEvent)
	event.SetTimestamp(s.EndTimestamp())
	event.Attributes().PutStr(mlattr.ExceptionType, f.Class)
	event.Attributes().PutStr(mlattr.ExceptionMessage, f.Message)
	mlattr.PutText(event.Attributes(), "exception.stacktrace", f.Stack)
}

// gradientNorm is the attribute of the norm of the gradient of a step, which nothing reads
// but people.
const gradientNorm = "ml.gradient.norm"

// writeValues writes what a line says of a step.
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
	if r.Scope != "" && (tokens || samples) {
		attrs.PutStr(mlattr.ThroughputScope, r.Scope)
	}
	if epoch, ok := r.Get(format.EpochNumber); ok && epoch >= 0 && epoch < mlattr.MaxCount {
		attrs.PutInt(mlattr.Epoch, int64(epoch))
	}
}

func traceOf(key string, attempt uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], hash(key, attempt))
	binary.BigEndian.PutUint64(id[8:], hash(key, ^attempt))
	return id
}

func idOf(trace [16]byte, name string, numbers ...uint64) (id [8]byte) {
	binary.BigEndian.PutUint64(id[:], hash(string(trace[:])+name, numbers...))
	return id
}

// hash is FNV-1a, which is the same in each process. It is never 0.
func hash(text string, numbers ...uint64) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) // a hash does not fail
	for _, n := range numbers {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	return max(h.Sum64(), 1)
}
