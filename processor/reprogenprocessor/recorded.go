package reprogenprocessor

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// hasPayload reports whether a span has something that can be replayed.
func (r *reader) hasPayload(span ptrace.Span) bool {
	return r.hasCall(span.Attributes()) || generatedCode(span) != "" || hasConversation(span.Attributes())
}

// hasCall reports whether there is a recorded call, whole or in parts.
func (r *reader) hasCall(attributes pcommon.Map) bool {
	if firstText(attributes, r.names.Payload...) != "" || r.names.hasParts(attributes) {
		return true
	}
	_, uri := r.names.uri(attributes)
	return uri != ""
}

// The bounds of a reader's memory.
const (
	maxRecent      = 64
	maxRecentBytes = 4 << 10
)

// reader reads payloads. It knows the last ones again, because a failure that
// is frequent often has the same call. It is safe for concurrent use; what it
// returns is not to be changed.
type reader struct {
	maxBytes int
	names    *CallAttributesConfig
	capture  bool // whether content may be kept

	mu     sync.Mutex
	recent *simplelru.LRU[signedText, decoded]
}

// signedText is a payload with what its client says about it.
type signedText struct {
	text     string
	declared payload.Declared
	named    string
}

type decoded struct {
	call   *payload.Call
	reason payload.Reason
}

func newReader(cfg *Config) (*reader, error) {
	recent, err := simplelru.NewLRU[signedText, decoded](maxRecent, nil)
	return &reader{maxBytes: cfg.MaxPayloadBytes, names: &cfg.CallAttributes, capture: cfg.CaptureContent, recent: recent}, err
}

// call reads a span's recorded call, or says why there is none to use.
func (r *reader) call(attributes pcommon.Map) (*payload.Call, payload.Reason) {
	for _, name := range r.names.Payload {
		if v, ok := attributes.Get(name); ok && (v.Type() != pcommon.ValueTypeStr || v.Str() != "") {
			return r.payload(attributes, name, v)
		}
	}
	if name, uri := r.names.uri(attributes); uri != "" {
		declared := declaredFor(attributes, name)
		declared.SHA256 = strings.Clone(declared.SHA256)
		return payload.OfURI(strings.Clone(uri), declared)
	}
	switch {
	case r.names.hasParts(attributes):
		return r.callOfParts(attributes)
	case r.names.namesFunction(attributes):
		return nil, payload.NoArguments
	}
	return nil, payload.NoPayload
}

// payload reads the call that is one attribute.
func (r *reader) payload(attributes pcommon.Map, name string, v pcommon.Value) (*payload.Call, payload.Reason) {
	if v.Type() != pcommon.ValueTypeStr {
		return nil, payload.Invalid
	}
	if len(v.Str()) > r.maxBytes {
		return nil, payload.TooLarge
	}
	key := signedText{v.Str(), declaredFor(attributes, name), qualifiedName(attributes)}
	if len(key.text)+len(key.declared.SHA256)+len(key.named) > maxRecentBytes {
		// The tree must not share memory with the batch.
		return payload.Decode(strings.Clone(key.text), key.declared, key.named)
	}
	r.mu.Lock()
	known, ok := r.recent.Get(key)
	r.mu.Unlock()
	if ok {
		return known.call, known.reason
	}
	key.text, key.declared.SHA256 = strings.Clone(key.text), strings.Clone(key.declared.SHA256)
	known.call, known.reason = payload.Decode(key.text, key.declared, key.named)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent.Add(key, known)
	return known.call, known.reason
}

// declaredFor reads what a client says about the payload of that name.
func declaredFor(attributes pcommon.Map, name string) payload.Declared {
	declared := payload.Declared{Size: -1, SHA256: firstText(attributes, name+sha256Suffix)}
	if size, ok := attributes.Get(name + sizeSuffix); ok && size.Type() == pcommon.ValueTypeInt {
		declared.Size = size.Int()
	}
	return declared
}
