package mlmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// chats sends requests to a model, a second apart, of which so many of ten fail, and reports
// whether the service is failing.
func (r *run) chats(t *testing.T, n, failed int) bool {
	t.Helper()
	for range n {
		r.spans++
		r.clock = r.clock.Add(time.Second)
		td := ptrace.NewTraces()
		span := addSpan(td, "", byte(r.spans), r.spans)
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.Attributes().PutStr("gen_ai.request.model", "m")
		if int(r.spans*7%10) < failed {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.clock.Add(-time.Second)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.clock))
		require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
	}
	onsets, _ := problems(t, r.after(t, 0))
	_, is := onsets["trainer/failing"]
	return is
}

// What is usual of a service is known to the collector that has seen it. A gateway to which
// its spans come from another one, or that has restarted, finds it failing if half of its
// requests fail, until a quarter or fewer do. docs/limits.md says so.
func TestUsualFailuresAreLearntAnew(t *testing.T) {
	known, other := newRun(t, createDefaultConfig().(*Config)), newRun(t, createDefaultConfig().(*Config))
	assert.False(t, known.chats(t, 400, 3), "3 of 10 fail, and nobody knows whether that is usual")
	assert.False(t, known.chats(t, 200, 6), "not three times the usual")

	assert.True(t, other.chats(t, 20, 6))
	assert.True(t, other.chats(t, 300, 6), "it does not become usual")
	assert.True(t, other.chats(t, 200, 3))
	assert.False(t, other.chats(t, 200, 2))
	assert.False(t, other.chats(t, 200, 4), "from now on, 2 of 10 are usual")
}
