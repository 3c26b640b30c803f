package reprogenprocessor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestRecordings sends what real clients sent, request by request as recorded
// by examples/record.py, with the modules allowed that the examples call. The
// expected.yaml of each client lists the reproductions, and every error span
// of which there is none.
func TestRecordings(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "recordings", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var requests []ptrace.Traces
			for line := range bytes.Lines([]byte(text(t, folder, "traces.json"))) {
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
				require.NoError(t, err)
				requests = append(requests, td)
			}
			cfg := testConfig(t, "statistics", "json", "datetime", "regressor")
			sink := produce(t, cfg, requests...)
			got := reproductions(t, cfg) + failures(sink.AllTraces())

			golden.Compare(t, filepath.Join(folder, "expected.yaml"), got)
		})
	}
}

// reproductions returns YAML: what each script is told, without the arguments
// of its call, of which only the number of bytes is listed.
func reproductions(t *testing.T, cfg *Config) string {
	var all []string
	for _, a := range artifacts(t, cfg) {
		_, spec := scriptText(t, a)
		var s struct {
			Kind   string
			Reason string
			Expect struct{ Type, Message string }
			Source struct {
				Service, Span string
				SpanID        string `json:"span_id"`
			}
			Payload *struct {
				Module   string `json:"python_module"`
				Function string
				Args     json.RawMessage
				Code     string
				Request  struct {
					Model    string
					Messages []any
				}
			}
			Lossy    bool
			Redacted []any
		}
		require.NoError(t, json.Unmarshal([]byte(spec), &s))
		var b strings.Builder
		fmt.Fprintf(&b, "  - group: %q\n    service: %s\n    span: %s %s\n    kind: %s\n",
			filepath.Base(filepath.Dir(a)), s.Source.Service, s.Source.Span, s.Source.SpanID, s.Kind)
		if s.Reason != "" {
			fmt.Fprintf(&b, "    reason: %s\n", s.Reason)
		}
		fmt.Fprintf(&b, "    type: %q\n    message: %s\n", s.Expect.Type, strconv.Quote(ends(s.Expect.Message)))
		switch {
		case s.Payload == nil:
		case s.Payload.Code != "":
			fmt.Fprintf(&b, "    runs: %d bytes of code\n", len(s.Payload.Code))
		case s.Payload.Request.Messages != nil:
			fmt.Fprintf(&b, "    asks: %s with %d messages\n", s.Payload.Request.Model, len(s.Payload.Request.Messages))
		default:
			var args bytes.Buffer
			require.NoError(t, json.Compact(&args, s.Payload.Args))
			fmt.Fprintf(&b, "    calls: %s.%s with %d bytes of arguments\n", s.Payload.Module, s.Payload.Function, args.Len())
		}
		fmt.Fprintf(&b, "    lossy: %t\n    redacted: %d\n", s.Lossy, len(s.Redacted))
		all = append(all, b.String())
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "reproductions: []\n"
	}
	return "reproductions:\n" + strings.Join(all, "")
}

// failures returns YAML: the spans with status error, how many of each name
// and what was put on them.
func failures(all []ptrace.Traces) string {
	counts := map[string]int{}
	for _, td := range all {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if span.Status().Code() != ptrace.StatusCodeError {
						continue
					}
					counts[strconv.Quote(fmt.Sprintf("%s, fingerprint %s: %s", span.Name(),
						orNone(span.Attributes(), "repro.artifact.fingerprint"), ends(span.Status().Message())))]++
				}
			}
		}
	}
	var lines []string
	for failure, n := range counts {
		lines = append(lines, fmt.Sprintf("  %s: %d\n", failure, n))
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		return "error spans: {}\n"
	}
	return "error spans:\n" + strings.Join(lines, "")
}

func orNone(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok {
		return v.Str()
	}
	return "none"
}

// ends keeps the first and the last part of a message: the others are tracebacks.
func ends(message string) string {
	const part = 60
	r := []rune(message)
	if len(r) <= 2*part {
		return message
	}
	return string(r[:part]) + " … " + string(r[len(r)-part:])
}
