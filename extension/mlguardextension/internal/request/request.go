// Package request checks OTLP export requests before they are decoded, for
// nesting of values and number of messages, and estimates the memory of what they
// are decoded to. It reads a request in parts, in order and without recursion. Its
// own memory is proportional to the depth limit.
package request

import "reflect"

// Names of the limits.
const (
	LimitDepth    = "depth"
	LimitMessages = "messages"
	LimitMemory   = "memory_mib"
)

// Limits are the limits of a request.
type Limits struct {
	// Depth is the number of arrays and maps that enclose a value.
	Depth int
	// Messages is the number of resources, scopes, items, attributes, values
	// and their lists, all together.
	Messages int
}

// Check reads a request, and reports the limit that it exceeds and the memory that
// it needs once it is decoded.
type Check interface {
	Write(part []byte)
	Exceeded() string
	Memory() int64
}

// NewJSON returns a check of an OTLP/JSON request of any signal.
func NewJSON(limits Limits) Check { return &JSON{limits: limits} }

// requests are the binary requests: the default path of their signal, empty where it is
// not stable yet, the name of pdata's type, and their message.
var requests = [...]struct {
	path, name string
	root       *message
}{
	{"/v1/traces", "ExportTraceServiceRequest", messages["tracesRequest"]},
	{"/v1/metrics", "ExportMetricsServiceRequest", messages["metricsRequest"]},
	{"/v1/logs", "ExportLogsServiceRequest", messages["logsRequest"]},
	{"", "ExportProfilesServiceRequest", messages["profilesRequest"]},
}

// NewProtobuf returns a check of a binary request that was posted to a path. On
// an OTLP default path it is read as a request of the path's signal. On any
// other path, which a receiver can have, it is read as each signal.
func NewProtobuf(path string, limits Limits) Check {
	for _, of := range requests {
		if path != "" && path == of.path {
			return newProtobuf(of.root, limits)
		}
	}
	var all signals
	for i, of := range requests {
		all[i] = newProtobuf(of.root, limits)
	}
	return all
}

type signals [len(requests)]*Protobuf

// Write reads the next part of the request.
func (s signals) Write(part []byte) {
	for _, p := range s {
		p.Write(part)
	}
}

// Exceeded returns the limit that the request exceeds as one of the signals.
func (s signals) Exceeded() string {
	for _, p := range s {
		if p.exceeded != "" {
			return p.exceeded
		}
	}
	return ""
}

// Memory returns the memory that the request needs as one of the signals, at most.
func (s signals) Memory() (most int64) {
	for _, p := range s {
		most = max(most, p.Memory())
	}
	return most
}

// NewOf returns a check of the message that is decoded into target, or nil if
// target is no export request. pdata does not export the types, so they are
// recognized by name.
func NewOf(target any, limits Limits) Check {
	t := reflect.TypeOf(target)
	if t == nil || t.Kind() != reflect.Pointer {
		return nil
	}
	for _, of := range requests {
		if t.Elem().Name() == of.name {
			return newProtobuf(of.root, limits)
		}
	}
	return nil
}

// JSON checks an OTLP/JSON export request by its brackets outside of strings.
// An array has three brackets a level, a map four.
type JSON struct {
	limits   Limits
	exceeded string

	brackets, objects int
	memory            int64
	text, escaped     bool
}

const (
	bracketsPerLevel = 4
	// bracketsAround is the largest number of brackets around a value, that of
	// an exemplar's attribute, plus a margin for later versions of OTLP.
	bracketsAround = 20
)

// Write reads the next part of the request.
func (j *JSON) Write(part []byte) {
	if j.exceeded != "" {
		return
	}
	j.memory += int64(len(part))
	for _, b := range part {
		switch {
		case j.escaped:
			j.escaped = false
		case j.text:
			j.escaped, j.text = b == '\\', b != '"'
		case b == '"':
			j.text = true
		case b == '{' || b == '[':
			j.open(b)
		case b == '}' || b == ']':
			j.brackets--
		case b == ',':
			j.memory += memoryOfElement
		case b == 'n': // null, of which the decoder makes an empty message
			j.object()
		}
	}
}

func (j *JSON) open(b byte) {
	if j.brackets++; j.brackets > j.limits.Depth*bracketsPerLevel+bracketsAround {
		j.exceeded = LimitDepth
	}
	if b == '{' {
		j.object()
	}
}

func (j *JSON) object() {
	j.memory += memoryOfAny
	if j.objects++; j.objects > j.limits.Messages {
		j.exceeded = LimitMessages
	}
}

// Memory returns how many bytes the decoder keeps for what was read, at most.
func (j *JSON) Memory() int64 { return j.memory }

// Exceeded returns the limit that the request exceeds so far, or "".
func (j *JSON) Exceeded() string { return j.exceeded }
