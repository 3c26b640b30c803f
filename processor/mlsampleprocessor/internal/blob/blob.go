// Package blob has the form in which spans wait: the bytes of OTLP's encoding,
// cut between spans. The resource and the scope of several spans are kept once.
//
// It reads only what the Collector's marshaler has just written, and nothing that
// a client sent; it returns an error for anything else.
package blob

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// OTLP's messages within each other: TracesData, ResourceSpans and ScopeSpans have the
// next one in the field with this number.
const (
	inTraces   = protowire.Number(1)
	inResource = protowire.Number(2)
	inScope    = protowire.Number(2)
)

var errForm = errors.New("the bytes are no encoding of traces")

// Header is the encoded resource and scope of spans.
type Header struct {
	// Resource has the fields of ResourceSpans except its scopes, Scope those of
	// ScopeSpans except its spans.
	Resource, Scope string
	// Users is how many Fragments that wait have the header.
	Users int
}

// Fragment is encoded spans that arrived together and have a header in common.
type Fragment struct {
	// Header is nil if Data is empty, and only the number of spans counts.
	Header *Header
	Data   []byte
	Spans  int64
}

// Spans calls yield for each span of an encoded TracesData, in order, with its
// header and its bytes, which contain the field's tag and length. The bytes are
// parts of data.
func Spans(data []byte, yield func(header *Header, span []byte)) error {
	return divide(data, inTraces, nil, func(_, resource []byte) error {
		// Fields around others may be after them, so they are read first.
		var around []byte
		if err := divide(resource, inResource, &around, nil); err != nil {
			return err
		}
		ofResource := string(around)
		return divide(resource, inResource, nil, func(_, scope []byte) error {
			var around []byte
			if err := divide(scope, inScope, &around, nil); err != nil {
				return err
			}
			header := &Header{Resource: ofResource, Scope: string(around)}
			return divide(scope, inScope, nil, func(whole, _ []byte) error {
				yield(header, whole)
				return nil
			})
		})
	})
}

// Append appends the encoding of a ResourceSpans with one scope to a TracesData.
func Append(traces []byte, header *Header, spans []byte) []byte {
	scope := len(header.Scope) + len(spans)
	resource := len(header.Resource) + protowire.SizeTag(inResource) + protowire.SizeBytes(scope)
	traces = protowire.AppendTag(traces, inTraces, protowire.BytesType)
	traces = protowire.AppendVarint(traces, uint64(resource)) // #nosec G115 -- a length
	traces = append(traces, header.Resource...)
	traces = protowire.AppendTag(traces, inResource, protowire.BytesType)
	traces = protowire.AppendVarint(traces, uint64(scope)) // #nosec G115 -- a length
	traces = append(traces, header.Scope...)
	return append(traces, spans...)
}

// divide calls yield for each field of a message that has the number, with all its
// bytes and with its content, and appends the other fields to rest. Both may be nil.
func divide(message []byte, number protowire.Number, rest *[]byte, yield func(whole, content []byte) error) error {
	for len(message) > 0 {
		found, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return errForm
		}
		size := protowire.ConsumeFieldValue(found, kind, message[tag:])
		if size < 0 || found == number && kind != protowire.BytesType {
			return errForm
		}
		whole := message[:tag+size]
		message = message[tag+size:]
		switch {
		case found != number && rest != nil:
			*rest = append(*rest, whole...)
		case found == number && yield != nil:
			content, _ := protowire.ConsumeBytes(whole[tag:])
			if err := yield(whole, content); err != nil {
				return err
			}
		}
	}
	return nil
}
