package reprogenprocessor

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
)

const (
	// canary is in every text that a program worked on, and digits in every
	// number.
	canary = "Canary bird"
	digits = 4711471147
)

// filled puts canaries wherever a span, its events, links, scope and resource
// have values.
func filled(c failedCall) ptrace.Traces {
	td := c.traces()
	rs := td.ResourceSpans().At(0)
	ss := rs.ScopeSpans().At(0)
	span := ss.Spans().At(0)
	ss.Scope().SetName(canary)
	maps := []pcommon.Map{rs.Resource().Attributes(), ss.Scope().Attributes(), span.Attributes()}
	event := span.Events().AppendEmpty()
	event.SetName("GET /" + canary)
	link := span.Links().AppendEmpty()
	link.TraceState().FromRaw("k=" + canary)
	maps = append(maps, event.Attributes(), link.Attributes())
	span.TraceState().FromRaw("k=" + canary)
	span.Status().SetMessage("failed for " + canary)
	if span.Name() == "" {
		span.SetName("SELECT users WHERE name = '" + canary + "'")
	}
	for _, m := range maps {
		for _, key := range []string{
			"app.user", "locals", "db.statement", "db.query.text", "db.query.parameter.0", "url.full", "url.query", "http.url",
			"http.request.header.x_customer", "input.value", "output.value", "gen_ai.output.messages", "gen_ai.prompt.0.content",
			"llm.input_messages.0.message.content", "process.command_args", "process.command_line", "process.working_directory",
			"repro.env.CUSTOMER", "repro.batch.ids", "host.name", "ml.run.id", "service.version", "code.function.name", "vcs.ref.head.name",
			"repro.payload.note", canary,
		} {
			if _, ok := m.Get(key); !ok {
				m.PutStr(key, "of "+canary)
			}
		}
		m.PutInt("app.account", digits)
		m.PutDouble("app.balance", digits)
		m.PutEmptyBytes("app.image").FromRaw([]byte(canary))
		m.PutEmptySlice("ml.names").AppendEmpty().SetStr(canary)
		m.PutEmptyMap("ml.people").PutInt(canary, digits)
	}
	return td
}

// leaks returns the files of a directory that hold a canary, in any encoding
// that this package writes.
func leaks(t *testing.T, dir string) (found []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			found = append(found, leaksIn(filepath.Base(path), string(content))...)
		}
		return err
	}))
	return found
}

func leaksIn(where, content string) (found []string) {
	for line := range strings.Lines(content) {
		for _, c := range []string{canary, "Canary", "bird", "4711471147", base64.StdEncoding.EncodeToString([]byte(canary))[:12]} {
			if strings.Contains(line, c) {
				found = append(found, where+": "+line)
				break
			}
		}
	}
	return found
}

// TestWithoutContent: of what a program worked on, and of what people wrote,
// nothing is in any file or record.
func TestWithoutContent(t *testing.T) {
	tensor := `{"__type__":"tensor","__schema__":1,"framework":"torch","dtype":"float32","shape":[2,3],"stride":[3,1],"storage":"s0","device":"cuda:0","note":"` + canary + `","data":{"b64":"` + base64.StdEncoding.EncodeToString([]byte(canary + "............."))[:32] +
		`"},"stats":{"min":0.5,"max":1.5,"` + canary + `":1}}`
	message := canary + " is no key: mat1 and mat2 shapes cannot be multiplied (32x15 and '" + canary + "' 4711471147)"
	stack := "Traceback (most recent call last):\n  File \"/app/" + canary + ".py\", line 3, in work\n    call('" + canary + "')\n    name = '" + canary +
		"'\n  File \"/app/model.py\", line 4, in forward\nValueError: " + message
	for name, tc := range map[string]struct {
		failedCall
		kept []string
	}{
		"python_call": {failedCall{name: "train_step", payload: `{"python_module":"app.model","function":"predict","session_id":"` + canary + `","args":["` + canary + `",4711471147,` + tensor +
			`],"kwargs":{"people":{"` + canary + `":1},"password":"` + canary + `"}}`}, []string{`"reason": "content_withheld"`}},
		"keywords of a program": {failedCall{name: "x", payload: `{"python_module":"m","function":"f","kwargs":{"` + canary + `":1}}`}, []string{`"reason": "content_withheld"`}},
		"a target in words":     {failedCall{name: "x", payload: `{"python_module":"` + canary + `","function":"f"}`}, []string{`"reason": "content_withheld"`}},
		"in parts":              {failedCall{name: "x", attrs: map[string]any{"library": "app", "function": "f", "args": []any{canary}}}, []string{`"reason": "content_withheld"`}},
		"python_code":           {failedCall{name: "CodeInterpreter.reply", attrs: map[string]any{"code": "x = '" + canary + "'", "out.message": printed("ValueError: " + message)}}, []string{`"reason": "content_withheld"`}},
		"genai_chat": {failedCall{name: "chat gpt-4o", attrs: map[string]any{
			"gen_ai.input.messages":      `[{"role":"assistant","parts":[{"type":"text","content":"` + canary + `"},{"type":"tool_call","id":"` + canary + `","name":"` + canary + `","arguments":"` + canary + `"}]}]`,
			"gen_ai.system_instructions": `[{"type":"text","content":"` + canary + `"}]`, "gen_ai.tool.definitions": `[{"type":"function","name":"` + canary + `"}]`,
			"gen_ai.request.model": "gpt-4o", "gen_ai.request.temperature": 0.25, "gen_ai.request.stop_sequences": []any{canary}, "server.address": "of " + canary}}, []string{`"reason": "content_withheld"`}},
		"a request": {failedCall{name: "chat", attrs: map[string]any{"openinference.span.kind": "LLM", "input.mime_type": "application/json",
			"input.value": `{"model":"` + canary + `","messages":[{"role":"user","content":[{"type":"text","text":"` + canary + `"}],"` + canary + `":1}],"response_format":{"x":"` + canary + `"}}`}},
			[]string{`"reason": "content_withheld"`}},
		"train_step": {failedCall{name: "step", attrs: map[string]any{"ml.step": 12, "repro.checkpoint.uri": "file:///" + canary,
			"process.command_args": []any{"python", "/srv/train.py", "--who", canary}}}, []string{`"reason": "content_withheld"`}},
		"a statement": {failedCall{name: "SELECT", attrs: map[string]any{"db.system.name": "sqlite", "db.query.parameter." + canary: 1, "db.namespace": canary}},
			[]string{`"db.system.name": "sqlite"`, `"db.query.text": "<REDACTED:content>"`, `"db.namespace": "<REDACTED:content>"`}},
		"context":           {failedCall{}, []string{`"name": "<REDACTED:content>"`, "mat1 and mat2 shapes cannot be multiplied (<n> and '<w>' <n>)"}},
		"a cut payload":     {failedCall{name: "x", payload: `{"python_module":"m","function":"` + canary}, []string{"payload_invalid"}},
		"without a message": {failedCall{name: "x", errorType: "of " + canary, message: "-"}, []string{`"type": ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := waitingConfig(t)
			cfg.CaptureContent, cfg.EmitLog = false, true
			w := newWorld(t, cfg)
			c := tc.failedCall
			if c.message == "" {
				c.errorType, c.message, c.stack = "app.errors.ShapeError", message, stack
			}
			c.span, c.parent = 2, 1
			w.send(filled(c))
			record := failedCall{span: 2, attrs: map[string]any{"app.user": canary, "exception.locals": canary}, errorType: c.errorType, message: c.message, stack: c.stack}.logs(plog.SeverityNumberError)
			record.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().SetStr(canary)
			require.NoError(t, w.logs.ConsumeLogs(t.Context(), record))
			alone := failedCall{trace: 7, service: "logs", errorType: c.errorType, message: message, stack: stack, attrs: map[string]any{"app.user": canary}}.logs(plog.SeverityNumberError)
			alone.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetEventName("of " + canary)
			require.NoError(t, w.logs.ConsumeLogs(t.Context(), alone))
			for rank := range 2 {
				w.send(filled(failedCall{service: "of " + canary, name: "http://h/Canary", trace: byte(20 + rank), errorType: "RuntimeError", message: message, attrs: map[string]any{"ml.training_run.id": "run", "ml.rank.global": rank}}))
			}
			above := filled(failedCall{span: 1})
			spans(above)[0].Status().SetCode(ptrace.StatusCodeUnset)
			w.send(above)
			w.pass(time.Minute)
			w.shutdown()

			assert.Empty(t, leaks(t, cfg.Directory))
			var all strings.Builder
			for _, a := range artifacts(t, cfg) {
				head, spec := scriptText(t, a)
				var read struct {
					Kind, Content string
					Payload       any
				}
				require.NoError(t, json.Unmarshal([]byte(spec), &read))
				assert.Equal(t, "withheld", read.Content)
				assert.Equal(t, "context", read.Kind)
				assert.Nil(t, read.Payload)
				all.WriteString(head + spec)
				all.WriteString(text(t, a, "trace.json"))
				all.WriteString(text(t, a, "report.md"))
			}
			for _, kept := range tc.kept {
				if !strings.Contains(all.String(), kept) {
					t.Errorf("%s is gone", kept)
				}
			}
			emitted := 0
			for _, ld := range w.records.AllLogs() {
				r := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
				if r.EventName() == emittedEvent {
					emitted++
					out, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
					require.NoError(t, err)
					assert.Empty(t, leaksIn("record", strings.ReplaceAll(string(out), `\n`, "\n")))
				}
			}
			assert.GreaterOrEqual(t, emitted, 3)
		})
	}
}

// TestContentIsMissed: a script without its call says why.
func TestContentIsMissed(t *testing.T) {
	cfg := testConfig(t, "statistics")
	cfg.CaptureContent = false
	produce(t, cfg, mean().traces())
	artifact := onlyArtifact(t, cfg)
	r := pythons(t)[0].run(t, artifact, nil)
	assert.Equal(t, 5, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
	assert.Contains(t, pythons(t)[0].run(t, artifact, nil, "--info").Stderr, "capture_content: false")
	assert.Contains(t, text(t, artifact, "report.md"), "`capture_content: false`")
}

// TestGroupsWithoutContent: failures that differ in content alone are one
// group, and their names are computed without it.
func TestGroupsWithoutContent(t *testing.T) {
	cfg := testConfig(t)
	cfg.CaptureContent = false
	for i, who := range []string{"Mary", "Joseph"} {
		produce(t, cfg, failedCall{name: "lookup", trace: byte(i + 1), errorType: "KeyError", message: "'" + who + "'"}.traces())
	}
	found := groups(t, cfg)
	require.Len(t, found, 1)
	assert.EqualValues(t, 2, found[0].Count)
	assert.Equal(t, "'<w>'", found[0].Message)
}

// TestErrorTypesWithoutContent: a program may put any text where the class of
// an error belongs. Only what has the form of a class's name is kept.
func TestErrorTypesWithoutContent(t *testing.T) {
	for _, kept := range []string{
		"ValueError", "app.errors.ShapeError", "torch.cuda.OutOfMemoryError", "psycopg.errors.DivisionByZero", "socket.timeout", "zlib.error",
		"_UnexpectedNullValue", "Http404", "deadline_exceeded", "RESOURCE_EXHAUSTED", "java.lang.IllegalStateException",
	} {
		assert.Equal(t, kept, content.ErrorType(kept))
	}
	for i, said := range []string{
		"bird@canary.example", "Canary bird", "account-4711471147", "account_4711471147", "Account4711471147", "user.bird", "bird", "the_yellow_bird",
		"http://h/birds/4711471147", "/home/bird/x.py", "4711471147", "bird:4711", "Bird_of_Canary", "x" + strings.Repeat(".bird", 40), "Canary\nbird",
	} {
		// The folder has the test's name, and the record names the folder.
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Log(said)
			cfg := waitingConfig(t)
			cfg.CaptureContent, cfg.EmitLog = false, true
			w := newWorld(t, cfg)
			failed := failedCall{name: "work", errorType: said, message: "it failed", stack: "Traceback (most recent call last):\n  File \"/app/m.py\", line 3, in work\n" + said + ": it failed",
				attrs: map[string]any{"error.type": said, "snakepit.grpc.error_kind": said, "ml.training_run.id": "run", "ml.rank.global": 0}}
			w.send(failed.traces())
			other := failed
			other.trace, other.attrs = 2, map[string]any{"exception.type": said, "ml.training_run.id": "run", "ml.rank.global": 1}
			w.send(other.traces())
			alone := failed
			alone.trace = 3
			require.NoError(t, w.logs.ConsumeLogs(t.Context(), alone.logs(plog.SeverityNumberError)))
			w.pass(time.Minute)
			w.shutdown()
			require.NotEmpty(t, artifacts(t, cfg))
			assert.Empty(t, leaks(t, cfg.Directory))
			for _, ld := range w.records.AllLogs() {
				record := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
				if record.EventName() == emittedEvent {
					out, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
					require.NoError(t, err)
					assert.Empty(t, leaksIn("record", strings.ReplaceAll(string(out), `\n`, "\n")))
				}
			}
		})
	}
}
