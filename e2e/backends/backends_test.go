package backends

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/genai"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

var update = flag.Bool("update", false, "write the tables of docs/llm-backends.md")

// cost is what one request states that it cost, in US dollars.
const cost = 0.25

// client is a recording with what is true of it.
type client struct {
	name     string
	requests []ptrace.Traces
	// input and output are the tokens that were used, as far as the client reports them.
	input, output int64
	// embedded is the part of input that is of embeddings.
	embedded int64
	// asked are the requests to a model by the ids of their spans.
	asked map[string]request
	// sessions are by the ids of traces.
	sessions map[string]string
	traces   map[string]bool
}

type request struct {
	// models are what it calls its model: the one that it asked for and the one that
	// answered.
	models []string
	failed bool
}

// way is one way from the clients to the back ends.
type way struct {
	name string
	// collectors starts them and returns where they take OTLP over HTTP.
	collectors func(*testing.T, *group) []*harness.Collector
	// seen is what each back end shows at last, in their order.
	seen []*shown
}

// names are those of the back ends in the tables, in their order.
var names = []string{"Phoenix", "MLflow"}

// TestBackends sends what real clients sent to real back ends and compares what they
// show with the logs of the servers that the clients asked, and with the tables of
// docs/llm-backends.md.
func TestBackends(t *testing.T) {
	all := readClients(t)
	p, m := startPhoenix(t), startMLflow(t)
	config := func(name string) string { return harness.Path("distribution", "config", name) }
	both := func(g *group) []string {
		return []string{"PHOENIX_URL=" + p.url, "MLFLOW_URL=" + m.url, "MLFLOW_EXPERIMENT_ID=" + g.experiment}
	}
	ways := []*way{
		{name: "directly", collectors: func(t *testing.T, g *group) []*harness.Collector {
			return []*harness.Collector{harness.StartCollector(t, harness.CollectorOptions{
				Config: harness.Path("e2e", "backends", "testdata", "direct.yaml"), Env: both(g),
			})}
		}},
		{name: "`agent.yaml`", collectors: func(t *testing.T, g *group) []*harness.Collector {
			return []*harness.Collector{harness.StartCollector(t, harness.CollectorOptions{
				Config: config("agent.yaml"), Merged: []string{harness.Path("e2e", "backends", "testdata", "both.yaml")},
				Env: append(both(g), "TRACES_EXPORTER=both"),
			})}
		}},
		// Of Phoenix with the default, which removes text.
		{name: "`llm-backend.yaml`", collectors: func(t *testing.T, g *group) []*harness.Collector {
			started := make([]*harness.Collector, 0, len(names))
			for _, env := range [][]string{
				{"LLM_BACKEND=phoenix", "LLM_BACKEND_URL=" + p.url},
				{"LLM_BACKEND=mlflow", "LLM_BACKEND_URL=" + m.url, "MLFLOW_EXPERIMENT_ID=" + g.experiment, "LLM_BACKEND_PROCESSORS=[transform/llm, ml_guard/llm_out]"},
			} {
				started = append(started, harness.StartCollector(t, harness.CollectorOptions{
					Config: config("agent.yaml"), Merged: []string{config("llm-backend.yaml")}, Env: env,
				}))
			}
			return started
		}},
	}
	for i, w := range ways {
		g := &group{name: fmt.Sprint("way", i), experiment: m.newExperiment(t, w.name)}
		ids := make(map[string]bool)
		started := w.collectors(t, g)
		for _, c := range all {
			for _, td := range c.requests {
				td = changed(td, byte(i), g.project(c.name), ids)
				for _, collector := range started {
					require.NoError(t, harness.PostTraces(t.Context(), "http://"+collector.Address(t, "receivers::otlp::protocols::http")+"/v1/traces", td))
				}
			}
		}
		for _, collector := range started {
			// It sends what it has before it ends.
			require.Zero(t, collector.Stop(t))
			for _, entry := range harness.LogErrors(collector.Output()) {
				assert.True(t, harness.IsAbsentBackend(entry), entry)
			}
			assert.NotContains(t, collector.Output(), "failed to execute statement")
		}
		for _, b := range []backend{p, m} {
			w.seen = append(w.seen, original(awaitAll(t, b, g, ids), byte(i)))
		}
	}
	for _, c := range all {
		for b, counted := range []int64{c.input - c.embedded, c.input} {
			input, output := c.tokens(ways[len(ways)-1].seen[b])
			assert.Equal(t, []int64{counted, c.output}, []int64{input, output}, "%s of %s, with llm-backend.yaml", names[b], c.name)
		}
	}
	checkVersions(t)
	columns := func(of []*way) (columns []string) {
		for _, name := range names {
			for _, w := range of {
				columns = append(columns, name+", "+w.name)
			}
		}
		return columns
	}
	page := harness.Path("docs", "llm-backends.md")
	documents.CheckTable(t, page, "shown", tableOf(append([]string{""}, columns(ways)...), summary(all, ways)), *update)
	documents.CheckTable(t, page, "tokens", tableOf(append([]string{"client", "tokens"}, columns(ways[1:])...), differing(all, ways[1:])), *update)
}

// tableOf returns a table of Markdown.
func tableOf(head []string, rows [][]string) string {
	var b strings.Builder
	write := func(cells []string) {
		for _, cell := range cells {
			b.WriteString(strings.TrimRight("| "+cell, " ") + " ")
		}
		b.WriteString("|\n")
	}
	write(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		write(row)
	}
	return b.String()
}

// summary returns the rows of what is right, of all clients.
func summary(all []*client, ways []*way) (rows [][]string) {
	for _, row := range []struct {
		name string
		// count returns how many of how many are right for a client.
		count func(*client, *shown) (right, of int)
	}{
		{"clients with the right tokens", func(c *client, s *shown) (right, of int) {
			if c.input == 0 && c.output == 0 {
				return 0, 0
			}
			if input, output := c.tokens(s); input == c.input && output == c.output {
				right = 1
			}
			return right, 1
		}},
		{"the same, by adding up their traces", func(c *client, s *shown) (right, of int) {
			if c.input == 0 && c.output == 0 {
				return 0, 0
			}
			if input, output := c.ofTraces(s); input == c.input && output == c.output {
				right = 1
			}
			return right, 1
		}},
		{"requests that are of a model's kind", func(c *client, s *shown) (right, of int) {
			for id := range c.asked {
				of++
				if slices.Contains([]string{"llm", "embedding", "LLM", "CHAT_MODEL", "EMBEDDING"}, s.spans[id].kind) {
					right++
				}
			}
			return right, of
		}},
		{"requests with their model", func(c *client, s *shown) (right, of int) {
			for id, asked := range c.asked {
				if len(asked.models) == 0 {
					continue
				}
				of++
				if slices.Contains(asked.models, s.spans[id].model) {
					right++
				}
			}
			return right, of
		}},
		{"failed requests that are shown as failed", func(c *client, s *shown) (right, of int) {
			for id, asked := range c.asked {
				if !asked.failed {
					continue
				}
				of++
				if s.spans[id].failed {
					right++
				}
			}
			return right, of
		}},
		{"traces with their session", func(c *client, s *shown) (right, of int) {
			for id, session := range c.sessions {
				of++
				if s.sessions[id] == session {
					right++
				}
			}
			return right, of
		}},
		{"requests with the cost that they state", func(c *client, s *shown) (right, of int) {
			if c.name != "cost" {
				return 0, 0
			}
			for id := range c.traces {
				of++
				if s.costs[id] == cost {
					right++
				}
			}
			return right, of
		}},
	} {
		cells, total := []string{row.name}, -1
		for b := range names {
			for _, w := range ways {
				right, of := 0, 0
				for _, c := range all {
					r, o := row.count(c, w.seen[b])
					right, of = right+r, of+o
				}
				if total < 0 {
					total = of
					cells[0] = fmt.Sprintf("%s, of %d", row.name, of)
				}
				cell := strconv.Itoa(right)
				if of != total {
					cell = fmt.Sprintf("%d of %d", right, of)
				}
				cells = append(cells, cell)
			}
		}
		rows = append(rows, cells)
	}
	return rows
}

// differing returns a row for each client whose tokens are wrong somewhere, with the wrong
// ones.
func differing(all []*client, ways []*way) (rows [][]string) {
	for _, c := range all {
		row, wrong := []string{c.name, fmt.Sprintf("%d / %d", c.input, c.output)}, false
		for b := range names {
			for _, w := range ways {
				input, output := c.tokens(w.seen[b])
				if input == c.input && output == c.output {
					row = append(row, "")
					continue
				}
				wrong = true
				row = append(row, fmt.Sprintf("%d / %d", input, output))
			}
		}
		if wrong {
			rows = append(rows, row)
		}
	}
	return rows
}

// tokens returns the tokens that a back end shows of a client.
func (c *client) tokens(s *shown) (input, output int64) {
	if s.projects != nil {
		return s.projects[c.name][0], s.projects[c.name][1]
	}
	return c.ofTraces(s)
}

// ofTraces returns the sums of the tokens that a back end shows of each trace.
func (c *client) ofTraces(s *shown) (input, output int64) {
	for id := range c.traces {
		input, output = input+s.input[id], output+s.output[id]
	}
	return input, output
}

// readClients reads the recordings, and adds a client that states a cost.
func readClients(t *testing.T) (all []*client) {
	t.Helper()
	for _, folder := range []string{"recordings", "others"} {
		recordings, err := genai.ReadRecordings(harness.Path("e2e", "genai", folder))
		require.NoError(t, err)
		for i := range recordings {
			r := &recordings[i]
			apart(r)
			requests, err := r.Requests()
			require.NoError(t, err)
			c := clientOf(t, r.Client, requests)
			if folder == "recordings" {
				truth := genai.Truth(r)
				require.Equal(t, []int64{truth.Input, truth.Output}, []int64{c.input, c.output}, r.Client)
			}
			c.requests, err = r.Requests()
			require.NoError(t, err)
			all = append(all, c)
		}
	}
	priced := func() ptrace.Traces { return withCost(time.Now().Add(-time.Minute)) }
	c := clientOf(t, "cost", []ptrace.Traces{priced()})
	c.requests = []ptrace.Traces{priced()}
	return append(all, c)
}

// apart gives each recording response ids of its own: the servers of all counted from 1,
// and through one collector equal ids would be those of one request.
func apart(r *genai.Recording) {
	var pairs []string
	for _, call := range r.Served {
		if call.ID != "" {
			pairs = append(pairs, call.ID, call.ID+"-"+r.Client)
		}
	}
	replace := strings.NewReplacer(pairs...)
	for i, request := range r.Traces {
		r.Traces[i] = json.RawMessage(replace.Replace(string(request)))
	}
}

// clientOf returns what is true of the spans of a client.
func clientOf(t *testing.T, name string, requests []ptrace.Traces) *client {
	t.Helper()
	c := &client{name: name, asked: make(map[string]request), sessions: make(map[string]string), traces: make(map[string]bool)}
	result, err := genai.Process(context.Background(), requests, filepath.Join(t.TempDir(), "reproductions"))
	require.NoError(t, err)
	account := genai.Seen(&result)
	c.input, c.output = account.Input, account.Output
	genai.EachSpan(&result, func(span ptrace.Span, facts *vocabulary.Facts) {
		trace := span.TraceID().String()
		c.traces[trace] = true
		if session := facts.Text(mlattr.SessionID); session != "" {
			c.sessions[trace] = session
		}
		var fact spanfact.Fact
		fact.Read(facts)
		if !fact.Request(table.NoEvent) {
			return
		}
		if fact.GenAIOperation == mlattr.OperationEmbeddings {
			c.embedded += fact.Input
		}
		asked := request{failed: span.Status().Code() == ptrace.StatusCodeError || facts.Text(mlattr.ErrorType) != ""}
		for _, model := range []string{fact.Requested, fact.Answered} {
			if model != "" {
				asked.models = append(asked.models, model)
			}
		}
		c.asked[span.SpanID().String()] = asked
	})
	return c
}

// withCost returns a request that states what it cost, as OpenRouter does.
func withCost(at time.Time) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cost")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{0xc0, 1})
	span.SetSpanID(pcommon.SpanID{0xc0, 2})
	span.SetName("chat tiny-1")
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Second)))
	attrs := span.Attributes()
	attrs.PutStr("gen_ai.operation.name", "chat")
	attrs.PutStr("gen_ai.request.model", "tiny-1")
	attrs.PutInt("gen_ai.usage.input_tokens", 10)
	attrs.PutInt("gen_ai.usage.output_tokens", 12)
	attrs.PutDouble("gen_ai.usage.cost", cost)
	return td
}

// changed returns spans with ids of their own, because a back end stores an id once, in
// a project of their own in Phoenix. It adds the ids to a set.
func changed(td ptrace.Traces, mask byte, project string, ids map[string]bool) ptrace.Traces {
	own := ptrace.NewTraces()
	td.CopyTo(own)
	for _, rs := range own.ResourceSpans().All() {
		rs.Resource().Attributes().PutStr("openinference.project.name", project)
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				trace, id, parent := span.TraceID(), span.SpanID(), span.ParentSpanID()
				trace[0] ^= mask
				id[0] ^= mask
				span.SetTraceID(trace)
				span.SetSpanID(id)
				if !parent.IsEmpty() {
					parent[0] ^= mask
					span.SetParentSpanID(parent)
				}
				ids[id.String()] = true
			}
		}
	}
	return own
}

// original returns what is shown by the recorded ids.
func original(s *shown, mask byte) *shown {
	return &shown{by(s.spans, mask), by(s.sessions, mask), by(s.input, mask), by(s.output, mask), by(s.costs, mask), s.projects}
}

func by[V any](values map[string]V, mask byte) map[string]V {
	all := make(map[string]V, len(values))
	for id, value := range values {
		var first byte
		if _, err := fmt.Sscanf(id[:2], "%02x", &first); err != nil {
			panic(err) // ids are in hexadecimal digits
		}
		all[fmt.Sprintf("%02x", first^mask)+id[2:]] = value
	}
	return all
}

// checkVersions expects the page to name the versions that were asked.
func checkVersions(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(harness.Path("docs", "llm-backends.md"))
	require.NoError(t, err)
	for _, name := range names {
		pinned, err := os.ReadFile(filepath.Join(strings.ToLower(name), "requirements.in"))
		require.NoError(t, err)
		_, version, found := strings.Cut(string(pinned), "==")
		require.True(t, found)
		assert.Contains(t, string(page), name+" "+strings.TrimSpace(version))
	}
}
