package mlmetricsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Names of the conventions that the vocabulary does not read.
const (
	attrServerAddress = "server.address"
	attrServerPort    = "server.port"
)

// modalityUnknown is the value of gen_ai.token.modality if a span does not say
// whether its tokens are text, image or audio.
const modalityUnknown = "unknown"

var (
	slotProvider   = mlattr.SlotOf(mlattr.GenAIProviderName)
	slotRequested  = mlattr.SlotOf(mlattr.GenAIRequestModel)
	slotAnswered   = mlattr.SlotOf(mlattr.GenAIResponseModel)
	slotFirstChunk = mlattr.SlotOf(mlattr.GenAITimeToFirstChunk)
	slotLatency    = mlattr.SlotOf(mlattr.Latency)
	slotDecodeTime = mlattr.SlotOf(mlattr.DecodeTime)
	slotCacheWrite = mlattr.SlotOf(mlattr.GenAICacheCreationTokens)
	slotReasoning  = mlattr.SlotOf(mlattr.GenAIReasoningTokens)
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

	// cacheRead and cacheWrite are part of the input tokens, reasoning of the
	// output's.
	cacheRead, cacheWrite, reasoning int64
}

// genAICallOf reads a span that is a request to a model by the conventions, or
// a server's answer to one. It returns nil for other spans, and for roles that
// estimate tokens and trainers that sample, which follow no convention.
func genAICallOf(v *values, facts *mlattr.Facts, span ptrace.Span) *genAICall {
	server := v.side == mlattr.SideServer || v.side == "" && span.Kind() == ptrace.SpanKindServer
	if v.notCounted || v.noRequest && !v.hasOutput || !mlattr.AsksModel(v.genAIOperation) && (!server || !v.hasOutput) {
		return nil
	}
	c := &genAICall{
		server:    server,
		operation: v.genAIOperation,
		provider:  facts.TextAt(slotProvider),
		requested: facts.TextAt(slotRequested),
		answered:  facts.TextAt(slotAnswered),
	}
	c.cacheRead, _ = facts.IntAt(slotCached)
	c.cacheWrite, _ = facts.IntAt(slotCacheWrite)
	c.reasoning, _ = facts.IntAt(slotReasoning)
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
func timesOf(facts *mlattr.Facts, start, end pcommon.Timestamp, v *values) (duration, firstToken, perToken float64) {
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
	if !v.hasOutput || v.output < 2 || v.output > mlattr.MaxCount {
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

// addGenAITokens adds the tokens of a request. The conventions define them for
// the client's side only.
func (r *reader) addGenAITokens(u *unit, v *values) {
	c := u.genAI
	if c.server {
		return
	}
	tokens := func(id series.ID, has bool, n int64, last string) {
		if has && n <= mlattr.MaxCount {
			up := r.updateGenAI(u, id, last)
			up.Value, up.Count = float64(n), n
		}
	}
	switch {
	case !r.nextNames:
		tokens(series.GenAITokenUsage, v.hasInput, v.input, mlattr.TokenTypeInput)
		tokens(series.GenAITokenUsage, v.hasOutput, v.output, mlattr.TokenTypeOutput)
	case c.operation == mlattr.OperationEmbeddings:
		tokens(series.GenAIEmbeddingsInput, v.hasInput, v.input, u.errorType)
	default:
		tokens(series.GenAIInputUsage, v.hasInput, v.input, modalityUnknown)
		tokens(series.GenAIOutputUsage, v.hasOutput, v.output, modalityUnknown)
		tokens(series.GenAICacheReadUsage, c.cacheRead > 0, c.cacheRead, modalityUnknown)
		tokens(series.GenAICacheWriteUsage, c.cacheWrite > 0, c.cacheWrite, modalityUnknown)
		tokens(series.GenAIReasoningUsage, c.reasoning > 0, c.reasoning, modalityUnknown)
		tokens(series.GenAIOperationInput, v.hasInput, v.input, u.errorType)
		tokens(series.GenAIOperationOutput, v.hasOutput, v.output, u.errorType)
	}
}

// updateGenAI appends an update of a metric of the conventions. last is the value
// of its last label, if that is one that only this metric has.
func (r *reader) updateGenAI(u *unit, id series.ID, last ...string) *streams.Update {
	c := u.genAI
	up := r.update(u, id, u.requestSource, c.operation, c.provider, c.requested, c.port, c.answered, c.address)
	copy(up.Labels[len(series.All[id].Labels)-1:], last)
	return up
}

// addGenAITimes adds the duration of a request, once if several spans record
// it. The error type of a successful request is "".
func (r *reader) addGenAITimes(u *unit) {
	c := u.genAI
	if c == nil {
		return
	}
	add := func(id series.ID, value float64, errorType ...string) {
		if value >= 0 && !math.IsInf(value, 0) {
			r.updateGenAI(u, id, errorType...).Value = value
		}
	}
	switch {
	case c.server:
		add(series.GenAIServerDuration, c.duration, u.errorType)
		if u.errorType == "" {
			add(series.GenAITimeToFirstToken, c.firstToken)
			add(series.GenAITimePerOutputToken, c.perToken)
		}
	case !r.nextNames:
		add(series.GenAIOperationDuration, c.duration, u.errorType)
	case c.operation == mlattr.OperationEmbeddings:
		add(series.GenAIEmbeddingsDuration, c.duration, u.errorType)
	default:
		add(series.GenAIInferenceDuration, c.duration, u.errorType)
	}
}
