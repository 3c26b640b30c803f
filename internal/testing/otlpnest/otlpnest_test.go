package otlpnest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func depth(v pcommon.Value) (levels int) {
	for {
		switch {
		case v.Type() == pcommon.ValueTypeSlice && v.Slice().Len() == 1:
			v = v.Slice().At(0)
		case v.Type() == pcommon.ValueTypeMap && v.Map().Len() == 1:
			v, _ = v.Map().Get("k")
		default:
			return levels
		}
		levels++
	}
}

func TestNestedOTLPDecodes(t *testing.T) {
	const levels = 10_000
	logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(Logs(
		[][]byte{Attribute("service.name", Maps(levels))}, [][]byte{Attribute("a", Arrays(1))}, Arrays(levels)))
	require.NoError(t, err)
	rl := logs.ResourceLogs().At(0)
	record := rl.ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, levels, depth(record.Body()))
	name, _ := rl.Resource().Attributes().Get("service.name")
	assert.Equal(t, levels, depth(name))
	assert.Equal(t, 1, record.Attributes().Len())

	traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(Traces(nil, [][]byte{Attribute("a", Arrays(levels))}))
	require.NoError(t, err)
	attribute, _ := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("a")
	assert.Equal(t, levels, depth(attribute))

	v := pcommon.NewValueEmpty()
	Value(v, 7)
	assert.Equal(t, 7, depth(v))
}
