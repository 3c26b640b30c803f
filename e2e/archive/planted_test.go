package archive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// secretText is content of the planted requests.
const secretText = "planted-content"

// plantedTrace is the trace of the first of the planted requests.
const plantedTrace = "aa000000000000000000000000000001"

// plantedRequest is a request to a model, as no simulated workload sends it: with a user
// and a cost.
type plantedRequest struct {
	model, user   string
	input, output int64
	// cost in US dollars; the client states none where it is 0.
	cost   float64
	failed bool
}

var plantedRequests = []plantedRequest{
	{model: "model-a", user: "alice", input: 100, output: 20, cost: 0.5},
	{model: "model-a", user: "alice", input: 300, output: 40, cost: 0.25},
	{model: "model-a", user: "bob", input: 1000, output: 1, cost: 2},
	{model: "model-a", user: "bob", failed: true},
	{model: "model-b", user: "bob", input: 7, output: 8},
}

// plant sends the requests, each as a trace, and returns when they ended, in nanoseconds.
func plant(t *testing.T, collector *harness.Collector) int64 {
	t.Helper()
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "planted")
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	now := time.Now()
	for i, request := range plantedRequests {
		span := spans.AppendEmpty()
		id := pcommon.TraceID{0xaa}
		binary.BigEndian.PutUint64(id[8:], uint64(i)+1)
		span.SetTraceID(id)
		span.SetSpanID(pcommon.SpanID{byte(i) + 1})
		span.SetName("chat " + request.model)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Second)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		attributes := span.Attributes()
		attributes.PutStr("gen_ai.operation.name", "chat")
		attributes.PutStr("gen_ai.request.model", request.model)
		attributes.PutStr("enduser.id", request.user)
		attributes.PutStr("gen_ai.input.messages", secretText)
		if request.failed {
			span.Status().SetCode(ptrace.StatusCodeError)
			attributes.PutStr("error.type", "RateLimitError")
			continue
		}
		attributes.PutInt("gen_ai.usage.input_tokens", request.input)
		attributes.PutInt("gen_ai.usage.output_tokens", request.output)
		if request.cost > 0 {
			attributes.PutDouble("gen_ai.usage.cost", request.cost)
		}
	}
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { require.NoError(t, sender.Close()) }()
	require.NoError(t, sender.Traces(t.Context(), traces))
	return now.UnixNano()
}

// hashOf returns the ml.user of a name.
func hashOf(user string) string {
	mac := hmac.New(sha256.New, []byte(hashKey))
	mac.Write([]byte(user))
	return hex.EncodeToString(mac.Sum(nil))[:16]
}
