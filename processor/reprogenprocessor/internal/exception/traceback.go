package exception

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// FromTraceback reads a Python traceback that stands somewhere in a text, as
// Python and IPython print it. The exception is the last one of a chain: the
// one that the program ended with.
func FromTraceback(text string) (Exception, bool) {
	if !strings.Contains(text, header) {
		return Exception{}, false
	}
	text = stripColours(text)
	begin := strings.Index(text, header)
	if begin < 0 {
		return Exception{}, false
	}
	// Whole lines: IPython puts the class before the header.
	begin = strings.LastIndexByte(text[:begin], '\n') + 1
	stack := text[begin:]
	at, raised := 0, -1
	for line := range strings.Lines(stack) {
		named, _, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if isClass(named) || isDotted(named) && strings.Contains(named, ".") {
			raised = at
		}
		at += len(line)
	}
	if raised < 0 {
		return Exception{}, false
	}
	class, message, _ := strings.Cut(stack[raised:], ":")
	return Exception{
		Type:    strings.TrimSpace(class),
		Message: strings.TrimSpace(message),
		Stack:   strings.TrimRight(stack, "\n"),
	}, true
}

// outputKeys have what a code executor printed.
var outputKeys = vocabulary.Calls().Output

// Printed reads the traceback that a code executor returned as the
// code's output.
func Printed(attributes pcommon.Map) (Exception, bool) {
	for _, k := range outputKeys {
		if text := attr.Text(attributes, k); text != "" {
			if e, ok := FromTraceback(snapshot.New().Text(text, snapshot.MaxStack)); ok {
				return e, true
			}
		}
	}
	return Exception{}, false
}
