package reprogenprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// TestSameGroup says what has a part in a failure's group, and what has none.
func TestSameGroup(t *testing.T) {
	base := func() failedCall {
		return failedCall{name: "step_7", errorType: "RuntimeError", message: "[rank3]: no memory on cuda:3 of node-three (pid 77): 0x7f00aa",
			attrs: map[string]any{"host.name": "node-three"}, payload: call("torch", "matmul", "[]", "{}"), stack: "Traceback (most recent call last):\n" +
				"  File \"/tmp/ray/session_2026-11-20_1/train.py\", line 7, in step\nRuntimeError: x\n"}
	}
	for name, tc := range map[string]struct {
		change func(c *failedCall, resource pcommon.Map)
		same   bool
	}{
		"nothing": {func(*failedCall, pcommon.Map) {}, true},
		"rank, device, process and address": {func(c *failedCall, _ pcommon.Map) {
			c.message = "[rank5]: no memory on cuda:0 of node-three (pid 9): 0x11"
		}, true},
		"the host": {func(c *failedCall, resource pcommon.Map) {
			c.message = "[rank3]: no memory on cuda:3 of elsewhere (pid 77): 0x7f00aa"
			resource.PutStr("host.name", "elsewhere")
		}, true},
		"the rank's attribute": {func(_ *failedCall, resource pcommon.Map) { resource.PutInt("ml.rank.global", 5) }, true},
		"ids of the trace":     {func(c *failedCall, _ pcommon.Map) { c.trace, c.span = 9, 9 }, true},
		"lines and sessions": {func(c *failedCall, _ pcommon.Map) {
			c.stack = "Traceback (most recent call last):\n  File \"/tmp/ray/session_2026-12-01_8/train.py\", line 9, in step\nRuntimeError: x\n"
		}, true},
		"the arguments":     {func(c *failedCall, _ pcommon.Map) { c.payload = call("torch", "matmul", "[1]", "{}") }, true},
		"the service":       {func(c *failedCall, _ pcommon.Map) { c.service = "another" }, false},
		"the type":          {func(c *failedCall, _ pcommon.Map) { c.errorType, c.stack = "ValueError", "" }, false},
		"the function":      {func(c *failedCall, _ pcommon.Map) { c.payload = call("torch", "mm", "[]", "{}") }, false},
		"the words":         {func(c *failedCall, _ pcommon.Map) { c.message = "something else" }, false},
		"the kind":          {func(c *failedCall, _ pcommon.Map) { c.payload = "" }, false},
		"the frames":        {func(c *failedCall, _ pcommon.Map) { c.stack += "" }, true},
		"a trigger":         {func(c *failedCall, _ pcommon.Map) { c.attrs = map[string]any{"repro.trigger": "oom"} }, false},
		"the client's name": {func(c *failedCall, _ pcommon.Map) { c.attrs = map[string]any{"repro.fingerprint": "mine"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			first, second := base(), base()
			resource := pcommon.NewMap()
			resource.PutStr("host.name", "node-three")
			tc.change(&second, resource)
			one, other := first.traces(), second.traces()
			one.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "node-three")
			for k, v := range resource.All() {
				v.CopyTo(other.ResourceSpans().At(0).Resource().Attributes().PutEmpty(k))
			}
			spans(other)[0].SetTraceID(pcommon.TraceID{15: 99})
			produce(t, cfg, one, other)
			if tc.same {
				require.Len(t, groups(t, cfg), 1)
				assert.EqualValues(t, 2, groups(t, cfg)[0].Count)
			} else {
				assert.Len(t, groups(t, cfg), 2)
			}
		})
	}
}

// TestOneExemplarAVariant: what is known already is counted, also after a
// restart.
func TestOneExemplarAVariant(t *testing.T) {
	cfg := testConfig(t)
	for i := range 4 {
		f := mean()
		f.trace = byte(i + 1)
		produce(t, cfg, f.traces())
	}
	onlyArtifact(t, cfg)
	require.Len(t, groups(t, cfg)[0].Variants, 1)
	assert.EqualValues(t, 4, groups(t, cfg)[0].Variants[0].Count)
}
