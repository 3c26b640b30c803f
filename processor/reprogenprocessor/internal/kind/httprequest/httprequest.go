// Package httprequest is the kind of artifacts that send a request to a server which
// their user names.
package httprequest

import (
	"cmp"
	"embed"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

//go:embed script/*.py.tmpl
var files embed.FS

// New returns the kind.
func New() *kind.Kind {
	return &kind.Kind{
		Name:           failure.HTTPRequest,
		FromFailure:    fromFailure,
		IsTransport:    isRequest,
		WithoutContent: withoutContent,
		Parts:          func(jsontree.Object) []string { return []string{"files", "connect", "address", "request"} },
		Files:          files,
		Gates:          []kind.Gate{kind.AllowedHosts},
		Flags:          flags,
		Head:           head,
	}
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

// methods are the words of HTTP itself.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

// withoutContent returns a request with its method and its numbers, and what was
// withheld.
func withoutContent(tree jsontree.Object) (jsontree.Object, []redact.Withheld) {
	out, withheld := redact.Tree(tree)
	method := tree.Text("method")
	if !methods[method] {
		return out, withheld
	}
	out.Set("method", method)
	return out, slices.DeleteFunc(withheld, func(w redact.Withheld) bool { return w.Path == "payload.method" })
}

func flags(spec jsontree.Object) string {
	flags := " --base-url URL"
	call := kind.Member(spec, "payload")
	method := call.Text("method")
	if body, _ := call.Lookup("body"); body == nil && (method == "POST" || method == "PUT" || method == "PATCH") {
		flags += " --body FILE"
	}
	return flags + kind.SetFlag(spec, "payload")
}

// head writes the request line and the body.
func head(h kind.Head, spec jsontree.Object) {
	call := kind.Member(spec, "payload")
	h.Add("request", call.Text("method")+" "+call.Text("target"))
	if body := call.Text("body"); body != "" {
		h.List("body", strings.Split(body, "\n"), 8)
	}
}
