package request

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

//go:embed messages.txt
var listedMessages string

// message is an OTLP message that can contain values.
type message struct {
	memory int64
	// fields are the messages of fields by number, nil for those of others.
	fields []*message
}

// messages are those of the list, by name.
var messages = readMessages()

// readMessages reads the list. It runs at each start of the collector, and takes a tenth of
// the time that YAML would.
func readMessages() map[string]*message {
	table := make(map[string]*message)
	of := func(name string) *message {
		return shared.Entry(table, name, func() *message { return &message{memory: -1} })
	}
	for line := range strings.Lines(listedMessages) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		m := of(words[0])
		m.memory, _ = strconv.ParseInt(words[1], 10, 64)
		for _, field := range words[2:] {
			digits, name, _ := strings.Cut(field, ":")
			n, _ := strconv.Atoi(digits)
			m.fields = append(m.fields, make([]*message, max(0, n+1-len(m.fields)))...)
			m.fields[n] = of(name)
		}
	}
	for name, m := range table {
		if m.memory < 0 {
			panic("messages.txt has no line of " + name)
		}
	}
	return table
}

// Messages with rules of their own: a value in one more array or map, counts of a
// histogram, and what is passed over.
var (
	arrayValue, keyValueList = messages["arrayValue"], messages["keyValueList"]
	buckets                  = messages["buckets"]
	other, text              = messages["other"], messages["text"]
)

const (
	// memoryOfAny is the largest of messages.
	memoryOfAny = 224
	// memoryOfElement is that of an element of a list of numbers or texts in JSON.
	memoryOfElement = 24
	// memoryOfCount is that of a count of an exponential histogram, which can be
	// one byte in a request.
	memoryOfCount = 8
)

// child returns the message of a field, or nil if the field is none that counts.
func (m *message) child(field int32) *message {
	if int(field) < len(m.fields) {
		return m.fields[field]
	}
	return nil
}
