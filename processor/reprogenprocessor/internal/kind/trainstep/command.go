package trainstep

import (
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// callOf makes what can be replayed of the command that started a process.
// Exactly one of its results is set.
func callOf(command jsontree.Array, folder string) (*payload.Call, payload.Reason) {
	size, lossy := len(folder), false
	for _, a := range command {
		text, ok := a.(string)
		if !ok {
			return nil, payload.Invalid
		}
		size += len(text)
		lossy = lossy || !utf8.ValidString(text)
	}
	switch {
	case size > payload.MaxBytes:
		return nil, payload.TooLarge
	case len(command) == 0 || command[0] == "":
		return nil, payload.Invalid
	}
	return &payload.Call{Tree: jsontree.Of("command", command, "working_directory", folder), Lossy: lossy, Weight: 2*size + 16*len(command)}, ""
}

// splitCommand takes a command that was sent as one text apart at its blanks.
// SDKs join the arguments without quoting them, others quote: where there are
// quotes or back-slashes, it is unknown which of them are the arguments'.
func splitCommand(line string) (jsontree.Array, payload.Reason) {
	if strings.ContainsAny(line, "\"'\\`$") {
		return nil, payload.CommandAmbiguous
	}
	return jsontree.Texts(strings.Fields(line)), ""
}
