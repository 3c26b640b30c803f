package input

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// Details are the attributes and events of a span: pairs of texts, each after its length.
// An event is a pair without a key, and the pairs after it are its attributes.
type Details []byte

// Attribute adds an attribute of the span, or of the event that was added last.
func (d Details) Attribute(key string, value []byte) Details {
	d = append(binary.AppendUvarint(d, uint64(len(key))), key...)
	return append(binary.AppendUvarint(d, uint64(len(value))), value...)
}

// Event adds an event at an offset from the span's start, in nanoseconds.
func (d Details) Event(name string, offset int64) Details {
	return d.Attribute("", append(strconv.AppendInt(nil, offset, 10), " "+name...))
}

// Rows returns what was added. of returns a value as it is shown.
func (d Details) Rows(of func(key, value string) string) (row api.SpanDetail) {
	next := func() string {
		n, size := binary.Uvarint(d)
		text := string(d[size : size+int(n)]) // #nosec G115 -- Attribute has written it
		d = d[size+len(text):]
		return text
	}
	attributes := &row.Attributes
	for len(d) > 0 {
		switch key, value := next(), next(); key {
		case "":
			offset, name, _ := strings.Cut(value, " ")
			ns, _ := strconv.ParseInt(offset, 10, 64) // Event has written it.
			row.Events = append(row.Events, api.SpanEvent{Name: name, Offset: float64(ns) / 1e9})
			attributes = &row.Events[len(row.Events)-1].Attributes
		default:
			*attributes = append(*attributes, api.Setting{Name: key, Value: of(key, value)})
		}
	}
	api.MakeLists(&row)
	return row
}
