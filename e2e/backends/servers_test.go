package backends

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// startTimeout is how long a server may take: it imports many packages and makes the
// tables of its database first.
const startTimeout = 5 * time.Minute

// shown is what a back end shows.
type shown struct {
	// spans are by their ids.
	spans map[string]shownSpan
	// sessions are by the ids of traces.
	sessions map[string]string
	// input and output are the tokens by trace, costs the sum of its costs, in US dollars.
	input, output map[string]int64
	costs         map[string]float64
	// projects has the input and output of each client, where it has a project of its own.
	projects map[string][2]int64
}

type shownSpan struct {
	kind, model string
	failed      bool
}

func newShown() *shown {
	return &shown{map[string]shownSpan{}, map[string]string{}, map[string]int64{}, map[string]int64{}, map[string]float64{}, nil}
}

// backend is a running back end.
type backend interface {
	// ask returns all that it shows of a group.
	ask(ctx context.Context, g *group) (*shown, error)
}

// group is what is sent in one way: Phoenix has a project for each of its clients, MLflow
// an experiment for all.
type group struct{ name, experiment string }

// project returns the name of a client's project.
func (g *group) project(client string) string { return g.name + "/" + client }

// trouble finds lines in the output of a server that say what it could not do.
var trouble = regexp.MustCompile(`ERROR|Traceback|Error:|failed|HTTP/1[.]1" [45]`)

// start starts a server of the virtual environment of that name, on the loopback
// interface, and waits until it answers.
func start(t *testing.T, name, program, health string, arguments, env []string) {
	t.Helper()
	venv := harness.Path(".cache", "venvs", name)
	if _, err := os.Stat(filepath.Join(venv, "stamp")); err != nil {
		t.Fatalf("%s has no virtual environment; make it with: make e2e-backends", name)
	}
	home := t.TempDir()
	server := harness.Start(t, harness.Command{
		Name: name, Path: filepath.Join(venv, "bin", program), Args: arguments, Dir: home,
		// Nothing of this machine's user, and no statistics for the maker.
		Env: append([]string{"HOME=" + home, "DO_NOT_TRACK=true", "PYTHONWARNINGS=ignore"}, env...),
	})
	// A kill would leave the process that MLflow starts.
	t.Cleanup(func() {
		if server.Running() {
			server.Stop(t)
		}
		// Whether it has lost spans: the end of its output has only requests.
		for line := range strings.Lines(server.Output()) {
			if t.Failed() && trouble.MatchString(line) {
				t.Logf("%s: %.500s", name, line)
			}
		}
	})
	require.Eventually(t, func() bool {
		_, err := harness.Get(t.Context(), health)
		return err == nil || !server.Running()
	}, startTimeout, harness.ArrivalPoll, "%s does not answer", name)
	require.True(t, server.Running(), "%s ended while it started", name)
}

type mlflow struct{ url string }

func startMLflow(t *testing.T) mlflow {
	t.Helper()
	port := harness.FreePort(t)
	m := mlflow{fmt.Sprintf("http://127.0.0.1:%d", port)}
	start(t, "mlflow", "mlflow", m.url+"/health", []string{
		"server", "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--workers", "1",
		"--backend-store-uri", "sqlite:///" + filepath.Join(t.TempDir(), "mlflow.db"), "--default-artifact-root", t.TempDir(),
	}, []string{"MLFLOW_DISABLE_TELEMETRY=true", "MLFLOW_MODEL_CATALOG_URI=", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false"})
	return m
}

// newExperiment returns the id of a new experiment.
func (m mlflow) newExperiment(t *testing.T, name string) string {
	t.Helper()
	var answer struct {
		ID string `json:"experiment_id"`
	}
	require.NoError(t, call(t.Context(), m.url+"/api/2.0/mlflow/experiments/create", map[string]any{"name": name}, &answer))
	return answer.ID
}

// mlflowTrace is a trace as the search returns it.
type mlflowTrace struct {
	ID       string            `json:"trace_id"`
	Metadata map[string]string `json:"trace_metadata"`
}

// mlflowSpan is a span as MLflow returns it, with ids in base64.
type mlflowSpan struct {
	SpanID     string `json:"span_id"`
	Attributes []struct {
		Key   string `json:"key"`
		Value struct {
			String string `json:"string_value"`
		} `json:"value"`
	} `json:"attributes"`
	Status struct {
		Code string `json:"code"`
	} `json:"status"`
}

func (m mlflow) ask(ctx context.Context, g *group) (*shown, error) {
	all := newShown()
	var ids []string
	for page := ""; ; {
		question := map[string]any{"max_results": 200, "locations": []any{
			map[string]any{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": map[string]any{"experiment_id": g.experiment}},
		}}
		if page != "" {
			question["page_token"] = page
		}
		var answer struct {
			Traces []mlflowTrace `json:"traces"`
			Next   string        `json:"next_page_token"`
		}
		if err := call(ctx, m.url+"/api/3.0/mlflow/traces/search", question, &answer); err != nil {
			return nil, err
		}
		for _, trace := range answer.Traces {
			ids = append(ids, trace.ID)
			if err := trace.read(all); err != nil {
				return nil, err
			}
		}
		if page = answer.Next; page == "" {
			break
		}
	}
	for some := range slices.Chunk(ids, 50) {
		var answer struct {
			Traces []struct {
				Spans []mlflowSpan `json:"spans"`
			} `json:"traces"`
		}
		text, err := harness.Get(ctx, m.url+"/api/3.0/mlflow/traces/batchGet?"+url.Values{"trace_ids": some}.Encode())
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			return nil, err
		}
		for _, trace := range answer.Traces {
			for i := range trace.Spans {
				if err := trace.Spans[i].read(all); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// read adds what MLflow shows of the whole trace.
func (t *mlflowTrace) read(all *shown) error {
	id := strings.TrimPrefix(t.ID, "tr-")
	var usage struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	if text := t.Metadata["mlflow.trace.tokenUsage"]; text != "" {
		if err := json.Unmarshal([]byte(text), &usage); err != nil {
			return err
		}
	}
	all.input[id], all.output[id] = usage.Input, usage.Output
	var cost struct {
		Total float64 `json:"total_cost"`
	}
	if text := t.Metadata["mlflow.trace.cost"]; text != "" {
		if err := json.Unmarshal([]byte(text), &cost); err != nil {
			return err
		}
	}
	all.costs[id] = cost.Total
	if session := t.Metadata["mlflow.trace.session"]; session != "" {
		all.sessions[id] = session
	}
	return nil
}

func (s *mlflowSpan) read(all *shown) error {
	id, err := base64.StdEncoding.DecodeString(s.SpanID)
	if err != nil {
		return err
	}
	span := shownSpan{failed: s.Status.Code == "STATUS_CODE_ERROR"}
	for _, attribute := range s.Attributes {
		switch attribute.Key {
		case "mlflow.spanType":
			span.kind = attribute.Value.String
		case "mlflow.llm.model":
			span.model = attribute.Value.String
		}
	}
	all.spans[hex.EncodeToString(id)] = span
	return nil
}

type phoenix struct{ url string }

// startPhoenix starts Phoenix. Its port for OTLP over gRPC is open on all addresses,
// which it does not let one change; nothing is sent there.
func startPhoenix(t *testing.T) phoenix {
	t.Helper()
	port := harness.FreePort(t)
	p := phoenix{fmt.Sprintf("http://127.0.0.1:%d", port)}
	start(t, "phoenix", "phoenix", p.url+"/healthz", []string{"serve"}, []string{
		"PHOENIX_HOST=127.0.0.1", fmt.Sprintf("PHOENIX_PORT=%d", port), fmt.Sprintf("PHOENIX_GRPC_PORT=%d", harness.FreePort(t)),
		"PHOENIX_WORKING_DIR=" + t.TempDir(), "PHOENIX_TELEMETRY_ENABLED=false", "PHOENIX_ALLOW_EXTERNAL_RESOURCES=false",
	})
	return p
}

// everything asks Phoenix what its page of a project shows.
const everything = `{ projects(first: 1000) { edges { node {
	name tokenCountPrompt tokenCountCompletion spans(first: 1000) { edges { node {
	spanId spanKind statusCode attributes tokenCountPrompt tokenCountCompletion
	costSummary { total { cost } } trace { traceId session { sessionId } } } } } } } } }`

// phoenixSpan is a span as Phoenix returns it.
type phoenixSpan struct {
	SpanID     string `json:"spanId"`
	Kind       string `json:"spanKind"`
	Status     string `json:"statusCode"`
	Attributes string `json:"attributes"`
	Prompt     *int64 `json:"tokenCountPrompt"`
	Completion *int64 `json:"tokenCountCompletion"`
	Cost       *struct {
		Total struct {
			Cost *float64 `json:"cost"`
		} `json:"total"`
	} `json:"costSummary"`
	Trace struct {
		ID      string `json:"traceId"`
		Session *struct {
			ID string `json:"sessionId"`
		} `json:"session"`
	} `json:"trace"`
}

func (p phoenix) ask(ctx context.Context, g *group) (*shown, error) {
	var answer struct {
		Data struct {
			Projects edges[struct {
				Name       string             `json:"name"`
				Prompt     float64            `json:"tokenCountPrompt"`
				Completion float64            `json:"tokenCountCompletion"`
				Spans      edges[phoenixSpan] `json:"spans"`
			}] `json:"projects"`
		} `json:"data"`
	}
	if err := call(ctx, p.url+"/graphql", map[string]any{"query": everything}, &answer); err != nil {
		return nil, err
	}
	all := newShown()
	all.projects = make(map[string][2]int64)
	for _, project := range answer.Data.Projects.Edges {
		client, ours := strings.CutPrefix(project.Node.Name, g.project(""))
		if !ours {
			continue
		}
		all.projects[client] = [2]int64{int64(project.Node.Prompt), int64(project.Node.Completion)}
		for i := range project.Node.Spans.Edges {
			if err := project.Node.Spans.Edges[i].Node.read(all); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// edges are how GraphQL returns a list.
type edges[T any] struct {
	Edges []struct {
		Node T `json:"node"`
	} `json:"edges"`
}

func (s *phoenixSpan) read(all *shown) error {
	type named struct {
		Name string `json:"model_name"`
	}
	var attributes struct{ LLM, Embedding named }
	if err := json.Unmarshal([]byte(s.Attributes), &attributes); err != nil {
		return err
	}
	all.spans[s.SpanID] = shownSpan{
		kind: s.Kind, failed: s.Status == "ERROR",
		model: attributes.LLM.Name + attributes.Embedding.Name,
	}
	// Its list of traces has the sums of their spans.
	if s.Prompt != nil {
		all.input[s.Trace.ID] += *s.Prompt
	}
	if s.Completion != nil {
		all.output[s.Trace.ID] += *s.Completion
	}
	if s.Cost != nil && s.Cost.Total.Cost != nil {
		all.costs[s.Trace.ID] += *s.Cost.Total.Cost
	}
	if s.Trace.Session != nil {
		all.sessions[s.Trace.ID] = s.Trace.Session.ID
	}
	return nil
}

// call posts a question as JSON and reads the answer.
func call(ctx context.Context, address string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", address, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// awaitAll asks until the back end has all spans.
func awaitAll(t *testing.T, b backend, g *group, ids map[string]bool) (all *shown) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		all, err = b.ask(t.Context(), g)
		if !assert.NoError(c, err) {
			return
		}
		missing := 0
		for id := range ids {
			if _, arrived := all.spans[id]; !arrived {
				missing++
			}
		}
		assert.Zero(c, missing, "of %d spans are missing in %T of %s", len(ids), b, g.name)
	}, harness.ArrivalTimeout, time.Second)
	return all
}
