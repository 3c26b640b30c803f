// Package httprequest is the kind of artifacts that send a request to a server which
// their user names: any request of HTTP, or a conversation with a model.
package httprequest

import (
	"cmp"
	"embed"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
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
		Recognise: func(span ptrace.Span) bool { return hasConversation(span.Attributes()) },
		Read:      chatCall,
		Explains:  isModelCall,
		Flags:     flagsOf("payload.request"),
		Head:      chatHead,
	}, "source", "chat")
}

// sent completes a kind whose scripts consist of first, what connects to an address that
// the user or the operator names, and last.
func sent(k *kind.Kind, first, last string) *kind.Kind {
	k.Parts = func(jsontree.Object) []string { return []string{first, "connect", "address", last} }
	k.Gates, k.WithoutContent = []kind.Gate{kind.AllowedHosts}, withoutContent
	return k
}

// attrRequestHeader is what the names of recorded headers begin with.
const attrRequestHeader = "http.request.header."

// requestOf reads the request that a span is, by the names of the
// semantic conventions and those from before 1.20. It reports whether there is
// a method and a path.
func requestOf(attributes jsontree.Object, kind string) (request, bool) {
	text := func(keys ...string) string {
		for _, k := range keys {
			if v := attributes.Text(k); v != "" {
				return v
			}
		}
		return ""
	}
	r := request{
		Method: text(methodKeys[:]...),
		URL:    text("url.full", "http.url"),
		Scheme: text("url.scheme", "http.scheme"),
		Host:   text("server.address", "http.host", "net.peer.name", "net.host.name"),
		Path:   text("url.path", "http.target"),
		Query:  text("url.query"),
		Port:   number(attributes, 0, "server.port", "net.peer.port", "net.host.port"),
		Status: number(attributes, 0, "http.response.status_code", "http.status_code"),
		Server: kind == ptrace.SpanKindServer.String(),
		// The conventions have no name for a body; these are in use.
		BodySize: number(attributes, -1, "http.request.body.size", "http.request_content_length"),
	}
	if r.Method == "_OTHER" {
		r.Method = text("http.request.method_original")
	}
	if body := text("http.request.body", "http.request.body.content"); body != "" {
		r.Body = body
	}
	for _, m := range attributes {
		if name, ok := strings.CutPrefix(m.Key, attrRequestHeader); ok && name != "" {
			r.Headers = append(r.Headers, jsontree.Member{Key: name, Value: m.Value})
		}
	}
	return r, r.Method != "" && cmp.Or(r.URL, r.Path) != ""
}

// methodKeys name the method of a request, in the semantic conventions and
// before 1.20.
var methodKeys = [...]string{"http.request.method", "http.method"}

// isRequest reports whether a span is that of an HTTP request.
func isRequest(attributes pcommon.Map) bool { return attr.Text(attributes, methodKeys[:]...) != "" }

// number returns the first of the attributes that is a whole number.
func number(attributes jsontree.Object, otherwise int64, keys ...string) int64 {
	for _, k := range keys {
		v, _ := attributes.Lookup(k)
		switch v := v.(type) {
		case jsontree.Number:
			if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
				return n
			}
		case string: // as older instrumentations send ports
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				return n
			}
		}
	}
	return otherwise
}

// fromFailure returns the failure of a request as an http_request.
func fromFailure(f *failure.Failure) (*payload.Call, payload.Reason, bool) {
	r, ok := requestOf(f.Span.Attributes, f.Span.Kind)
	if !ok {
		return nil, "", false
	}
	if f.Weight >= snapshot.MaxBytes || snapshot.MayBeCut(jsontree.Of("", r.URL, "", r.Path, "", r.Query, "", r.Body, "", r.Headers)) {
		return nil, payload.Truncated, true
	}
	call, reason := callOf(r)
	return call, reason, true
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
