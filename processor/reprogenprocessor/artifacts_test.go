package reprogenprocessor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// failedCall describes an error span as a test needs it.
type failedCall struct {
	service   string
	name      string
	payload   string
	errorType string
	message   string
	stack     string
	attrs     map[string]any
	trace     byte
	span      byte
	parent    byte
}

func (c failedCall) appendTo(td ptrace.Traces) ptrace.Span {
	rs := td.ResourceSpans().AppendEmpty()
	service := c.service
	if service == "" {
		service = "worker"
	}
	rs.Resource().Attributes().PutStr("service.name", service)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName(c.name)
	span.SetTraceID(pcommon.TraceID{15: max(c.trace, 1)})
	span.SetSpanID(pcommon.SpanID{7: max(c.span, 1)})
	if c.parent != 0 {
		span.SetParentSpanID(pcommon.SpanID{7: c.parent})
	}
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_700_000_000, 0)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_700_000_001, 0)))
	span.Status().SetCode(ptrace.StatusCodeError)
	if c.payload != "" {
		span.Attributes().PutStr("repro.payload", c.payload)
	}
	for k, v := range c.attrs {
		if err := span.Attributes().PutEmpty(k).FromRaw(v); err != nil {
			panic(err)
		}
	}
	if c.errorType != "" || c.message != "" || c.stack != "" {
		event := span.Events().AppendEmpty()
		event.SetName("exception")
		event.Attributes().PutStr("exception.type", c.errorType)
		event.Attributes().PutStr("exception.message", c.message)
		event.Attributes().PutStr("exception.stacktrace", c.stack)
	}
	return span
}

// variant makes of equal calls unlike ones: with the framework of version n.
func (c failedCall) variant(n int) failedCall {
	c.attrs = maps.Clone(c.attrs)
	if c.attrs == nil {
		c.attrs = map[string]any{}
	}
	c.attrs["repro.packages"] = map[string]any{"torch": fmt.Sprintf("2.%d", n)}
	return c
}

func (c failedCall) traces() ptrace.Traces {
	td := ptrace.NewTraces()
	c.appendTo(td)
	return td
}

// testConfig writes into a folder of the test, at once, and limits nothing but
// counts.
func testConfig(t testing.TB, allowed ...string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory = filepath.Join(t.TempDir(), "reproductions")
	cfg.AllowedModules = allowed
	cfg.SiblingWait = 0
	cfg.MinFreeBytes = 0
	cfg.ArtifactsPerMinute, cfg.limits.burst = 60_000, 60_000
	return cfg
}

func startTraces(t testing.TB, cfg *Config, set processor.Settings) (processor.Traces, *consumertest.TracesSink) {
	require.NoError(t, cfg.Validate())
	sink := &consumertest.TracesSink{}
	p, err := NewFactory().CreateTraces(context.Background(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	return p, sink
}

// produce sends batches through a processor and stops it, so that all is on
// disk.
func produce(t testing.TB, cfg *Config, batches ...ptrace.Traces) *consumertest.TracesSink {
	p, sink := startTraces(t, cfg, processortest.NewNopSettings(metadata.Type))
	for _, td := range batches {
		require.NoError(t, p.ConsumeTraces(context.Background(), td))
	}
	require.NoError(t, p.Shutdown(context.Background()))
	return sink
}

// artifacts returns the folders of all artifacts.
func artifacts(t testing.TB, cfg *Config) []string {
	found, err := filepath.Glob(filepath.Join(cfg.Directory, "*", "*", "repro.py"))
	require.NoError(t, err)
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

func onlyArtifact(t testing.TB, cfg *Config) string {
	found := artifacts(t, cfg)
	require.Len(t, found, 1)
	return found[0]
}

// result is what a script said.
type result struct {
	Exit    int
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Data    string `json:"data"`
	Stdout  string
	Stderr  string
}

// python is an interpreter that scripts are tried with. Without site it starts
// three times faster: what a machine's packages add to each start is no part of
// what is tried.
type python struct {
	path string
	site bool
}

// pythons returns python3, which must be there, and every other supported
// version on the PATH, each version once.
func pythons(t testing.TB) []python {
	found := interpreters()
	require.NotEmpty(t, found, "python3 is needed: the scripts are run, not only written")
	return found
}

var interpreters = sync.OnceValue(func() []python {
	var out []python
	seen := make(map[string]bool)
	for _, name := range []string{"python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// What is on the PATH may be a shim that takes longer than Python.
		told, err := exec.Command(path, "-c", "import sys; print(sys.executable); print(sys.version)").Output()
		executable, version, _ := strings.Cut(string(told), "\n")
		if err != nil || seen[version] {
			continue // python3 is one of the others
		}
		seen[version] = true
		out = append(out, python{path: executable})
	}
	return out
})

// inTurn returns the first interpreter and one of the others, another one for
// each n: where many cases differ in their data alone, each runs twice, and
// every version runs some.
func inTurn(found []python, n int) []python {
	if len(found) < 2 {
		return found
	}
	return []python{found[0], found[1+n%(len(found)-1)]}
}

// run runs an artifact's script with --json from a folder that is not its own, in
// a process that is forked where that makes no difference.
func (p python) run(t testing.TB, artifact string, env []string, args ...string) result {
	t.Helper()
	if forks(env, args) {
		return forkerOf(t, p).run(t, artifact, env, args...)
	}
	return p.start(t, artifact, env, args...)
}

// start is run in a process that Python starts.
func (p python) start(t testing.TB, artifact string, env []string, args ...string) result {
	t.Helper()
	args = append([]string{filepath.Join(artifact, "repro.py"), "--json"}, args...)
	if !p.site && forks(env, nil) {
		args = append([]string{"-S"}, args...)
	}
	cmd := exec.Command(p.path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	r := result{Stdout: stdout.String(), Stderr: stderr.String()}
	if stdout.Len() > 0 {
		require.NoError(t, json.Unmarshal([]byte(stdout.String()), &r), "%s\n%s", stdout.String(), stderr.String())
	}
	r.Exit = cmd.ProcessState.ExitCode()
	return r
}

func call(module, function, args, kwargs string) string {
	return `{"protocol_version":1,"min_supported_version":1,"library":"` + strings.SplitN(module, ".", 2)[0] +
		`","python_module":"` + module + `","function":"` + function + `","args":` + args + `,"kwargs":` + kwargs +
		`,"idempotent":true,"call_type":"function"}`
}

// scriptText returns the two parts of a script's one literal: the head, which
// is for people, and the JSON.
func scriptText(t testing.TB, artifact string) (head, spec string) {
	_, whole, found := strings.Cut(text(t, artifact, "repro.py"), "r'''\n")
	require.True(t, found, "a script without its literal")
	whole, _, _ = strings.Cut(whole, "\n'''")
	at := strings.Index(whole, "\n{") + 1
	return whole[:at], whole[at:]
}

func text(t testing.TB, path ...string) string {
	b, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(b)
}

func write(t testing.TB, path, content string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func removeAll(t testing.TB, path string) { require.NoError(t, os.RemoveAll(path)) }
