package reprogenprocessor

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

func isPayloadKey(key string) bool {
	return key == attrPayload || strings.HasPrefix(key, attrPayload+".")
}

func hasPayload(span ptrace.Span) bool {
	return hasText(span.Attributes(), attrPayload) || generatedCode(span) != "" || hasConversation(span.Attributes())
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

	mu     sync.Mutex
	recent *simplelru.LRU[signedText, decoded]
}

// signedText is a payload with what its client says about it.
type signedText struct {
	text     string
	declared payload.Declared
}

type decoded struct {
	call   *payload.Call
	reason payload.Reason
}

func newReader(maxBytes int) (*reader, error) {
	recent, err := simplelru.NewLRU[signedText, decoded](maxRecent, nil)
	return &reader{maxBytes: maxBytes, recent: recent}, err
}

// payload reads the span's payload, or says why there is none to use.
func (r *reader) payload(attributes pcommon.Map) (*payload.Call, payload.Reason) {
	v, ok := attributes.Get(attrPayload)
	if !ok {
		return nil, payload.NoPayload
	}
	if v.Type() != pcommon.ValueTypeStr {
		return nil, payload.Invalid
	}
	if len(v.Str()) > r.maxBytes {
		return nil, payload.TooLarge
	}
	declared := payload.Declared{Size: -1, SHA256: firstText(attributes, attrPayloadSHA256)}
	if size, ok := attributes.Get(attrPayloadSize); ok && size.Type() == pcommon.ValueTypeInt {
		declared.Size = size.Int()
	}
	if len(v.Str())+len(declared.SHA256) > maxRecentBytes {
		// The tree must not share memory with the batch.
		return payload.Decode(strings.Clone(v.Str()), declared)
	}
	key := signedText{v.Str(), declared}
	r.mu.Lock()
	known, ok := r.recent.Get(key)
	r.mu.Unlock()
	if ok {
		return known.call, known.reason
	}
	key.text, key.declared.SHA256 = strings.Clone(key.text), strings.Clone(key.declared.SHA256)
	known.call, known.reason = payload.Decode(key.text, key.declared)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent.Add(key, known)
	return known.call, known.reason
}
