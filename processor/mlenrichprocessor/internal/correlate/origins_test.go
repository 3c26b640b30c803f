package correlate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestOriginsReadWhatTheyWrite(t *testing.T) {
	// The longest that there can be: a span that shares by its request says it
	// itself, and so does one of an epoch its phase.
	var all, shared origins
	for k := range all {
		all[k], shared[k] = fromParent, fromRequest
	}
	all[originEpoch] = fromTime
	shared[keyRequest], shared[originPhase], shared[originEpoch] = notInherited, notInherited, fromTime
	for _, o := range []origins{
		{keySession: fromTrace},
		{keySession: fromTrace, keyRequest: fromParent, originPhase: fromParent},
		{keyTrainingRun: fromRequest, keySamplingSession: fromSpan},
		{originEpoch: fromTime},
		all,
		shared,
	} {
		got, ok := parseOrigins(o.String())
		assert.True(t, ok, o.String())
		if o[keyRun] != notInherited {
			o[keyInferred] = o[keyRun] // it is not named
		}
		assert.Equal(t, o, got)
		assert.LessOrEqual(t, len(o.String()), mlattr.MaxText, "a longer text would be cut when it is read")
	}
	assert.Equal(t, "session=trace,request=parent,phase=parent",
		origins{keySession: fromTrace, keyRequest: fromParent, originPhase: fromParent}.String())
	assert.Contains(t, origins{originPhase: fromParent}.String(), mlattr.InheritedPhase)
}

func TestSourcesAreBounded(t *testing.T) {
	var m Sources
	for i := range 10 * maxSources {
		var o origins
		for k, rest := 0, i+1; rest > 0; k, rest = k+1, rest/len(originNames) {
			o[k] = origin(rest % len(originNames))
		}
		assert.Equal(t, o.String(), m.text(o))
		assert.Equal(t, o.String(), m.text(o))
		assert.LessOrEqual(t, len(m), maxSources)
	}
}

func TestOriginsByAnotherHand(t *testing.T) {
	for _, text := range []string{"", "trace", "session", "session=", "=trace", "session=moon", "cookie=trace", "session=trace,", "session=trace,session=parent"} {
		_, ok := parseOrigins(text)
		assert.False(t, ok, "%q", text)
	}
}

func FuzzParseOrigins(f *testing.F) {
	f.Add("session=trace,request=parent")
	f.Add("run=request,phase=parent")
	f.Add(",=,")
	f.Fuzz(func(t *testing.T, text string) {
		o, ok := parseOrigins(text)
		if !ok {
			assert.Equal(t, origins{}, o)
			return
		}
		again, ok := parseOrigins(o.String())
		assert.True(t, ok)
		assert.Equal(t, o, again)
	})
}
