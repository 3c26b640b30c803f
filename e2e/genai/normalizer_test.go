package genai

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// normalizer does to spans what gen_ai_normalizer, of opentelemetry-collector-contrib,
// does for OpenInference and OpenLLMetry by its documentation. It stands in for it: the
// module registry that this was written with does not have its module.
type normalizer struct {
	// source is the one that it knows, or empty for both.
	source string
	// overwrite and removeOriginals are its settings, by default both false.
	overwrite, removeOriginals bool
}

// renamed has what each source's attributes become.
var renamed = map[string]map[string]string{
	"openinference": {
		"llm.token_count.prompt":       "gen_ai.usage.input_tokens",
		"llm.token_count.completion":   "gen_ai.usage.output_tokens",
		"llm.model_name":               "gen_ai.request.model",
		"llm.provider":                 "gen_ai.provider.name",
		"llm.input_messages":           "gen_ai.input.messages",
		"llm.output_messages":          "gen_ai.output.messages",
		"embedding.model_name":         "gen_ai.request.model",
		"tool.name":                    "gen_ai.tool.name",
		"tool.description":             "gen_ai.tool.description",
		"tool_call.function.arguments": "gen_ai.tool.call.arguments",
		"tool_call.id":                 "gen_ai.tool.call.id",
		"reranker.model_name":          "gen_ai.request.model",
		"agent.name":                   "gen_ai.agent.name",
		"session.id":                   "gen_ai.conversation.id",
		"openinference.span.kind":      "gen_ai.operation.name",
	},
	"openllmetry": {
		"llm.usage.prompt_tokens":     "gen_ai.usage.input_tokens",
		"llm.usage.completion_tokens": "gen_ai.usage.output_tokens",
		"llm.request.model":           "gen_ai.request.model",
		"llm.response.model":          "gen_ai.response.model",
		"llm.request.max_tokens":      "gen_ai.request.max_tokens",
		"llm.request.temperature":     "gen_ai.request.temperature",
		"llm.request.top_p":           "gen_ai.request.top_p",
		"llm.top_k":                   "gen_ai.request.top_k",
		"llm.frequency_penalty":       "gen_ai.request.frequency_penalty",
		"llm.presence_penalty":        "gen_ai.request.presence_penalty",
		"llm.chat.stop_sequences":     "gen_ai.request.stop_sequences",
		"llm.request.functions":       "gen_ai.tool.definitions",
		"llm.response.finish_reason":  "gen_ai.response.finish_reasons",
		"llm.response.stop_reason":    "gen_ai.response.finish_reasons",
		"llm.request.type":            "gen_ai.operation.name",
		"traceloop.span.kind":         "gen_ai.operation.name",
		"traceloop.entity.name":       "gen_ai.agent.name",
		"traceloop.entity.input":      "gen_ai.input.messages",
		"traceloop.entity.output":     "gen_ai.output.messages",
	},
}

// operations has what the words of each source become in gen_ai.operation.name.
var operations = map[string]map[string]string{
	"openinference": {
		"llm": "chat", "embedding": "embeddings", "chain": "invoke_agent", "retriever": "retrieval", "reranker": "retrieval",
		"tool": "execute_tool", "agent": "invoke_agent", "prompt": "text_completion",
	},
	"openllmetry": {
		"workflow": "invoke_workflow", "task": "invoke_agent", "agent": "invoke_agent", "tool": "execute_tool",
		"completion": "text_completion", "chat": "chat", "rerank": "retrieval", "embedding": "embeddings",
	},
}

func (n normalizer) process(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				for _, source := range []string{"openinference", "openllmetry"} {
					if n.source == "" || n.source == source {
						n.normalize(source, span.Attributes())
					}
				}
			}
		}
	}
}

func (n normalizer) normalize(source string, attributes pcommon.Map) {
	sent := pcommon.NewMap()
	attributes.CopyTo(sent)
	for from, value := range sent.All() {
		to, known := renamed[source][from]
		if _, exists := attributes.Get(to); !known || exists && !n.overwrite {
			continue
		}
		target := attributes.PutEmpty(to)
		switch word, known := operations[source][strings.ToLower(value.AsString())]; {
		case to == "gen_ai.operation.name" && known:
			target.SetStr(word)
		case to == "gen_ai.response.finish_reasons" && value.Type() == pcommon.ValueTypeStr:
			target.SetEmptySlice().AppendEmpty().SetStr(value.Str())
		default:
			value.CopyTo(target)
		}
		if n.removeOriginals {
			attributes.Remove(from)
		}
	}
}

// outcome is what the components make of telemetry, as far as two runs can be compared.
type outcome struct {
	Account
	models   map[string]int64
	problems []string
	// agents is the time of calls of agents.
	agents     time.Duration
	reproduced bool
	// identities has each span with its run, step and rank.
	identities []string
	// counters has the counters of whole numbers with their values.
	counters []string
}

// outcomeOf processes requests with another processor before ml_enrich and one behind it.
func outcomeOf(t *testing.T, requests []ptrace.Traces, before, behind func(ptrace.Traces)) (o outcome) {
	t.Helper()
	for _, td := range requests {
		before(td)
	}
	folder := filepath.Join(t.TempDir(), "r")
	result, err := ProcessBeside(context.Background(), requests, nil, folder, behind)
	require.NoError(t, err)
	o.Account, o.models = Seen(&result), counted(&result)
	delete(o.models, "") // they are among the requests
	o.reproduced, err = reproduced(folder, "")
	require.NoError(t, err)
	for _, td := range result.Spans {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					of := []string{span.TraceID().String(), span.SpanID().String()}
					for _, key := range []string{mlattr.RunID, mlattr.Step, mlattr.RankGlobal, mlattr.Phase} {
						for _, attributes := range []pcommon.Map{rs.Resource().Attributes(), span.Attributes()} {
							if v, ok := attributes.Get(key); ok {
								of = append(of, key+"="+v.AsString())
							}
						}
					}
					o.identities = append(o.identities, strings.Join(of, " "))
				}
			}
		}
	}
	eachMetric(result.Series, func(resource string, m pmetric.Metric) {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
					o.counters = append(o.counters, fmt.Sprint(resource, m.Name(), p.Attributes().AsRaw(), p.IntValue()))
				}
				if operation, _ := p.Attributes().Get(mlattr.Operation); m.Name() == "ml.call.time" && operation.Str() == mlattr.OperationInvokeAgent {
					o.agents += time.Duration(p.DoubleValue() * 1e9)
				}
			}
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				if problem, ok := p.Attributes().Get(mlattr.Problem); ok && m.Name() == "ml.problem.onset.timestamp" {
					o.problems = append(o.problems, problem.Str())
				}
			}
		}
	})
	o.agents = o.agents.Round(time.Millisecond)
	slices.Sort(o.problems)
	slices.Sort(o.counters)
	return o
}

// eachMetric calls f for each metric, with its resource.
func eachMetric(md pmetric.Metrics, f func(resource string, m pmetric.Metric)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				f(fmt.Sprint(rm.Resource().Attributes().AsRaw()), m)
			}
		}
	}
}

// placed are the orders and settings in which gen_ai_normalizer is tried.
var placed = []struct {
	name     string
	first    bool
	settings normalizer
	// harmless says that nothing is counted otherwise.
	harmless bool
}{
	{"before `ml_enrich`", true, normalizer{}, false},
	{"before, `overwrite`", true, normalizer{overwrite: true}, false},
	{"before, `remove_originals`", true, normalizer{removeOriginals: true}, false},
	{"before, source `openllmetry` only", true, normalizer{source: "openllmetry"}, true},
	{"behind `ml_enrich`", false, normalizer{}, false},
	{"behind, `overwrite`", false, normalizer{overwrite: true}, false},
	{"behind, `remove_originals`", false, normalizer{removeOriginals: true}, false},
	{"behind, source `openllmetry` only", false, normalizer{source: "openllmetry"}, true},
}

// TestBesideNormalizer has gen_ai_normalizer before ml_enrich and behind it, and compares
// with ml_enrich alone what is counted of all recordings and of all that mlgen sends.
func TestBesideNormalizer(t *testing.T) {
	others, err := ReadRecordings("others")
	require.NoError(t, err)
	sent := make(map[string]func() []ptrace.Traces)
	for _, r := range slices.Concat(readRecordings(t), others) {
		sent[r.Client] = func() []ptrace.Traces {
			requests, err := r.Requests()
			require.NoError(t, err)
			return requests
		}
	}
	recorded := len(sent)
	for _, name := range scenario.Names() {
		sent["mlgen "+name] = func() []ptrace.Traces { return generated(t, name) }
	}
	none := func(ptrace.Traces) {}
	alone := make(map[string]outcome)
	for name, requests := range sent {
		alone[name] = outcomeOf(t, requests(), none, none)
		again := outcomeOf(t, requests(), none, none)
		require.Equal(t, alone[name], again, name)
	}
	var table strings.Builder
	table.WriteString("| `gen_ai_normalizer` | more requests | another model | a `failing` that is none | more time of agents | a time to the first token less |\n|---|---|---|---|---|---|\n")
	for _, place := range placed {
		var requests, models, problems, agents, firsts int
		for _, name := range slices.Sorted(maps.Keys(sent)) {
			before, behind := place.settings.process, none
			if !place.first {
				before, behind = behind, before
			}
			was, is := alone[name], outcomeOf(t, sent[name](), before, behind)
			where := name + ", " + place.name
			assert.Equal(t, was.identities, is.identities, "runs and steps: %s", where)
			assert.Equal(t, was.reproduced, is.reproduced, where)
			assert.Equal(t, [4]int64{was.Errors, was.Failures, was.Input, was.Output}, [4]int64{is.Errors, is.Failures, is.Input, is.Output}, where)
			if place.harmless || strings.HasPrefix(name, "mlgen ") {
				assert.Equal(t, was, is, where)
			}
			count := func(n *int, different bool) {
				if different {
					*n++
				}
			}
			count(&requests, was.Requests != is.Requests)
			count(&models, !maps.Equal(was.models, is.models))
			count(&problems, !slices.Equal(was.problems, is.problems))
			count(&agents, is.agents > was.agents)
			count(&firsts, is.FirstTokens < was.FirstTokens)
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d |\n", place.name, requests, models, problems, agents, firsts)
	}
	assert.Equal(t, 86, recorded)
	documents.CheckTable(t, harness.Path("docs", "replace-contrib-and-dcgm.md"), "normalizer", table.String(), *update)
}

// generated returns the spans of a scenario of mlgen.
func generated(t *testing.T, name string) (requests []ptrace.Traces) {
	t.Helper()
	s, err := scenario.New(name, scenario.Settings{Seed: 1, Rate: 1, Ranks: 2, JobName: "local", MetricsInterval: time.Hour})
	require.NoError(t, err)
	at := time.Unix(1_700_000_000, 0)
	add := func(batches []scenario.Batch) {
		for _, b := range batches {
			if b.Signal == sentlog.SignalTraces {
				requests = append(requests, b.Traces)
			}
		}
	}
	for range 40 {
		at = at.Add(time.Second)
		add(s.Step(at))
	}
	add(s.Finish(at))
	require.NotEmpty(t, requests)
	return requests
}
