// Package httprequest is the kind of artifacts that send a request to a server which
// their user names: any request of HTTP, or a conversation with a model.
package httprequest

import (
	"embed"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

//go:embed script/*.py.tmpl
var files embed.FS

// New returns the kind of any request.
func New() *kind.Kind {
	return sent(&kind.Kind{
		Name:        failure.HTTPRequest,
		Files:       files, // of conversations too
		FromFailure: fromFailure,
		IsTransport: isRequest,
		Flags:       flagsOf("payload"),
		Head:        head,
	}, "files", "request")
}

// NewChat returns the kind of those requests that are a conversation with a model, of
// which the client of the model recorded what it asked.
func NewChat() *kind.Kind {
	return sent(&kind.Kind{
		Name:      failure.GenAIChat,
		Recognise: hasConversation,
		Read:      chatCall,
		Explains:  isModelCall,
		Flags:     flagsOf("payload.request"),
		Head:      chatHead,
	}, "source", "chat")
}

// sent completes a kind whose scripts consist of first, what connects to an address that
// the user names, and last.
func sent(k *kind.Kind, first, last string) *kind.Kind {
	k.Parts = func(jsontree.Object) []string { return []string{first, "connect", "address", last} }
	k.WithoutContent = withoutContent
	return k
}

// isRequest reports whether a span is that of an HTTP request.
func isRequest(attributes pcommon.Map) bool { return attr.Text(attributes, methodKeys[:]...) != "" }

// fromFailure returns the failure of a request as an http_request.
func fromFailure(f *failure.Failure) (*failure.Call, failure.Reason, bool) {
	call, reason, ok := callOf(f.Span.Attributes, f.Span.Kind)
	if call != nil && (f.Weight >= snapshot.MaxBytes || snapshot.MayBeCut(call.Tree)) {
		return nil, failure.Truncated, true
	}
	return call, reason, ok
}

// flagsOf returns the flags of a script, of which one gives what was withheld at a path.
func flagsOf(path string) func(jsontree.Object) string {
	return func(spec jsontree.Object) string {
		flags := " --base-url URL"
		call := spec.Object("payload")
		method := call.Text("method")
		if body, _ := call.Lookup("body"); body == nil && (method == "POST" || method == "PUT" || method == "PATCH") {
			flags += " --body FILE"
		}
		return flags + kind.SetFlag(spec, path)
	}
}

// head writes the request line and the body.
func head(h kind.Head, spec jsontree.Object) {
	call := spec.Object("payload")
	h.Add("request", call.Text("method")+" "+call.Text("target"))
	if body := call.Text("body"); body != "" {
		h.List("body", strings.Split(body, "\n"), 8)
	}
}

// withoutContent keeps of a request its method, its numbers, and of a conversation the
// model and the roles.
var withoutContent = redact.Members(map[string]redact.Rule{
	"method": redact.OneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
	"request": redact.Members(map[string]redact.Rule{
		"model":    redact.Texts(func(text string) bool { return redact.Word(text) == text }),
		"messages": redact.Each(messageWithoutContent),
	}, redact.Settings),
}, redact.Settings)

var messageWithoutContent = redact.Members(map[string]redact.Rule{
	"role":         redact.OneOf("system", "developer", "user", "assistant", "tool", "function"),
	"content":      redact.All,
	"tool_calls":   redact.All,
	"tool_call_id": redact.All,
	"name":         redact.All,
}, nil)
