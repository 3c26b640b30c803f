package genai

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var (
	update     = flag.Bool("update", false, "write the tables of docs/evidence/clients.md")
	recordings = flag.String("recordings", "recordings", "folder with the recordings, by default those of the repository")
)

// mostTokensPerSecond is above every rate of a whole answer: the server writes 12
// tokens, the first after 50 ms.
const mostTokensPerSecond = 12 / firstTokenSeconds

// firstTokenSeconds is how long the server waits before the first token.
const firstTokenSeconds = 0.05

var (
	// notSent has the clients that say nothing of the first token.
	notSent = []string{
		"agent_framework", "agno", "google_adk", "haystack", "langchain_openai_v2", "langsmith_langchain", "langsmith_openai", "litellm_v1",
		"litellm_v1_request_span", "logfire_openai_agents",
		"logfire_openai", "openai_agents", "openai_v2", "openinference_langchain", "semantic_kernel", "smolagents",
	}
	// onSpansAbove have it on spans that do not count.
	onSpansAbove = []string{"pydantic_ai_openai_v2"}
	// tooShort has those that report less than the server waited.
	tooShort = map[string]string{"openlit_openai": "without the wait for the headers"}
)

// otherModels has the requests by model of clients that state another one than was
// asked: with the provider, the one that the program set and replaced, or, of a failed
// request, none where it can be read.
var otherModels = map[string]map[string]int64{
	"google_adk":                       {"openai/tiny-1": 4, "openai/tiny-broken": 1},
	"haystack":                         {"tiny-1-2026-01-15": 4, "": 1},
	"mlflow_openai":                    {"tiny-1-2026-01-15": 4, "tiny-broken": 1},
	"openinference_llama_index":        {"gpt-4o": 5},
	"openinference_llama_index_agents": {"gpt-4o": 5},
	"smolagents":                       {"tiny-1": 6, "": 1},
}

func readRecordings(t *testing.T) []Recording {
	t.Helper()
	all, err := ReadRecordings(*recordings)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// TestClients compares what the components make of what real clients sent with
// the log of the server that they asked, and with the table of docs/evidence/clients.md.
func TestClients(t *testing.T) {
	table := "| client | requests | failed | input | output | first token | keys | reproduction |\n|---|---|---|---|---|---|---|---|\n"
	for _, r := range readRecordings(t) {
		t.Run(r.Client, func(t *testing.T) {
			requests, err := r.Requests()
			require.NoError(t, err)
			folder := filepath.Join(t.TempDir(), "reproductions")
			result, err := Process(context.Background(), requests, folder)
			require.NoError(t, err)
			want, got := Truth(&r), Seen(&result)
			first := checkFirstTokens(t, r.Client, &result, want.FirstTokens)
			again, err := reproduced(folder, "")
			require.NoError(t, err)

			for _, rate := range rates(&result) {
				assert.Less(t, rate, mostTokensPerSecond)
			}

			counts := func(a Account) Account { a.FirstTokens = 0; return a }
			assert.Equal(t, counts(want), counts(got))
			models := requested(&r)
			if stated, known := otherModels[r.Client]; known {
				assert.NotEqual(t, models, stated)
				models = stated
			}
			assert.Equal(t, models, counted(&result), "failures are of the model that was asked, as answers are")
			yes := map[bool]string{true: "yes", false: "not recorded"}
			recorded, err := r.Requests()
			require.NoError(t, err)
			asked := func(s *sent) bool { return s.failed() && strings.Contains(s.text, question) }
			assert.Equal(t, again, slices.ContainsFunc(readSpans(recorded), asked), "it is sent again if a span that failed has the question")
			table += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Client,
				both(want.Requests, got.Requests), both(want.Errors, got.Errors),
				both(want.Input, got.Input), both(want.Output, got.Output), first, strings.Join(keys(&result), ", "), yes[again])
		})
	}
	if *recordings == "recordings" {
		checkPage(t, "clients", table)
	}
}

// both is a cell: a number, or two of which the first is what the server has.
func both(want, got int64) string {
	if want == got {
		return strconv.FormatInt(want, 10)
	}
	return fmt.Sprintf("%d / %d", want, got)
}

// checkFirstTokens returns what the table says of the first tokens.
func checkFirstTokens(t *testing.T, client string, result *Result, want int) string {
	t.Helper()
	times := firstTokens(result, true)
	text := both(int64(want), int64(len(times)))
	switch {
	case slices.Contains(notSent, client):
		assert.Empty(t, times, "it is sent: remove the exception")
		return "not sent"
	case slices.Contains(onSpansAbove, client):
		assert.Empty(t, times, "it is on the spans that count: remove the exception")
		assert.Len(t, firstTokens(result, false), want)
		return text + ", on the spans above"
	}
	assert.Len(t, times, want)
	if why, known := tooShort[client]; known {
		assert.Less(t, slices.Min(times), firstTokenSeconds, "it is right: remove the exception")
		return text + ", " + why
	}
	for _, seconds := range times {
		assert.InDelta(t, firstTokenSeconds+2, seconds, 2, "in seconds, and not before the server sent it")
	}
	return text
}

// checkPage compares a table of docs/evidence/clients.md, or writes it.
func checkPage(t *testing.T, name, table string) {
	t.Helper()
	documents.CheckTable(t, harness.Path("docs", "evidence", "clients.md"), name, table, *update)
}
