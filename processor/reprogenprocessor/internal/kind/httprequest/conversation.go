package httprequest

import (
	"cmp"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/python"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// Attributes of calls to models.
const (
	attrInputMessages      = "gen_ai.input.messages"
	attrSystemInstructions = "gen_ai.system_instructions"
	attrToolDefinitions    = "gen_ai.tool.definitions"
	attrServerAddress      = "server.address"
	attrServerPort         = "server.port"
	attrHTTPStatus         = "http.response.status_code"
)

// requestParameters maps the attributes of a request to the names that the
// OpenAI API has for them.
var requestParameters = [...]struct{ attribute, name string }{
	{"gen_ai.request.model", "model"},
	{"gen_ai.request.temperature", "temperature"},
	{"gen_ai.request.top_p", "top_p"},
	{"gen_ai.request.max_tokens", "max_tokens"},
	{"gen_ai.request.seed", "seed"},
	{"gen_ai.request.choice.count", "n"},
	{"gen_ai.request.stop_sequences", "stop"},
	{"gen_ai.request.frequency_penalty", "frequency_penalty"},
	{"gen_ai.request.presence_penalty", "presence_penalty"},
}

// isModelCall reports whether a span is that of one request to a model.
func isModelCall(attributes pcommon.Map) bool {
	return vocabulary.IsModelRequest(attr.Text(attributes, vocabulary.OperationKeys()...))
}

// addressOf returns the server that was asked. It is shown, and not used.
func addressOf(attributes pcommon.Map) string {
	c := snapshot.New()
	if address := c.Text(attr.Text(attributes, vocabulary.AddressKeys()...), snapshot.MaxValue); address != "" {
		return address
	}
	address := c.Text(attr.Text(attributes, attrServerAddress), snapshot.MaxValue)
	if port, ok := attributes.Get(attrServerPort); ok && port.Type() == pcommon.ValueTypeInt && address != "" {
		return net.JoinHostPort(address, strconv.FormatInt(port.Int(), 10))
	}
	return address
}

// statusOf returns the HTTP status of the answer, or 0.
func statusOf(attributes pcommon.Map) int64 {
	status, _ := attr.IntIn([]pcommon.Map{attributes}, attrHTTPStatus)
	return status
}

func hasConversation(attributes pcommon.Map) bool {
	if hasMessages(attributes) {
		return true
	}
	keys := keysOf(attributes)
	return keys != nil && (keys.hasBody(attributes) || keys.hasList(attributes))
}

// hasMessages reports whether there are messages: structured, or as JSON.
func hasMessages(attributes pcommon.Map) bool {
	v, ok := attributes.Get(attrInputMessages)
	return ok && (v.Type() == pcommon.ValueTypeSlice || v.Str() != "")
}

// maxJSONBytes is more than any request that is read.
const maxJSONBytes = 1 << 20

// jsonText returns a copy of an attribute as JSON, which must not share
// memory with the batch.
func jsonText(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok && v.Type() == pcommon.ValueTypeSlice {
		if text, whole := mlattr.Text(v, maxJSONBytes); whole {
			return text
		}
		return ""
	}
	return strings.Clone(attr.Text(attributes, key))
}

// chatHead writes the model and the messages.
func chatHead(h kind.Head, spec jsontree.Object) {
	request := spec.Object("payload").Object("request")
	h.Add("chat", cmp.Or(request.Text("model"), "(no model was recorded)"))
	var texts []string
	for _, v := range request.Array("messages") {
		m, _ := v.(jsontree.Object)
		content, _ := m.Lookup("content")
		text, ok := content.(string)
		if !ok && content != nil {
			text = python.Text(content)
		}
		texts = append(texts, m.Text("role")+": "+text)
	}
	h.List("messages", texts, 10)
}
