// Package pythoncall is the kind of artifacts that call a recorded Python
// function with the recorded arguments.
package pythoncall

import (
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/lru"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// The bounds of a reader's cache.
const (
	maxCached      = 64
	maxCachedBytes = 4 << 10
)

// New returns the kind.
func New() *kind.Kind {
	r := newReader()
	return &kind.Kind{
		Name:           failure.PythonCall,
		Recognise:      func(span ptrace.Span) bool { return hasCall(span.Attributes()) },
		Read:           func(span ptrace.Span) (*payload.Call, payload.Reason) { return r.call(span.Attributes()) },
		Missing:        missing,
		IsPayload:      isPayload,
		CallAttributes: slices.Concat(callAttributes(), []string{attr.CodeFunctionName, attr.CodeNamespace, attr.CodeFunction}),
		WithoutContent: withoutContent,
		Parts:          scriptParts,
		Files:          files,
		TakesSeed:      true,
		Flags:          flags,
		Needs:          needs,
		Head:           head,
	}
}

// reader reads calls. It caches those that it decoded last, because a failure
// that is frequent often has the same call. It is safe for concurrent use; what
// it returns must not be changed.
type reader struct {
	mu     sync.Mutex
	cached *simplelru.LRU[signedText, decoded]
}

// signedText is a payload with what its client declared of it.
type signedText struct {
	text     string
	declared Declared
	named    string
}

type decoded struct {
	call   *payload.Call
	reason payload.Reason
}

func newReader() *reader {
	return &reader{cached: lru.New[signedText, decoded](maxCached, nil)}
}

// hasCall reports whether there is a recorded call, whole or in parts.
func hasCall(attributes pcommon.Map) bool {
	if attr.Text(attributes, keys.Payload...) != "" || hasParts(attributes) {
		return true
	}
	_, uri := uriOf(attributes)
	return uri != ""
}

// missing returns why a span has no call, or "".
func missing(span ptrace.Span) payload.Reason {
	for _, name := range keys.Payload {
		if v, ok := span.Attributes().Get(name); ok && v.Type() != pcommon.ValueTypeStr {
			return payload.Invalid
		}
	}
	if namesFunction(span.Attributes()) {
		return payload.NoArguments
	}
	return ""
}

// call reads a span's recorded call.
func (r *reader) call(attributes pcommon.Map) (*payload.Call, payload.Reason) {
	for _, name := range keys.Payload {
		if v, ok := attributes.Get(name); ok && (v.Type() != pcommon.ValueTypeStr || v.Str() != "") {
			return r.payload(attributes, name, v)
		}
	}
	if name, uri := uriOf(attributes); uri != "" {
		declared := declaredFor(attributes, name)
		declared.SHA256 = strings.Clone(declared.SHA256)
		return ofURI(strings.Clone(uri), declared)
	}
	return callOfParts(attributes)
}

// payload reads the call that is one attribute.
func (r *reader) payload(attributes pcommon.Map, name string, v pcommon.Value) (*payload.Call, payload.Reason) {
	if v.Type() != pcommon.ValueTypeStr {
		return nil, payload.Invalid
	}
	key := signedText{v.Str(), declaredFor(attributes, name), attr.QualifiedName(attributes)}
	if len(key.text) > payload.MaxBytes {
		return nil, payload.TooLarge
	}
	isCached := len(key.text)+len(key.declared.SHA256)+len(key.named) <= maxCachedBytes
	if isCached {
		r.mu.Lock()
		known, ok := r.cached.Get(key)
		r.mu.Unlock()
		if ok {
			return known.call, known.reason
		}
	}
	// Neither the key nor the tree may share memory with the batch.
	key.text, key.declared.SHA256, key.named = strings.Clone(key.text), strings.Clone(key.declared.SHA256), strings.Clone(key.named)
	call, reason := Decode(key.text, key.declared, key.named)
	if isCached {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cached.Add(key, decoded{call, reason})
	}
	return call, reason
}

// declaredFor reads what a client declared of the payload of that name.
func declaredFor(attributes pcommon.Map, name string) Declared {
	declared := Declared{Size: -1, SHA256: attr.Text(attributes, name+sha256Suffix)}
	if size, ok := attributes.Get(name + sizeSuffix); ok && size.Type() == pcommon.ValueTypeInt {
		declared.Size = size.Int()
	}
	return declared
}
