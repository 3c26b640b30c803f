package reprogenprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
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

func TestVersionsOfFrameworks(t *testing.T) {
	for name, tc := range map[string]struct {
		packages any
		want     []string
	}{
		"a map":          {map[string]any{"torch": "2.4.0+cu121", "numpy": "2.0.1", "requests": "2.0"}, []string{"torch 2.4.0+cu121", "numpy 2.0.1"}},
		"pip freeze":     {"numpy==2.0.1\ntorch==2.4.0\ntorchvision==0.19\n", []string{"torch 2.4.0", "numpy 2.0.1"}},
		"JSON":           {`{"torch": "2.4.0", "jax":"0.4"}`, []string{"torch 2.4.0", "jax 0.4"}},
		"others":         {"torchvision==0.19, mytorch==1", nil},
		"another's name": {"torch2==1.0", nil},
		"without number": {"torch @ file:///x", nil},
		"a list":         {[]any{"torch"}, nil},
	} {
		v := pcommon.NewValueEmpty()
		require.NoError(t, v.FromRaw(tc.packages))
		assert.Equal(t, tc.want, versionsIn(v), name)
	}
}

func TestShelf(t *testing.T) {
	s, err := newShelf[int, string](3, 100, time.Minute, fairness.EstablishedPath)
	require.NoError(t, err)
	me := fairness.OriginOf(1, "me")
	now := time.Unix(1_700_000_000, 0)
	has := func(key int) bool { _, ok := s.get(key, now); return ok }
	s.put(1, "a", 40, me, now)
	s.put(2, "b", 40, me, now)
	s.put(3, "c", 40, me, now)
	assert.Equal(t, []bool{false, true, true}, []bool{has(1), has(2), has(3)}, "the oldest makes room")
	s.put(3, "C", 60, me, now)
	v, _ := s.get(3, now)
	assert.Equal(t, "C", v)
	assert.True(t, has(2))
	s.put(4, "too large", 101, me, now)
	assert.False(t, has(4))
	assert.True(t, has(2), "for what cannot be kept nothing makes room")
	for i := range 10 {
		s.put(10+i, "x", 1, me, now)
	}
	other := fairness.OriginOf(2, "other")
	for i := range 10 {
		s.put(30+i, "x", 1, other, now)
	}
	assert.True(t, has(19), "another one has its share, and no more")
	assert.Equal(t, 3, s.kept.Len())
	assert.EqualValues(t, 3, s.bytes)
	now = now.Add(61 * time.Second)
	assert.False(t, has(19), "it is too old")
}
