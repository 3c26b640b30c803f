package payload

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// OfCommand makes what can be replayed of the command that started a process.
// Exactly one of its results is set.
func OfCommand(args []string, folder string, maxBytes int) (*Call, Reason) {
	list, size := jsontree.Array{}, len(folder)
	for _, a := range args {
		list = append(list, a)
		size += len(a)
	}
	switch {
	case size > maxBytes:
		return nil, TooLarge
	case len(args) == 0 || args[0] == "":
		return nil, Invalid
	}
	lossy := slices.ContainsFunc(args, func(a string) bool { return !utf8.ValidString(a) })
	return &Call{Tree: jsontree.Of("command", list, "working_directory", folder), Lossy: lossy, Weight: 2*size + 16*len(args)}, ""
}

// SplitCommand takes a command that was sent as one text apart at its blanks.
// SDKs join the arguments without quoting them, others quote: where there are
// quotes or back-slashes, it cannot be told which of them are the arguments'.
func SplitCommand(line string) ([]string, Reason) {
	if strings.ContainsAny(line, "\"'\\`$") {
		return nil, CommandAmbiguous
	}
	return strings.Fields(line), ""
}
