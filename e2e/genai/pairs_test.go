package genai

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// paired are the recordings in which two instrumentations report each request, or
// some.
var paired = []string{"langchain_openai_v2", "logfire_anthropic", "openinference_anthropic", "pydantic_ai_openai_v2"}

// TestRecordedPairs sends each span of the recorded pairs alone, in the order in
// which they ended and in others, and counts the requests.
func TestRecordedPairs(t *testing.T) {
	var table strings.Builder
	table.WriteString("| spans arrive | requests served | counted |\n|---|---|---|\n")
	ended := func(all []ptrace.Traces) { slices.SortStableFunc(all, byEnd) }
	for _, order := range []struct {
		name  string
		sort  func([]ptrace.Traces)
		oneID bool
	}{
		{"as they end, one at a time", ended, false},
		{"in the reverse order, one at a time", func(all []ptrace.Traces) {
			slices.SortStableFunc(all, byEnd)
			slices.Reverse(all)
		}, false},
		{"in any order, one at a time", func(all []ptrace.Traces) {
			random := rand.New(rand.NewPCG(1, 2))
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}, false},
		{"as recorded", nil, false},
		{"as they end, one at a time, with one response id for all", ended, true},
		{"as recorded, with one response id for all", nil, true},
	} {
		served, counted := int64(0), int64(0)
		for _, r := range readRecordings(t) {
			if !slices.Contains(paired, r.Client) {
				continue
			}
			requests, err := r.Requests()
			require.NoError(t, err)
			if order.oneID {
				giveOneID(&r, requests)
			}
			if order.sort != nil {
				requests = alone(requests)
				order.sort(requests)
			}
			result, err := Process(context.Background(), requests, filepath.Join(t.TempDir(), "r"))
			require.NoError(t, err)
			of, by := Truth(&r), Seen(&result)
			want, got := of.Requests, by.Requests
			assert.GreaterOrEqual(t, by.Input, of.Input, "%s %s", r.Client, order.name)
			assert.GreaterOrEqual(t, got, want, "%s %s: two requests became one", r.Client, order.name)
			if order.sort == nil || order.name[0] == 'a' {
				assert.Equal(t, want, got, "%s %s", r.Client, order.name)
				assert.Equal(t, of.Input, by.Input, "%s %s", r.Client, order.name)
			}
			served, counted = served+want, counted+got
		}
		fmt.Fprintf(&table, "| %s | %d | %d |\n", order.name, served, counted)
	}
	if *recordings == "recordings" {
		checkPage(t, "pairs", table.String())
	}
}

// giveOneID lets all answers of a recording have the same response id.
func giveOneID(r *Recording, requests []ptrace.Traces) {
	for _, td := range requests {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					for _, v := range span.Attributes().All() {
						if slices.ContainsFunc(r.Served, func(call Served) bool { return v.Type() == pcommon.ValueTypeStr && v.Str() == call.ID }) {
							v.SetStr("answer")
						}
					}
				}
			}
		}
	}
}

// alone returns each span as a request of its own.
func alone(requests []ptrace.Traces) (all []ptrace.Traces) {
	for _, td := range requests {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					one := ptrace.NewTraces()
					to := one.ResourceSpans().AppendEmpty()
					rs.Resource().CopyTo(to.Resource())
					scope := to.ScopeSpans().AppendEmpty()
					ss.Scope().CopyTo(scope.Scope())
					span.CopyTo(scope.Spans().AppendEmpty())
					all = append(all, one)
				}
			}
		}
	}
	return all
}

func byEnd(x, y ptrace.Traces) int {
	end := func(td ptrace.Traces) int {
		return int(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).EndTimestamp())
	}
	return end(x) - end(y)
}

// TestDifferentRequests measures how many requests are taken for others:
// two clients, each watched by an instrumentation of its own, ask the same model.
// Nothing but the rule for times can mistake them, and only within a process.
func TestDifferentRequests(t *testing.T) {
	const n = 4_000
	var table strings.Builder
	table.WriteString("| clients with 4,000 requests each | requests | taken for another |\n|---|---|---|\n")
	for _, load := range []struct {
		name               string
		clients, processes int
		sizes, at, ms, ids int
	}{
		{"one instrumentation, equal requests, one after another", 1, 1, 1, 1, 0, 0},
		{"one instrumentation, equal requests, 8 at a time", 1, 1, 1, 8, 0, 0},
		{"one instrumentation, equal requests with one response id, 8 at a time", 1, 1, 1, 8, 0, 1},
		{"one instrumentation, equal requests with 999 response ids (Ollama), 8 at a time", 1, 1, 1, 8, 0, 999},
		{"two in two processes, equal requests, 8 at a time", 2, 2, 1, 8, 0, 0},
		{"two in two processes, equal requests with one response id, 8 at a time", 2, 2, 1, 8, 0, 1},
		{"eight in eight processes, equal requests, 8 at a time", 8, 8, 1, 8, 0, 0},
		{"two in one process, input and output of up to 1,000 tokens, 8 at a time", 2, 1, 1000, 8, 0, 0},
		{"two in one process, the same with 999 response ids, 8 at a time", 2, 1, 1000, 8, 0, 999},
		{"two in one process, input and output of up to 30 tokens, 8 at a time", 2, 1, 30, 8, 0, 0},
		{"two in one process, equal requests, one after another", 2, 1, 1, 1, 1, 0},
		{"two in one process, equal requests with one response id, one after another", 2, 1, 1, 1, 1, 1},
		{"two in one process, equal requests, 8 at a time (what a pair looks like)", 2, 1, 1, 8, 0, 0},
	} {
		random := rand.New(rand.NewPCG(3, 4))
		td := ptrace.NewTraces()
		for client := range load.clients {
			ss := process(td, "assistant", client%load.processes)
			ss.Scope().SetName(fmt.Sprintf("client-%d", client))
			for i := range n {
				// Each begins when one of those that run ends, 500 to 1500 ms after it began.
				start := i * 1000 / load.at
				if load.ms > 0 {
					start = 2*i*1500 + client*1500
				}
				span := request(ss, client, i)
				span.SetStartTimestamp(pcommon.Timestamp(1_700_000_000e9 + start*1e6 + random.IntN(1e6)))
				span.SetEndTimestamp(span.StartTimestamp() + pcommon.Timestamp(500e6+random.IntN(900e6)))
				span.Attributes().PutInt(mlattr.GenAIInputTokens, int64(1+random.IntN(load.sizes)))
				span.Attributes().PutInt(mlattr.GenAIOutputTokens, int64(1+random.IntN(load.sizes)))
				if load.ids > 0 {
					span.Attributes().PutStr(mlattr.GenAIResponseID, fmt.Sprintf("chatcmpl-%d", random.IntN(load.ids)))
				}
			}
		}
		requests := alone([]ptrace.Traces{td})
		slices.SortStableFunc(requests, byEnd)
		result, err := Process(context.Background(), requests, filepath.Join(t.TempDir(), "r"))
		require.NoError(t, err)
		mistaken := int64(load.clients*n) - Seen(&result).Requests
		if load.clients == load.processes || load.ms > 0 {
			assert.Zero(t, mistaken, load.name)
		}
		fmt.Fprintf(&table, "| %s | %d | %d |\n", load.name, load.clients*n, mistaken)
	}
	checkPage(t, "mistaken", table.String())
}

// process appends the scope of a process.
func process(td ptrace.Traces, service string, number int) ptrace.ScopeSpans {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	rs.Resource().Attributes().PutStr("service.instance.id", strconv.Itoa(number))
	return rs.ScopeSpans().AppendEmpty()
}

// request appends a request in a trace of its own.
func request(ss ptrace.ScopeSpans, client, number int) ptrace.Span {
	span := ss.Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{byte(client + 1), byte(number >> 8), byte(number)})
	span.SetSpanID(pcommon.SpanID{1})
	span.SetName("chat")
	span.Attributes().PutStr(mlattr.GenAIOperationName, mlattr.OperationChat)
	span.Attributes().PutStr(mlattr.GenAIRequestModel, "m")
	return span
}

// TestEqualResponseIDs has a server that states one response id for all answers, as
// mocks and caches do, or one of few, and that fails at times. Every request counts.
func TestEqualResponseIDs(t *testing.T) {
	const answers, failures = 101, 11
	for _, ids := range []int{1, 7} {
		td := ptrace.NewTraces()
		ss := process(td, "assistant", 0)
		ss.Scope().SetName("client")
		for i := range answers + failures {
			span := request(ss, 0, i)
			span.SetTraceID(pcommon.TraceID{1, byte(i / 10)}) // ten in a trace, eight at a time
			span.SetSpanID(pcommon.SpanID{1, byte(i)})
			span.SetStartTimestamp(pcommon.Timestamp(1_700_000_000e9 + i*100e6))
			span.SetEndTimestamp(span.StartTimestamp() + 800e6)
			if i%10 == 9 {
				span.Status().SetCode(ptrace.StatusCodeError)
				continue
			}
			span.Attributes().PutInt(mlattr.GenAIInputTokens, 10)
			span.Attributes().PutStr(mlattr.GenAIResponseID, fmt.Sprintf("chatcmpl-%d", i%ids))
		}
		for name, requests := range map[string][]ptrace.Traces{"together": {td}, "one at a time": alone([]ptrace.Traces{td})} {
			result, err := Process(context.Background(), requests, filepath.Join(t.TempDir(), "r"))
			require.NoError(t, err)
			want := Account{Requests: answers + failures, Errors: failures, Failures: failures, Input: 10 * answers}
			assert.Equal(t, want, Seen(&result), "%d ids, %s", ids, name)
		}
	}
}

// TestGatewayAndClient has a gateway that does not continue the traces of its
// clients. Both services count what they used, in any order, with the same
// response ids.
func TestGatewayAndClient(t *testing.T) {
	const n = 100
	td := ptrace.NewTraces()
	for i, service := range []string{"assistant", "gateway"} {
		ss := process(td, service, i)
		ss.Scope().SetName(service)
		for j := range n {
			span := request(ss, i, j)
			start := 1_700_000_000e9 + 1e9*j + 10e6*i
			span.SetStartTimestamp(pcommon.Timestamp(start))
			span.SetEndTimestamp(pcommon.Timestamp(start + 500e6 - 20e6*i))
			span.Attributes().PutInt(mlattr.GenAIInputTokens, 10)
			span.Attributes().PutStr(mlattr.GenAIResponseID, fmt.Sprintf("answer-%d", j))
		}
	}
	for name, order := range map[string]func(x, y ptrace.Traces) int{
		"the gateway first": byEnd, "the client first": func(x, y ptrace.Traces) int { return byEnd(y, x) },
	} {
		requests := alone([]ptrace.Traces{td})
		slices.SortStableFunc(requests, order)
		result, err := Process(context.Background(), requests, filepath.Join(t.TempDir(), "r"))
		require.NoError(t, err)
		assert.EqualValues(t, 2*n, Seen(&result).Requests, name)
		assert.EqualValues(t, 2*n*10, Seen(&result).Input, name)
	}
}
