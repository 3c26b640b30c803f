package clients

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// The services of the example, by who watches the client.
const (
	openLLMetry   = "chat-openllmetry"
	openInference = "chat-openinference"
	// watchedTwice is instrumented by both: OpenLLMetry's span has
	// OpenInference's as its child, and each says how many tokens it was.
	watchedTwice = "chat-both"
)

// TestLLM shows that it does not matter which of two instrumentations watches
// a client of a language model, or both: tokens, rates, requests and errors are the same.
func TestLLM(t *testing.T) {
	truth := harness.RunExample(t, harness.Example{Name: "llm", Endpoint: overHTTP(t)})
	spans := jaeger.AwaitSpanCounts(t, truth.Services, truth.Spans)
	of := map[string][]harness.StoredSpan{}
	for _, span := range spans {
		service := span.Resource["service.name"].(string)
		of[service] = append(of[service], span)
	}

	for _, service := range truth.Services {
		t.Run(service, func(t *testing.T) {
			t.Run("tokens", func(t *testing.T) { checkTokens(t, service, truth) })
			t.Run("rates", func(t *testing.T) { checkTokenRates(t, of[service]) })
			t.Run("counted once", func(t *testing.T) { checkCountedOnce(t, service, of[service]) })
			t.Run("requests", func(t *testing.T) { checkRequests(t, service, truth) })
			t.Run("errors", func(t *testing.T) { checkErrors(t, service, truth) })
			t.Run("request ids", func(t *testing.T) { checkRequestIDs(t, service, of[service], truth) })
		})
	}
	t.Run("failed spans", func(t *testing.T) { checkFailedSpans(t, spans, truth) })
	t.Run("the client's own count", func(t *testing.T) {
		// OpenInference sends no metrics.
		for _, service := range []string{openLLMetry, watchedTwice} {
			for model, wanted := range tokensOf(truth, service) {
				prometheus.AwaitValues(t, fmt.Sprintf(
					"sum by (gen_ai_token_type) (gen_ai_client_token_usage_sum{job=%q, gen_ai_response_model=~\"%s-.*\"})", service, model,
				), "gen_ai_token_type", wanted)
			}
		}
	})

	t.Run("the live page", func(t *testing.T) { view.AwaitParity(t, collector) })
}

// tokensOf returns the tokens of a service by model and type.
func tokensOf(truth harness.Truth, service string) map[string]map[string]float64 {
	tokens := map[string]map[string]float64{}
	for key, counts := range truth.Tokens {
		if model, ok := strings.CutPrefix(key, service+"/"); ok {
			tokens[model] = map[string]float64{"input": float64(counts.Input), "output": float64(counts.Output)}
		}
	}
	return tokens
}

func checkTokens(t *testing.T, service string, truth harness.Truth) {
	tokens := tokensOf(truth, service)
	require.Len(t, tokens, 2)
	for model, wanted := range tokens {
		// A model answers as one exact version of itself, and OpenInference
		// knows only that: tiny-1 is tiny-1-2026-01-15.
		prometheus.AwaitValues(t, fmt.Sprintf(
			"sum by (gen_ai_token_type) (ml_tokens_total{job=%q, gen_ai_request_model=~\"%s(-.*)?\"})", service, model,
		), "gen_ai_token_type", wanted)
	}
}

// checkTokenRates looks at the rate of each span: there is one where the span
// says how many tokens it was, and none where it failed or nobody knows.
func checkTokenRates(t *testing.T, spans []harness.StoredSpan) {
	with, without := 0, 0
	for _, span := range spans {
		output, known := span.Attributes["gen_ai.usage.output_tokens"].(int64)
		if !known {
			without++
			assert.NotContains(t, span.Attributes, "ml.tokens_per_second", "span %s", span.Span.SpanID())
			continue
		}
		with++
		seconds := span.Span.EndTimestamp().AsTime().Sub(span.Span.StartTimestamp().AsTime()).Seconds()
		assert.InEpsilon(t, float64(output)/seconds, span.Attributes["ml.tokens_per_second"], 1e-6)
		assert.Equal(t, "span", span.Attributes["ml.throughput.basis"])
	}
	assert.Positive(t, with)
	assert.Positive(t, without)
}

// checkCountedOnce looks for the mark of usage that a child reports too, and
// at how many rates there are.
func checkCountedOnce(t *testing.T, service string, spans []harness.StoredSpan) {
	marked, used := 0, 0
	for _, span := range spans {
		if _, ok := span.Attributes["gen_ai.usage.output_tokens"]; !ok {
			// A request that failed, or whose stream states no usage, is marked if two
			// instrumentations report it.
			if _, twice := span.Attributes["ml.usage.evidence"]; !twice || service != watchedTwice {
				assert.NotContains(t, span.Attributes, "ml.usage.counted")
			}
			continue
		}
		used++
		if counted, ok := span.Attributes["ml.usage.counted"]; ok {
			marked++
			assert.Equal(t, false, counted)
			assert.Equal(t, "openai.chat", span.Span.Name())
		}
	}
	if service == watchedTwice {
		assert.Equal(t, used/2, marked)
	} else {
		assert.Zero(t, marked)
	}
	prometheus.AwaitValues(t, fmt.Sprintf("sum by (job) (ml_request_token_throughput_per_second_count{job=%q})", service),
		"job", map[string]float64{service: float64(used - marked)})
}

func checkRequests(t *testing.T, service string, truth harness.Truth) {
	prometheus.AwaitValues(t, fmt.Sprintf("sum by (job) (ml_requests_total{job=%q})", service),
		"job", map[string]float64{service: truth.Numbers[service+"/requests"]})
}

func checkErrors(t *testing.T, service string, truth harness.Truth) {
	require.InDelta(t, 2, truth.Numbers[service+"/failures"], 0)
	// OpenLLMetry names the class, OpenInference only has the exception, which
	// names the module too. Of two spans the inner one counts.
	module := "openai."
	if service == openLLMetry {
		module = ""
	}
	prometheus.AwaitValues(t, fmt.Sprintf("sum by (error_type) (ml_errors_total{job=%q})", service),
		"error_type", map[string]float64{module + "InternalServerError": 1, module + "APITimeoutError": 1})
}

// checkRequestIDs compares with the ids of the answers, which OpenLLMetry sends.
func checkRequestIDs(t *testing.T, service string, spans []harness.StoredSpan, truth harness.Truth) {
	if service == openInference {
		for _, span := range spans {
			assert.NotContains(t, span.Attributes, "ml.request.id", "OpenInference sends no id of a request")
		}
		return
	}
	wanted := map[string]int{}
	for _, id := range truth.Keys[service+"/request"] {
		wanted[id] = 1
	}
	requests := named(spans, "openai.chat")
	counts := values(requests, "ml.request.id")
	delete(counts, "") // those that failed
	assert.Equal(t, wanted, counts)
}

func checkFailedSpans(t *testing.T, spans []harness.StoredSpan, truth harness.Truth) {
	byID := map[string]harness.StoredSpan{}
	for _, span := range spans {
		byID[span.Span.SpanID().String()] = span
	}
	// Two failures in each service, each of which has two spans in the last.
	require.Len(t, truth.Errors, 8)
	for _, failure := range truth.Errors {
		span, ok := byID[failure.SpanID]
		require.True(t, ok, "the failed span %s of %s is not stored", failure.SpanID, failure.Type)
		assert.Equal(t, failure.TraceID, span.Span.TraceID().String())
		assert.Equal(t, "Error", span.Span.Status().Code().String())
		require.Equal(t, 1, span.Span.Events().Len())
		kind, _ := span.Span.Events().At(0).Attributes().Get("exception.type")
		assert.Equal(t, "openai."+failure.Type, kind.Str())

		// Of a span and its child that both failed, the child is where the
		// failure arose.
		inner := span.Resource["service.name"] != watchedTwice || span.Span.Name() == "ChatCompletion"
		if inner {
			awaitFailure(t, spans, failure)
		} else {
			assert.NotContains(t, span.Attributes, "repro.artifact.path")
		}
	}
}
