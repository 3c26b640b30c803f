package blob_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"
)

// example has two resources, with and without names, and scopes with and without spans.
func example(t testing.TB) (encoded []byte, names []string) {
	t.Helper()
	td := ptrace.NewTraces()
	for _, service := range []string{"a", ""} {
		rs := td.ResourceSpans().AppendEmpty()
		if service != "" {
			rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.41.0")
			rs.Resource().Attributes().PutStr("service.name", service)
		}
		for _, scope := range []string{"s", "empty", ""} {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(scope)
			ss.SetSchemaUrl(scope)
			for _, name := range []string{"x", "", "y"} {
				if scope != "empty" {
					span := ss.Spans().AppendEmpty()
					span.SetName(name)
					span.Events().AppendEmpty().SetName("event")
					names = append(names, service+"/"+scope+"/"+name)
				}
			}
		}
	}
	encoded, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return encoded, names
}

func TestSpansKeepTheirResourceAndScope(t *testing.T) {
	encoded, names := example(t)
	var rebuilt []byte
	require.NoError(t, blob.Spans(encoded, func(header *blob.Header, span []byte) {
		rebuilt = blob.Append(rebuilt, header, span)
	}))
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(rebuilt)
	require.NoError(t, err)
	var got []string
	for _, rs := range td.ResourceSpans().All() {
		service := ""
		if v, ok := rs.Resource().Attributes().Get("service.name"); ok {
			service = v.Str()
			assert.NotEmpty(t, rs.SchemaUrl())
		}
		ss := rs.ScopeSpans().At(0)
		assert.Equal(t, ss.Scope().Name(), ss.SchemaUrl())
		got = append(got, service+"/"+ss.Scope().Name()+"/"+ss.Spans().At(0).Name())
		assert.Equal(t, 1, ss.Spans().At(0).Events().Len())
	}
	assert.Equal(t, names, got)
}

// FuzzSpans shows that any bytes give an error or spans, that what is rebuilt can be
// read again, and that nothing is lost by that.
func FuzzSpans(f *testing.F) {
	encoded, _ := example(f)
	f.Add(encoded)
	f.Add([]byte{1<<3 | 2, 0})
	f.Add([]byte{1 << 3, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var rebuilt []byte
		spans := 0
		if err := blob.Spans(data, func(header *blob.Header, span []byte) {
			spans++
			rebuilt = blob.Append(rebuilt, header, span)
		}); err != nil {
			return
		}
		again := 0
		require.NoError(t, blob.Spans(rebuilt, func(*blob.Header, []byte) { again++ }))
		require.Equal(t, spans, again)
	})
}
