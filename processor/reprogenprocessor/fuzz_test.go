package reprogenprocessor

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// FuzzConsumeTraces: whatever comes in goes on, changed by the two attributes
// at most; and only names of the layout appear in the directory.
func FuzzConsumeTraces(f *testing.F) {
	seeds := []ptrace.Traces{ptrace.NewTraces(), mean().traces(), failedCall{name: "x", span: 1, parent: 1, message: "\xff"}.traces()}
	tree := ptrace.NewTraces()
	failedCall{name: "leaf", span: 3, parent: 2, errorType: "E"}.appendTo(tree)
	failedCall{name: "middle", span: 2, parent: 1, errorType: "E", payload: `{"python_module":"m","function":"f","args":[NaN]}`}.appendTo(tree)
	failedCall{name: "root", span: 1, parent: 3, stack: "Traceback (most recent call last):\n  File \"a\", line 1, in b\nE: x"}.appendTo(tree)
	tree.ResourceSpans().At(0).Resource().Attributes().PutEmptyMap("m").PutEmptySlice("s").AppendEmpty().SetDouble(1)
	var marshaler ptrace.ProtoMarshaler
	for _, seed := range append(seeds, tree) {
		b, err := marshaler.MarshalTraces(seed)
		require.NoError(f, err)
		f.Add(b, mean().payload, "StatisticsError", "mean requires at least one data point", uint16(0))
		f.Add(b, mean().payload, "StatisticsError", "mean requires at least one data point", uint16(3000))
	}
	dir := filepath.Join(f.TempDir(), "reproductions")
	f.Add([]byte{}, `{"python_module":"m","Python_Module":"n"}`, "'''", "a\r\n@SPEC@", uint16(64))
	f.Fuzz(func(t *testing.T, b []byte, payload, errorType, message string, levels uint16) {
		var unmarshaler ptrace.ProtoUnmarshaler
		td, err := unmarshaler.UnmarshalTraces(b)
		if err != nil {
			td = ptrace.NewTraces()
		}
		failedCall{service: message, name: errorType, payload: payload, errorType: errorType, message: message,
			stack: message, attrs: map[string]any{message: payload}}.appendTo(td)
		for _, rs := range td.ResourceSpans().All() {
			otlpnest.Attributes(rs.Resource().Attributes(), int(levels))
		}
		for _, s := range spans(td) {
			otlpnest.Value(s.Attributes().PutEmpty("nested"), int(levels))
			if levels%2 == 1 {
				otlpnest.Attributes(s.Attributes(), int(levels))
			}
		}
		cfg := testConfig(t)
		cfg.Directory = dir
		cfg.Retention.MaxArtifacts = 5
		sink := &consumertest.TracesSink{}
		p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), cfg, sink)
		require.NoError(t, err)
		require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
		before := ptrace.NewTraces()
		td.CopyTo(before)
		require.NoError(t, p.ConsumeTraces(context.Background(), td))
		require.NoError(t, p.Shutdown(context.Background()))

		got := sink.AllTraces()[0]
		for _, s := range spans(got) {
			s.Attributes().Remove("repro.artifact.path")
			s.Attributes().Remove("repro.artifact.fingerprint")
		}
		for _, s := range spans(before) {
			s.Attributes().Remove("repro.artifact.path")
			s.Attributes().Remove("repro.artifact.fingerprint")
		}
		want, err := (&ptrace.JSONMarshaler{}).MarshalTraces(before)
		require.NoError(t, err)
		have, err := (&ptrace.JSONMarshaler{}).MarshalTraces(got)
		require.NoError(t, err)
		require.Equal(t, string(want), string(have))

		entries, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		require.NoError(t, err)
		for _, e := range entries {
			require.Regexp(t, `/[0-9a-f]{16}/([0-9]{8}T[0-9]{6}Z-[0-9a-f]{32}-[0-9a-f]{16}|group\.json)$`, e)
		}
		require.LessOrEqual(t, len(artifacts(t, cfg)), 5)
	})
}

func spans(td ptrace.Traces) []ptrace.Span {
	var out []ptrace.Span
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				out = append(out, s)
			}
		}
	}
	return out
}
