package genai

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// question is what all clients ask, as telemetry.py has it.
const question = "why is the sky blue and not green at noon"

// Account is what a client did, by the server's log or by its telemetry.
type Account struct {
	// Requests are those to the model, Errors those of them that failed, and
	// Failures what ml.errors counts.
	Requests, Errors, Failures int64
	Input, Output              int64
	// FirstTokens is how many streamed requests have the time to the first token.
	FirstTokens int
}

// Truth returns the account of the server.
func Truth(r *Recording) (a Account) {
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

// Seen returns the account that the components give.
func Seen(result *Result) (a Account) {
	each(result.Series, "ml.requests", func(n int64, labels pcommon.Map) {
		a.Requests += n
		if class, _ := labels.Get(mlattr.ErrorType); class.Str() != "" {
			a.Errors += n
		}
	})
	each(result.Series, "ml.errors", func(n int64, _ pcommon.Map) { a.Failures += n })
	each(result.Series, "ml.tokens", func(n int64, labels pcommon.Map) {
		if kind, _ := labels.Get(mlattr.GenAITokenType); kind.Str() == mlattr.TokenTypeInput {
			a.Input += n
		} else {
			a.Output += n
		}
	})
	a.FirstTokens = len(firstTokens(result, true))
	return a
}

// requested returns how many requests the server had for each model, and counted how
// many the components count, failures among them.
func requested(r *Recording) map[string]int64 {
	models := make(map[string]int64)
	for _, call := range r.Served {
		models[call.Model]++
	}
	return models
}

func counted(result *Result) map[string]int64 {
	models := make(map[string]int64)
	each(result.Series, "ml.requests", func(n int64, labels pcommon.Map) {
		model, _ := labels.Get(mlattr.GenAIRequestModel)
		models[model.Str()] += n
	})
	return models
}

// each calls f for each point of a counter.
func each(md pmetric.Metrics, name string, f func(int64, pcommon.Map)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					f(p.IntValue(), p.Attributes())
				}
			}
		}
	}
}

// EachSpan calls f for each span, with what it says.
func EachSpan(result *Result, f func(ptrace.Span, *vocabulary.Facts)) {
	for _, td := range result.Spans {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					_, facts := vocabulary.Classify(rs.Resource().Attributes(), ss.Scope().Name(), span)
					f(span, facts)
				}
			}
		}
	}
}

// firstTokens returns the times to the first token, in seconds, of requests whose
// usage is counted, or of those whose usage is not.
func firstTokens(result *Result, counted bool) (times []float64) {
	EachSpan(result, func(_ ptrace.Span, facts *vocabulary.Facts) {
		mark := facts.Find(mlattr.UsageCounted)
		first, ok := facts.DoubleAt(vocabulary.SlotGenAITimeToFirstChunk)
		if ok && vocabulary.AsksModel(facts.Text(mlattr.GenAIOperationName)) && counted == (mark == nil || mark.Bool) {
			times = append(times, first)
		}
	})
	return times
}

// rates returns the output tokens a second of the requests.
func rates(result *Result) (all []float64) {
	EachSpan(result, func(_ ptrace.Span, facts *vocabulary.Facts) {
		if rate, ok := facts.DoubleAt(vocabulary.SlotTokensPerSecond); ok && vocabulary.AsksModel(facts.Text(mlattr.GenAIOperationName)) {
			all = append(all, rate)
		}
	})
	return all
}

// keys returns which keys the spans have.
func keys(result *Result) (found []string) {
	has := map[string]bool{}
	EachSpan(result, func(span ptrace.Span, facts *vocabulary.Facts) {
		for _, key := range []string{mlattr.SessionID, mlattr.RequestID, mlattr.GenAIToolName} {
			has[key] = has[key] || facts.Text(key) != ""
		}
		if _, agent := span.Attributes().Get("gen_ai.agent.name"); agent {
			has["agent"] = true
		}
	})
	for _, key := range [...]struct{ key, name string }{
		{mlattr.SessionID, "session"}, {mlattr.RequestID, "request"}, {"agent", "agent"}, {mlattr.GenAIToolName, "tool"},
	} {
		if has[key.key] {
			found = append(found, key.name)
		}
	}
	return found
}

// reproduced reports whether a folder of reproductions has a file of that name, or any
// if it is empty, with the question that the failed request asked.
func reproduced(folder, name string) (found bool, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name != "" && entry.Name() != name {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the test
		found = found || strings.Contains(string(text), question)
		return err
	})
	return found, err
}
