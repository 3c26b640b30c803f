package trainstep

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// callOf makes what can be replayed of the command that started a process.
// Exactly one of its results is set.
func callOf(args []string, folder string) (*payload.Call, payload.Reason) {
	list, size := jsontree.Array{}, len(folder)
	for _, a := range args {
		list = append(list, a)
		size += len(a)
	}
	switch {
	case size > payload.MaxBytes:
		return nil, payload.TooLarge
	case len(args) == 0 || args[0] == "":
		return nil, payload.Invalid
	}
	lossy := slices.ContainsFunc(args, func(a string) bool { return !utf8.ValidString(a) })
	return &payload.Call{Tree: jsontree.Of("command", list, "working_directory", folder), Lossy: lossy, Weight: 2*size + 16*len(args)}, ""
}

// splitCommand takes a command that was sent as one text apart at its blanks.
// SDKs join the arguments without quoting them, others quote: where there are
// quotes or back-slashes, it is unknown which of them are the arguments'.
func splitCommand(line string) ([]string, payload.Reason) {
	if strings.ContainsAny(line, "\"'\\`$") {
		return nil, payload.CommandAmbiguous
	}
	return strings.Fields(line), ""
}
