package anomalies

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// answer is a request to a model of a shaped service, which a shape may change.
type answer struct {
	model          string
	input, output  float64
	first, perWord float64 // seconds
	queued         float64
	reason         string
	failed         bool
	dimensions     int
	// slower multiplies the whole time.
	slower float64
}

// serviceShape is a service of a shape, with a request each 1 to 10 s.
type serviceShape struct {
	name string
	// change changes a request from serviceUsual on, or always where nothing is planted.
	change func(a *answer, random *rand.Rand, since time.Duration)
	// demand multiplies the rate at a time since serviceUsual.
	demand func(since time.Duration) float64
	// kind is what is planted, "" for nothing, and word what its evidence says.
	kind, word string
	models     []string
	may        []string
}

const (
	serviceUsual = 5 * time.Hour
	serviceAfter = 3 * time.Hour
)

func share(of float64, do func(a *answer)) func(*answer, *rand.Rand, time.Duration) {
	return func(a *answer, random *rand.Rand, _ time.Duration) {
		if random.Float64() < of {
			do(a)
		}
	}
}

var serviceShapes = []serviceShape{
	{name: "services as usual"},
	{name: "nightly summaries: two hours of prompts ten times as long", may: []string{mlattr.ProblemCostly}, change: func(a *answer, random *rand.Rand, since time.Duration) {
		if since < 2*time.Hour && random.Float64() < 0.7 {
			a.input, a.output, a.first = 10*a.input, 3*a.output, 3*a.first
		}
	}},
	{name: "a new large customer: three times the demand, other lengths", may: []string{mlattr.ProblemCostly}, demand: func(time.Duration) float64 { return 3 }, change: func(a *answer, random *rand.Rand, _ time.Duration) {
		if random.Float64() < 2.0/3 {
			a.input, a.output = 2*a.input, 0.6*a.output
		}
	}},
	{name: "errors from 1 to 6 %", kind: mlattr.ProblemFailing, change: share(0.05, func(a *answer) { a.failed = true })},
	{name: "one of three models fails, 30 %", kind: mlattr.ProblemFailing, word: "model-b", models: []string{"model-a", "model-b", "model-c"}, change: share(0.3, func(a *answer) { a.failed = a.failed || a.model == "model-b" })},
	{name: "a rare model always fails", kind: mlattr.ProblemFailing, word: "rare", models: []string{"model-a", "rare"}, change: share(1, func(a *answer) { a.failed = a.failed || a.model == "rare" })},
	{name: "one request in ten takes ten times as long", kind: mlattr.ProblemTailLatency, change: share(0.1, func(a *answer) { a.slower = 10 })},
	{name: "the slowest 5 % take twice as long: p99 doubles, the median stays", kind: mlattr.ProblemTailLatency, change: func(a *answer, _ *rand.Rand, _ time.Duration) {
		if a.output > 1+200*math.Exp(0.6*1.645) {
			a.slower = 2
		}
	}},
	{name: "one request in 30 takes ten times as long: p99 more than doubles", kind: mlattr.ProblemTailLatency, change: share(1.0/30, func(a *answer) { a.slower = 10 })},
	{name: "first token after twice the time", kind: mlattr.ProblemSlowRequests, word: "first token", change: share(1, func(a *answer) { a.first *= 2 })},
	{name: "waiting twice as long", kind: mlattr.ProblemSlowRequests, word: "waiting", change: share(1, func(a *answer) { a.queued *= 2 })},
	{name: "half answers", kind: mlattr.ProblemAnswersChanged, change: share(1, func(a *answer) { a.output *= 0.5 })},
	{name: "empty answers, 20 %", kind: mlattr.ProblemAnswersChanged, change: share(0.2, func(a *answer) { a.output = 0 })},
	{name: "a filter withholds 10 %", kind: mlattr.ProblemAnswersChanged, change: share(0.1, func(a *answer) { a.reason = "content_filter" })},
	{name: "embeddings of other dimensions", kind: mlattr.ProblemAnswersChanged, word: "dimensions", models: []string{"embed"}, change: share(1, func(a *answer) { a.dimensions = 768 })},
}

// live lets n services of a shape live.
func (s *serviceShape) live(ctx context.Context, seed int64, n int) (*shapeRow, error) {
	time.Sleep(begins)
	w, err := newWorld(ctx, seed, flushOfPlanted)
	if err != nil {
		return nil, err
	}
	onset := time.Now().Add(serviceUsual)
	for i := range n {
		name := fmt.Sprintf("svc-%d", i)
		random := w.stream(name)
		rate := 0.1 * math.Pow(10, random.Float64())
		var proceed func()
		proceed = func() {
			since := time.Since(onset)
			now := rate
			if s.demand != nil && since >= 0 {
				now *= s.demand(since)
			}
			w.in(exponential(random, time.Duration(float64(time.Second)/now)), func() {
				s.request(w, name, random, time.Since(onset))
				proceed()
			})
		}
		proceed()
	}
	began := time.Now()
	w.live(serviceUsual + serviceAfter)
	row := &shapeRow{name: s.name, runs: n, lived: time.Since(began)}
	known := make(map[string]bool)
	for _, seen := range w.collector.reported() {
		if seen.kind == s.kind && seen.detected.After(onset) && strings.Contains(seen.evidence, s.word) {
			row.find(known, seen.service, seen.detected.Sub(onset))
		} else {
			row.add(seen)
		}
	}
	if err := w.collector.stop(ctx); err != nil {
		return nil, err
	}
	return row, w.collector.failed()
}

// request sends a request.
func (s *serviceShape) request(w *world, service string, random *rand.Rand, since time.Duration) {
	a := answer{
		model: "model-a", input: 800 * math.Exp(0.6*random.NormFloat64()), output: 1 + 200*math.Exp(0.6*random.NormFloat64()),
		first: 0.3 * math.Exp(0.3*random.NormFloat64()), perWord: 0.012 * math.Exp(0.15*random.NormFloat64()),
		queued: 0.05 * math.Exp(0.5*random.NormFloat64()), reason: "stop", slower: 1, failed: random.Float64() < 0.01, dimensions: 1536,
	}
	if n := len(s.models); n > 0 {
		if a.model = s.models[random.IntN(n)]; a.model == "rare" && random.IntN(40) > 0 {
			a.model = s.models[0]
		}
	}
	if s.change != nil && since >= 0 {
		s.change(&a, random, since)
	}
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	var trace pcommon.TraceID
	binary.BigEndian.PutUint64(trace[:], random.Uint64()|1)
	span.SetTraceID(trace)
	span.SetSpanID(pcommon.SpanID(trace[:8]))
	attrs := span.Attributes()
	took := a.first + a.perWord*a.output
	span.SetName("chat " + a.model)
	attrs.PutStr("gen_ai.operation.name", "chat")
	attrs.PutStr("gen_ai.request.model", a.model)
	switch {
	case a.failed:
		failWith(span, "APIError")
	case a.model == "embed":
		attrs.PutStr("gen_ai.operation.name", "embeddings")
		attrs.PutInt("gen_ai.embeddings.dimension.count", int64(a.dimensions))
		attrs.PutInt("gen_ai.usage.input_tokens", int64(a.input))
		took = a.first
	default:
		attrs.PutStr("gen_ai.response.model", a.model)
		attrs.PutInt("gen_ai.usage.input_tokens", int64(a.input))
		attrs.PutInt("gen_ai.usage.output_tokens", int64(a.output))
		attrs.PutDouble(mlattr.GenAITimeToFirstChunk, a.first)
		attrs.PutDouble(mlattr.QueueTime, a.queued)
		finish(span, a.reason)
	}
	end := time.Now()
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Duration(took * a.slower * 1e9))))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	w.send("", scenario.Batch{Signal: sentlog.SignalTraces, Traces: td})
}
