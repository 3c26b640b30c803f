package genai

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
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
	for _, order := range []struct {
		name string
		sort func([]ptrace.Traces)
	}{
		{"as they end, one at a time", func(all []ptrace.Traces) { slices.SortStableFunc(all, byEnd) }},
		{"in the reverse order, one at a time", func(all []ptrace.Traces) {
			slices.SortStableFunc(all, byEnd)
			slices.Reverse(all)
		}},
		{"in any order, one at a time", func(all []ptrace.Traces) {
			random := rand.New(rand.NewPCG(1, 2))
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}},
		{"as recorded", nil},
	} {
		served, counted := int64(0), int64(0)
		for _, r := range read(t) {
			if !slices.Contains(paired, r.Client) {
				continue
			}
			requests, err := r.Requests()
			require.NoError(t, err)
			if order.sort != nil {
				requests = alone(requests)
				order.sort(requests)
			}
			result, err := Process(context.Background(), requests, filepath.Join(t.TempDir(), "r"))
			require.NoError(t, err)
			of, by := truth(&r), seen(&result)
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
		sizes, at, ms      int
	}{
		{"one instrumentation, equal requests, one after another", 1, 1, 1, 1, 0},
		{"one instrumentation, equal requests, 8 at a time", 1, 1, 1, 8, 0},
		{"two in two processes, equal requests, 8 at a time", 2, 2, 1, 8, 0},
		{"eight in eight processes, equal requests, 8 at a time", 8, 8, 1, 8, 0},
		{"two in one process, input and output of up to 1,000 tokens, 8 at a time", 2, 1, 1000, 8, 0},
		{"two in one process, input and output of up to 30 tokens, 8 at a time", 2, 1, 30, 8, 0},
		{"two in one process, equal requests, one after another", 2, 1, 1, 1, 1},
		{"two in one process, equal requests, 8 at a time (what a pair looks like)", 2, 1, 1, 8, 0},
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
			}
		}
		requests := alone([]ptrace.Traces{td})
		slices.SortStableFunc(requests, byEnd)
		result, err := Process(context.Background(), requests, filepath.Join(t.TempDir(), "r"))
		require.NoError(t, err)
		mistaken := int64(load.clients*n) - seen(&result).Requests
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
	rs.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint(number))
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
		assert.EqualValues(t, 2*n, seen(&result).Requests, name)
		assert.EqualValues(t, 2*n*10, seen(&result).Input, name)
	}
}
