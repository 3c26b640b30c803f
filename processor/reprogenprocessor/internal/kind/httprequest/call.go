package httprequest

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// request is a request of HTTP as telemetry has it.
type request struct {
	// Method is the request's, in capitals.
	Method string
	// URL is the whole address; where it is none, it is made of those below.
	URL string
	// Scheme, Host, Path and Query are its parts. Path may have the query.
	Scheme, Host, Path, Query string
	// Port is 0 where none was recorded.
	Port int64
	// Status is that of the answer, or 0.
	Status int64
	// Server is true where the server recorded it, and not the client.
	Server bool
	// Headers are lists of texts, by the headers' names. Of these, callOf
	// keeps what a script sends.
	Headers jsontree.Object
	// Body is the body's text, or nil where none was recorded.
	Body any
	// BodySize is the body's length in bytes, or negative.
	BodySize int64
}

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

// callOf makes what can be replayed of a request. Exactly one of its results
// is set.
func callOf(r request) (*payload.Call, payload.Reason) {
	address, target := r.place()
	if !methodForm.MatchString(r.Method) || target == "" {
		return nil, payload.Invalid
	}
	body, _ := r.Body.(string)
	size := len(address) + len(target) + len(body)
	headers := jsontree.Object{}
	for _, h := range r.Headers {
		name := strings.ReplaceAll(strings.ToLower(h.Key), "_", "-")
		if _, twice := headers.Lookup(name); sentHeaders[name] && !twice {
			headers = append(headers, jsontree.Member{Key: name, Value: h.Value})
			size += len(name) + len(jsontree.Encode(h.Value))
		}
	}
	if size > payload.MaxBytes {
		return nil, payload.TooLarge
	}
	tree := jsontree.Of("method", r.Method, "target", target, "address", address, "status", jsontree.Int(r.Status),
		"server", r.Server, "headers", headers, "body", r.Body)
	if r.BodySize >= 0 {
		tree = append(tree, jsontree.Member{Key: "body_size", Value: jsontree.Int(r.BodySize)})
	}
	return &payload.Call{Tree: tree, Lossy: !utf8.ValidString(target + body), Weight: payload.WeightPerByte * size}, ""
}

// place returns scheme, host and port, and path and query.
func (r request) place() (address, target string) {
	if scheme, rest, ok := strings.Cut(r.URL, "://"); ok {
		rest, _, _ = strings.Cut(rest, "#")
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		authority := rest[strings.LastIndexByte(rest[:end], '@')+1 : end]
		return scheme + "://" + authority, rooted(rest[end:])
	}
	if r.Path == "" {
		return "", ""
	}
	target = r.Path
	if r.Query != "" && !strings.Contains(target, "?") {
		target += "?" + strings.TrimPrefix(r.Query, "?")
	}
	if address = r.Host; address != "" && r.Port > 0 {
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), strconv.FormatInt(r.Port, 10))
		}
	}
	if address != "" && r.Scheme != "" {
		address = r.Scheme + "://" + address
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
