package httprequest

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

var methodForm = regexp.MustCompile(`^[A-Z][A-Z-]{0,31}$`)

// sentHeaders are the recorded headers that a script sends: those that describe
// the body, the wanted answer or the version of the API, and the keys, whose
// values are withheld. Any other may change the path, method, host or user for
// a proxy or a framework; trace.json shows it.
var sentHeaders = map[string]bool{
	"accept": true, "accept-charset": true, "accept-language": true, "content-type": true, "content-language": true,
	"if-match": true, "if-none-match": true, "if-modified-since": true, "if-unmodified-since": true, "if-range": true,
	"range": true, "prefer": true, "user-agent": true, "idempotency-key": true,
	"anthropic-version": true, "anthropic-beta": true, "openai-beta": true,
	"x-api-key": true, "api-key": true,
}

// methodKeys name the method of a request, in the semantic conventions and
// before 1.20.
var methodKeys = [...]string{"http.request.method", "http.method"}

// attrRequestHeader is what the names of recorded headers begin with.
const attrRequestHeader = "http.request.header."

// callOf makes what can be replayed of the request that a span is, by the names of the
// semantic conventions and those from before 1.20, and reports whether it is one: whether
// there is a method and a path.
func callOf(attributes jsontree.Object, kind string) (call *failure.Call, reason failure.Reason, ok bool) {
	method := text(attributes, methodKeys[:]...)
	if method == "_OTHER" {
		method = text(attributes, "http.request.method_original")
	}
	if method == "" || text(attributes, "url.full", "http.url", "url.path", "http.target") == "" {
		return nil, "", false
	}
	address, target := placeOf(attributes)
	if !methodForm.MatchString(method) || target == "" {
		return nil, failure.Invalid, true
	}
	// The conventions have no name for a body; these are in use.
	body := text(attributes, "http.request.body", "http.request.body.content")
	tree := jsontree.Of(
		"method", method, "target", target, "address", address,
		"status", jsontree.Int(number(attributes, 0, "http.response.status_code", "http.status_code")),
		"server", kind == ptrace.SpanKindServer.String(),
		"headers", headersOf(attributes), "body", nil,
	)
	if body != "" {
		tree.Set("body", body)
	}
	tree = append(tree, jsontree.OfKnown(
		"body_size", jsontree.Known(number(attributes, -1, "http.request.body.size", "http.request_content_length")))...)
	size := len(jsontree.Encode(tree))
	if size > failure.MaxCallBytes {
		return nil, failure.TooLarge, true
	}
	return &failure.Call{Tree: tree, Lossy: !utf8.ValidString(target + body), Weight: failure.WeightPerByte * size}, "", true
}

// headersOf returns the recorded headers that a script sends, which are lists of texts.
func headersOf(attributes jsontree.Object) jsontree.Object {
	headers := jsontree.Object{}
	for _, m := range attributes {
		name, ok := strings.CutPrefix(m.Key, attrRequestHeader)
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
		if _, twice := headers.Lookup(name); ok && sentHeaders[name] && !twice {
			headers = append(headers, jsontree.Member{Key: name, Value: m.Value})
		}
	}
	return headers
}

// placeOf returns scheme, host and port, and path and query.
func placeOf(attributes jsontree.Object) (address, target string) {
	if scheme, rest, ok := strings.Cut(text(attributes, "url.full", "http.url"), "://"); ok {
		rest, _, _ = strings.Cut(rest, "#")
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		authority := rest[strings.LastIndexByte(rest[:end], '@')+1 : end]
		return scheme + "://" + authority, rooted(rest[end:])
	}
	target = text(attributes, "url.path", "http.target")
	if target == "" {
		return "", ""
	}
	if query := text(attributes, "url.query"); query != "" && !strings.Contains(target, "?") {
		target += "?" + strings.TrimPrefix(query, "?")
	}
	address = text(attributes, "server.address", "http.host", "net.peer.name", "net.host.name")
	if port := number(attributes, 0, "server.port", "net.peer.port", "net.host.port"); address != "" && port > 0 {
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), strconv.FormatInt(port, 10))
		}
	}
	if scheme := text(attributes, "url.scheme", "http.scheme"); address != "" && scheme != "" {
		address = scheme + "://" + address
	}
	return address, rooted(target)
}

// rooted makes a path of what may have only a query.
func rooted(target string) string {
	if !strings.HasPrefix(target, "/") {
		return "/" + target
	}
	return target
}

// text returns the first of the attributes that is a text and not empty.
func text(attributes jsontree.Object, keys ...string) string {
	for _, k := range keys {
		if v := attributes.Text(k); v != "" {
			return v
		}
	}
	return ""
}

// number returns the first of the attributes that is a whole number. Older
// instrumentations send ports as texts.
func number(attributes jsontree.Object, otherwise int64, keys ...string) int64 {
	for _, k := range keys {
		v, _ := attributes.Lookup(k)
		if n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64); err == nil {
			return n
		}
	}
	return otherwise
}
