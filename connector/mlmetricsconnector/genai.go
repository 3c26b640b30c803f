package mlmetricsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Names of the conventions that the vocabulary does not read, as they are in
// no metric of its own.
const (
	attrServerAddress = "server.address"
	attrServerPort    = "server.port"
)

var (
	slotProvider   = mlattr.SlotOf(mlattr.GenAIProviderName)
	slotRequested  = mlattr.SlotOf(mlattr.GenAIRequestModel)
	slotAnswered   = mlattr.SlotOf(mlattr.GenAIResponseModel)
	slotFirstChunk = mlattr.SlotOf(mlattr.GenAITimeToFirstChunk)
	slotLatency    = mlattr.SlotOf(mlattr.Latency)
	slotDecodeTime = mlattr.SlotOf(mlattr.DecodeTime)
)

// genAICall is a span in the terms of the conventions' metrics. Times are in
// seconds, and NaN where they are not known.
type genAICall struct {
	// server is true where the span is that of who answers.
	server bool
	// labels are those that all of the metrics have: operation, provider,
	// requested model, port, answering model and address.
	operation, provider, requested, port, answered, address string

	duration, firstToken, perToken float64
}

// genAICallOf reads a span that is a request to a model by the conventions, or
// a server's answer to one. It returns nil for any other: a role that estimates
// its tokens, and a trainer that samples, follow no convention.
func genAICallOf(v *values, facts *mlattr.Facts, span ptrace.Span) *genAICall {
	server := v.side == mlattr.SideServer || v.side == "" && span.Kind() == ptrace.SpanKindServer
	if v.notCounted || !mlattr.AsksModel(v.genAIOperation) && (!server || !v.hasOutput) {
		return nil
	}
	c := &genAICall{
		server:    server,
		operation: v.genAIOperation,
		provider:  facts.TextAt(slotProvider),
		requested: facts.TextAt(slotRequested),
		answered:  facts.TextAt(slotAnswered),
	}
	attrs := span.Attributes()
	if address, ok := attrs.Get(attrServerAddress); ok {
		c.address, _ = mlattr.ReadText(address)
	}
	if port, ok := attrs.Get(attrServerPort); ok {
		c.port = readPort(port)
	}
	c.duration, c.firstToken, c.perToken = timesOf(facts, span.StartTimestamp(), span.EndTimestamp(), v)
	return c
}

// readPort returns a port as text, or "" where the value is none.
func readPort(v pcommon.Value) string {
	if n, ok := mlattr.ReadInt(v); ok && n > 0 && n < 1<<16 {
		text, _ := mlattr.ReadText(pcommon.NewValueInt(n))
		return text
	}
	return ""
}

// timesOf returns how long a request took, until its first token, and for each
// token after that. The producer's own durations win over those of the span; a
// first token that comes after the end, and a time for each of no tokens, are
// not known.
func timesOf(facts *mlattr.Facts, start, end pcommon.Timestamp, v *values) (duration, firstToken, perToken float64) {
	duration, firstToken, perToken = math.NaN(), math.NaN(), math.NaN()
	if latency, ok := facts.DoubleAt(slotLatency); ok {
		duration = latency
	} else if end > start && start > 0 {
		duration = float64(end-start) / 1e9
	}
	if first, ok := facts.DoubleAt(slotFirstChunk); ok && first < duration {
		firstToken = first
	}
	if !v.hasOutput || v.output < 2 || v.output > maxCount {
		return duration, firstToken, perToken
	}
	later := float64(v.output - 1)
	if decode, ok := facts.DoubleAt(slotDecodeTime); ok && decode > 0 {
		perToken = decode / later
	} else {
		perToken = (duration - firstToken) / later
	}
	return duration, firstToken, perToken
}

// addGenAITokens adds what a request used. The conventions have it of the
// client's side alone.
func (r *reader) addGenAITokens(u *unit, kind string, tokens int64) {
	c := u.genAI
	if c == nil || c.server {
		return
	}
	up := r.update(u, series.GenAITokenUsage, u.requestSource,
		c.operation, c.provider, c.requested, c.port, c.answered, c.address, kind)
	up.Value = float64(tokens)
}

// addGenAITimes adds how long a request took, once where several spans tell of
// one. The type of its error is "" where it succeeded.
func (r *reader) addGenAITimes(u *unit) {
	c := u.genAI
	if c == nil {
		return
	}
	add := func(id series.ID, value float64, errorType ...string) {
		if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
			return
		}
		up := r.update(u, id, u.requestSource, c.operation, c.provider, c.requested, c.port, c.answered, c.address)
		copy(up.Labels[len(series.All[id].Labels)-1:], errorType) // the last one, where there is any
		up.Value = value
	}
	if !c.server {
		add(series.GenAIOperationDuration, c.duration, u.errorType)
		return
	}
	add(series.GenAIServerDuration, c.duration, u.errorType)
	if u.errorType == "" {
		add(series.GenAITimeToFirstToken, c.firstToken)
		add(series.GenAITimePerOutputToken, c.perToken)
	}
}
