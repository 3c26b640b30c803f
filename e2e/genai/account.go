package genai

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Account is what a client did, by the server's log or by its telemetry.
type Account struct {
	Requests, Errors, Input, Output int64
	// Streams are the successful streamed requests; FirstTokens is how many of
	// these have the time to the first token.
	FirstTokens int
	// Failures are the failed operations, of requests or of what is above them.
	Failures int64
}

// truth returns the account of the server.
func truth(r *Recording) (a Account) {
	for _, call := range r.Served {
		a.Requests++
		a.Input += call.Input
		a.Output += call.Output
		if call.Status != 200 {
			a.Errors++
			a.Failures++
		} else if call.Stream {
			a.FirstTokens++
		}
	}
	return a
}

// seen returns the account that the components give.
func seen(result *Result) (a Account) {
	each(result.Series, "ml.requests", func(p pmetric.NumberDataPoint) {
		a.Requests += p.IntValue()
		if class, _ := p.Attributes().Get(mlattr.ErrorType); class.Str() != "" {
			a.Errors += p.IntValue()
		}
	})
	each(result.Series, "ml.errors", func(p pmetric.NumberDataPoint) { a.Failures += p.IntValue() })
	each(result.Series, "ml.tokens", func(p pmetric.NumberDataPoint) {
		if kind, _ := p.Attributes().Get(mlattr.GenAITokenType); kind.Str() == "input" {
			a.Input += p.IntValue()
		} else {
			a.Output += p.IntValue()
		}
	})
	for _, td := range result.Spans {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					_, facts := mlattr.Classify(rs.Resource().Attributes(), ss.Scope().Name(), span)
					_, timed := facts.Double(mlattr.GenAITimeToFirstChunk)
					counted := facts.Find(mlattr.UsageCounted)
					if timed && (counted == nil || counted.Bool) && mlattr.AsksModel(facts.Text(mlattr.GenAIOperationName)) {
						a.FirstTokens++
					}
				}
			}
		}
	}
	return a
}

// each calls f for each point of a counter.
func each(md pmetric.Metrics, name string, f func(pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					f(p)
				}
			}
		}
	}
}
