package genai

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// unlike has the recordings of which something else is counted than what can be known,
// and why.
var unlike = map[string]struct {
	account Account
	why     string
}{
	"agno_traceloop":      {Account{Requests: 5, Input: 768, Output: 84}, "only agents tell, with the sum of their requests, if they did not stream"},
	"any_agent_tinyagent": {Account{Requests: 5, Failures: 2, Input: 605, Output: 65}, "of a failed request only the agent tells"},
	"autogen_core_otel":   {Account{Failures: 2}, "no span of a request; the agents that failed count"},
	"ax_js":               {Account{Requests: 12, Errors: 3, Failures: 3, Input: 1166, Output: 131}, "the tokens of caches are only in the total"},
	"bedrock_botocore": {Account{Requests: 9, Errors: 4, Failures: 4, Input: 525, Output: 65},
		"the tokens of caches are apart, and those of `InvokeModel` are not sent"},
	"bedrock_traceloop":       {Account{Requests: 6, Errors: 2, Failures: 2, Input: 35, Output: 48}, "the tokens of caches are apart, and those of `InvokeModel` are not sent"},
	"braintrust_otel":         {Account{Requests: 1}, "one span, of the program's own, that says it is a chat"},
	"cohere_traceloop":        {Account{Requests: 12, Errors: 2, Failures: 2, Input: 471, Output: 81}, "the billed tokens are sent"},
	"fastmcp_oi":              {Account{Failures: 3}, "three tools that failed"},
	"go_openai_http":          {Account{Requests: 5, Errors: 3, Failures: 3}, "only its HTTP client tells, and each attempt counts"},
	"langchain4j_javaagent":   {Account{Requests: 13, Errors: 4, Failures: 4}, "only its HTTP client tells, and each attempt counts"},
	"langtrace":               {Account{Requests: 24, Errors: 7, Failures: 7, Input: 3017, Output: 380}, "the tokens of caches are left out"},
	"openai_agents_traceloop": {Account{Requests: 30, Errors: 8, Failures: 10, Input: 1688, Output: 194}, "two tools failed, too"},
	"openlit_anthropic":       {Account{Requests: 12, Errors: 3, Failures: 3, Input: 1308, Output: 153}, "a stream's cached tokens are left out"},
	"own_span_httpx":          {Account{Requests: 6, Errors: 2, Failures: 2, Input: 491, Output: 53}, "of a failure only the HTTP client tells"},
	"rust_rig":                {Account{Requests: 11, Input: 1082, Output: 126}, "a stream's cached tokens are left out"},
}

// noScript has the recordings with failed requests whose messages no script has, and why.
var noScript = map[string]string{
	"adk_openinference":      "not on the span of the request",
	"anthropic_contrib":      "not recorded",
	"ax_js":                  "not recorded",
	"azure_inference":        "not recorded",
	"dspy_contrib":           "not recorded",
	"langchain4j_javaagent":  "not recorded",
	"langchain_contrib":      "not recorded",
	"langsmith_langgraph":    "not on the span of the request",
	"openai_contrib_httpx":   "not recorded",
	"openlit_anthropic":      "no attribute on the span of a failed request",
	"own_span_httpx":         "not recorded",
	"bedrock_traceloop":      "not on the span of a failed request",
	"litellm_openlit":        "no attribute on the span of a failed request",
	"go_openai_http":         "not recorded",
	"js_mastra":              "not on the span of the request",
	"semantic_kernel_agents": "not recorded",
	"spring_ai":              "not recorded",
}

// generalOnly are the vocabularies without any client's own: the names of the conventions.
var generalOnly = []string{"genai"}

// needsItsTable has the clients of which the general rules alone do not count all.
var needsItsTable = []string{"bedrock_botocore", "bedrock_traceloop", "genkit_js", "go_genkit", "logfire_anthropic", "logfire_openai"}

// TestOtherClients compares what the components make of clients that nobody had seen with
// what anybody could know from what they sent.
func TestOtherClients(t *testing.T) {
	table := "| client | requests | failed | input | output | reproduction |\n|---|---|---|---|---|---|\n"
	others, err := ReadRecordings("others")
	require.NoError(t, err)
	require.Len(t, others, 56)
	for _, r := range others {
		t.Run(r.Client, func(t *testing.T) {
			requests, err := r.Requests()
			require.NoError(t, err)
			served, sendable := Truth(&r), Sendable(&r, requests)
			folder := filepath.Join(t.TempDir(), "reproductions")
			records, err := r.Records()
			require.NoError(t, err)
			result, err := ProcessBeside(context.Background(), requests, records, folder, func(ptrace.Traces) {})
			require.NoError(t, err)
			script, err := reproduced(folder, "repro.py")
			require.NoError(t, err)
			why, known := noScript[r.Client]
			assert.Equal(t, Seen(&result).Errors > 0 && !known, script)
			got := Seen(&result)
			got.FirstTokens = 0
			want, note := sendable, ""
			if other, known := unlike[r.Client]; known {
				assert.NotEqual(t, sendable, got, "it is as it can be known: remove the exception")
				want, note = other.account, " ("+other.why+")"
			}
			assert.Equal(t, want, got)
			cell := func(served, sendable, seen int64) string {
				if served == sendable && sendable == seen {
					return strconv.FormatInt(seen, 10)
				}
				if sendable == seen {
					return fmt.Sprintf("%d / %d", served, seen)
				}
				return fmt.Sprintf("%d / %d / %d", served, sendable, seen)
			}
			if script {
				why = "yes"
			}
			table += fmt.Sprintf("| %s%s | %s | %s | %s | %s | %s |\n", r.Client, note, cell(served.Requests, sendable.Requests, got.Requests),
				cell(served.Errors, sendable.Errors, got.Errors), cell(served.Input, sendable.Input, got.Input), cell(served.Output, sendable.Output, got.Output), why)

			// Each span alone, as it ended.
			apart, err := r.Requests()
			require.NoError(t, err)
			apart = alone(apart)
			slices.SortStableFunc(apart, byEnd)
			result, err = Process(context.Background(), apart, filepath.Join(t.TempDir(), "r"))
			require.NoError(t, err)
			got = Seen(&result)
			got.FirstTokens = 0
			assert.Equal(t, want, got, "each span alone")
		})
	}
	checkPage(t, "others", table)
}

// TestGeneralRulesAlone measures the rules for any client without the tables of clients,
// on all recordings.
func TestGeneralRulesAlone(t *testing.T) {
	others, err := ReadRecordings("others")
	require.NoError(t, err)
	all, right := slices.Concat(readRecordings(t), others), 0
	for _, r := range all {
		accounts := make(map[string]Account)
		for name, vocabularies := range map[string][]string{"tables": nil, "general": generalOnly} {
			requests, err := r.Requests()
			require.NoError(t, err)
			result, err := Process(context.Background(), requests, filepath.Join(t.TempDir(), "r"), vocabularies...)
			require.NoError(t, err)
			a := Seen(&result)
			a.FirstTokens = 0
			accounts[name] = a
		}
		if slices.Contains(needsItsTable, r.Client) {
			assert.NotEqual(t, accounts["tables"], accounts["general"], "%s: the general rules suffice: remove the exception", r.Client)
			continue
		}
		assert.Equal(t, accounts["tables"], accounts["general"], r.Client)
		right++
	}
	checkPage(t, "general", fmt.Sprintf("Without any client's table %d of %d are counted the same. The tables of these are needed: %s.\n",
		right, len(all), strings.Join(needsItsTable, ", ")))
}
