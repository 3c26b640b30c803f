package spans

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Names of the conventions that the vocabulary does not read.
const (
	attrServerAddress = "server.address"
	attrServerPort    = "server.port"
)

var (
	slotProvider   = vocabulary.SlotOf(mlattr.GenAIProviderName)
	slotFirstChunk = vocabulary.SlotOf(mlattr.GenAITimeToFirstChunk)
	slotLatency    = vocabulary.SlotOf(mlattr.Latency)
	slotDecodeTime = vocabulary.SlotOf(mlattr.DecodeTime)
	slotCacheWrite = vocabulary.SlotOf(mlattr.GenAICacheCreationTokens)
	slotReasoning  = vocabulary.SlotOf(mlattr.GenAIReasoningTokens)
)

// genAICall is a request to a model in the terms of the conventions. Times are
// in seconds, NaN if unknown.
type genAICall struct {
	// server reports whether the span is the server's.
	server bool
	// The labels of all metrics: operation, provider, requested model, port,
	// answering model and address.
	operation, provider, requested, port, answered, address string

	duration, firstToken, perToken float64
}

// genAICallOf reads a span that is a request to a model by the conventions, or
// a server's answer to one. It returns nil for other spans, and for roles that
// estimate tokens and trainers that sample, which follow no convention.
func genAICallOf(v *values, facts *vocabulary.Facts, span ptrace.Span) *genAICall {
	server := v.Side == mlattr.SideServer || v.Side == "" && span.Kind() == ptrace.SpanKindServer
	if v.NotCounted || v.NoRequest && !v.HasOutput || !vocabulary.AsksModel(v.GenAIOperation) && (!server || !v.HasOutput) {
		return nil
	}
	c := &genAICall{
		server:    server,
		operation: v.GenAIOperation,
		provider:  facts.TextAt(slotProvider),
		requested: v.Requested,
		answered:  v.Answered,
	}
	attrs := span.Attributes()
	c.address = textOf(attrs, attrServerAddress)
	if port, ok := attrs.Get(attrServerPort); ok {
		c.port = readPort(port)
	}
	c.duration, c.firstToken, c.perToken = timesOf(facts, span.StartTimestamp(), span.EndTimestamp(), v)
	return c
}

// textOf returns the text of an attribute, or "".
func textOf(attrs pcommon.Map, key string) (text string) {
	if v, ok := attrs.Get(key); ok {
		text, _ = mlattr.ReadText(v)
	}
	return text
}

// readPort returns a port as text, or "" if the value is no port.
func readPort(v pcommon.Value) string {
	if n, ok := mlattr.ReadInt(v); ok && n > 0 && n < 1<<16 {
		text, _ := mlattr.ReadText(pcommon.NewValueInt(n))
		return text
	}
	return ""
}

// timesOf returns the duration of a request, the time to its first token, and
// the time per further token. The producer's durations take precedence over the
// span's. All are unknown if the first token came later than that, and the time per
// token if there are no tokens.
func timesOf(facts *vocabulary.Facts, start, end pcommon.Timestamp, v *values) (duration, firstToken, perToken float64) {
	duration, firstToken, perToken = math.NaN(), math.NaN(), math.NaN()
	if latency, ok := facts.DoubleAt(slotLatency); ok {
		duration = latency
	} else if end > start && start > 0 {
		duration = float64(end-start) / 1e9
	}
	switch first, ok := facts.DoubleAt(slotFirstChunk); {
	case !ok:
	case first < duration:
		firstToken = first
	case first > duration:
		duration = math.NaN() // the span ended when the stream began
	}
	if !v.HasOutput || v.Output < 2 || v.Output > mlattr.MaxCount {
		return duration, firstToken, perToken
	}
	later := float64(v.Output - 1)
	if decode, ok := facts.DoubleAt(slotDecodeTime); ok && decode > 0 {
		perToken = decode / later
	} else {
		perToken = (duration - firstToken) / later
	}
	return duration, firstToken, perToken
}

// addGenAITokens adds the tokens of a request. The conventions define them for
// the client's side only.
func (r *result) addGenAITokens(u *unit, v *values) {
	if u.genAI.server {
		return
	}
	tokens := func(has bool, n int64, which string) {
		if has && n <= mlattr.MaxCount {
			r.updateGenAI(u, series.GenAITokenUsage, which).Value = float64(n)
		}
	}
	tokens(v.HasInput, v.Input, mlattr.TokenTypeInput)
	tokens(v.HasOutput, v.Output, mlattr.TokenTypeOutput)
}

// updateGenAI appends an update of a metric of the conventions. last is the value
// of its last label, if that is one that only this metric has.
func (r *result) updateGenAI(u *unit, id series.ID, last ...string) *streams.Update {
	c := u.genAI
	up := r.update(u, id, u.requestSource, c.operation, c.provider, c.requested, c.port, c.answered, c.address)
	copy(up.Labels[len(series.All[id].Labels)-1:], last)
	return up
}

// addGenAITimes adds the duration of a request, once if several spans record
// it. The error type of a successful request is "".
func (r *result) addGenAITimes(u *unit) {
	c := u.genAI
	if c == nil {
		return
	}
	add := func(id series.ID, value float64, errorType ...string) {
		if value >= 0 && !math.IsInf(value, 0) {
			r.updateGenAI(u, id, errorType...).Value = value
		}
	}
	if !c.server {
		add(series.GenAIOperationDuration, c.duration, u.Failure)
		return
	}
	add(series.GenAIServerDuration, c.duration, u.Failure)
	if u.Failure == "" {
		add(series.GenAITimeToFirstToken, c.firstToken)
		add(series.GenAITimePerOutputToken, c.perToken)
	}
}
