package reprogenprocessor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestWhatFails says which spans are failures.
func TestWhatFails(t *testing.T) {
	exception := failedCall{name: "future_store.execute_operation", errorType: "CheckpointError", message: "[404] no such checkpoint"}
	loss := func(v float64) failedCall { return failedCall{name: "batch_7", attrs: map[string]any{"ml.loss": v}} }
	trigger := func(v any) failedCall { return failedCall{name: "step", attrs: map[string]any{"repro.trigger": v}} }
	loader := func(name, errorType string) failedCall { return failedCall{name: name, errorType: errorType} }
	phase := loader("next", "StopIteration")
	phase.attrs = map[string]any{"ml.phase": "data_load"}
	ended := loader("x", "StopIteration")
	ended.attrs = map[string]any{"ml.epoch_end": true}
	endedNaN := loss(math.NaN())
	endedNaN.attrs["ml.epoch_end"] = true
	stated := exception
	stated.attrs = map[string]any{"error.type": "ValueError"}
	for name, tc := range map[string]struct {
		span    failedCall
		status  ptrace.StatusCode
		fails   bool
		trigger string
	}{
		"an error":                           {exception, ptrace.StatusCodeError, true, ""},
		"an exception, unset":                {exception, ptrace.StatusCodeUnset, true, ""},
		"an exception, ok":                   {exception, ptrace.StatusCodeOk, false, ""},
		"an exception and error.type, ok":    {stated, ptrace.StatusCodeOk, true, ""},
		"error.type alone, ok":               {failedCall{name: "x", attrs: stated.attrs}, ptrace.StatusCodeOk, false, ""},
		"nothing":                            {failedCall{name: "step"}, ptrace.StatusCodeUnset, false, ""},
		"nan":                                {trigger("nan"), ptrace.StatusCodeUnset, true, "nan"},
		"inf":                                {trigger("inf"), ptrace.StatusCodeOk, true, "inf"},
		"timeout":                            {trigger("timeout"), ptrace.StatusCodeUnset, true, "timeout"},
		"oom":                                {trigger("oom"), ptrace.StatusCodeError, true, "oom"},
		"crash":                              {trigger("crash"), ptrace.StatusCodeUnset, true, "crash"},
		"another trigger":                    {trigger("sunset"), ptrace.StatusCodeUnset, false, ""},
		"a trigger that is no text":          {trigger(int64(1)), ptrace.StatusCodeUnset, false, ""},
		"another trigger of an error":        {trigger("sunset"), ptrace.StatusCodeError, true, ""},
		"a loss of NaN":                      {loss(math.NaN()), ptrace.StatusCodeUnset, true, "nan"},
		"a loss of infinity":                 {loss(math.Inf(-1)), ptrace.StatusCodeUnset, true, "inf"},
		"a loss":                             {loss(0.5), ptrace.StatusCodeUnset, false, ""},
		"the end of an epoch":                {ended, ptrace.StatusCodeError, false, ""},
		"the end of an epoch, and NaN":       {endedNaN, ptrace.StatusCodeError, true, "nan"},
		"TorchTel's loader ends":             {loader("dataloader.next", "StopIteration"), ptrace.StatusCodeError, false, ""},
		"an asynchronous loader ends":        {loader("DataLoader.anext", "builtins.StopAsyncIteration"), ptrace.StatusCodeError, false, ""},
		"a phase says that it loads":         {phase, ptrace.StatusCodeError, false, ""},
		"a loader fails":                     {loader("dataloader.next", "RuntimeError"), ptrace.StatusCodeError, true, ""},
		"a StopIteration that is a mistake":  {loader("Model.forward", "StopIteration"), ptrace.StatusCodeError, true, ""},
		"an event that is no exception, ok?": {failedCall{name: "x"}, ptrace.StatusCodeUnset, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			td := tc.span.traces()
			span := spans(td)[0]
			span.Status().SetCode(tc.status)
			if name == "an event that is no exception, ok?" {
				span.Events().AppendEmpty().SetName("retry")
			}
			cfg := testConfig(t)
			sink := produce(t, cfg, td)
			_, marked := spans(sink.AllTraces()[0])[0].Attributes().Get("repro.artifact.fingerprint")
			assert.Equal(t, tc.fails, marked)
			if !tc.fails {
				assert.Empty(t, artifacts(t, cfg))
				return
			}
			require.Len(t, artifacts(t, cfg), 1)
			assert.Equal(t, tc.trigger, readTrace(t, artifacts(t, cfg)[0]).Trigger)
		})
	}
}

// TestTriggersAreGroupedApart: a loss of NaN and a time-out of one span are
// two failures.
func TestTriggersAreGroupedApart(t *testing.T) {
	cfg := testConfig(t)
	one := failedCall{name: "step", attrs: map[string]any{"repro.trigger": "nan"}}
	other := failedCall{name: "step", trace: 2, attrs: map[string]any{"repro.trigger": "timeout"}}
	again := failedCall{name: "step", trace: 3, attrs: map[string]any{"repro.trigger": "nan"}}
	produce(t, cfg, one.traces(), other.traces(), again.traces())
	assert.Len(t, groups(t, cfg), 2)
}
