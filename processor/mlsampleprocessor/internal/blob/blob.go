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

// Numbers of OTLP's fields. In TracesData, ResourceSpans and ScopeSpans those of
// what they contain are the same for our purpose: resource_spans, scope_spans and
// spans.
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
}

// Spans calls yield for each span of an encoded TracesData, in order, with its
// header and its bytes, which contain the field's tag and length. The bytes are
// parts of data.
func Spans(data []byte, yield func(header *Header, span []byte)) error {
	return fields(data, func(number protowire.Number, _, resource []byte) error {
		if number != inTraces {
			return nil
		}
		var of Header
		rest, err := without(resource, inResource)
		if err != nil {
			return err
		}
		of.Resource = string(rest)
		return fields(resource, func(number protowire.Number, _, scope []byte) error {
			if number != inResource {
				return nil
			}
			rest, err := without(scope, inScope)
			if err != nil {
				return err
			}
			header := &Header{of.Resource, string(rest)}
			return fields(scope, func(number protowire.Number, whole, _ []byte) error {
				if number == inScope {
					yield(header, whole)
				}
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

// without returns the fields of a message except those of a number.
func without(message []byte, but protowire.Number) (rest []byte, err error) {
	err = fields(message, func(number protowire.Number, whole, _ []byte) error {
		if number != but {
			rest = append(rest, whole...)
		}
		return nil
	})
	return rest, err
}

// fields calls yield for each field of a message with all its bytes, and with its
// content if it has a length.
func fields(message []byte, yield func(number protowire.Number, whole, content []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return errForm
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return errForm
		}
		var content []byte
		if kind == protowire.BytesType {
			content, _ = protowire.ConsumeBytes(message[tag:])
		}
		if err := yield(number, message[:tag+size], content); err != nil {
			return err
		}
		message = message[tag+size:]
	}
	return nil
}
