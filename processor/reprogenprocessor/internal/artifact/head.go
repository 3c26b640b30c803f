package artifact

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

const (
	// maxHeadColumns is the length of a head's line, its label included.
	maxHeadColumns = kind.MaxHeadText + 11
	// maxFlags is the length of flags up to which what a command does is aligned.
	maxFlags = 42
)

// headOf returns what a person reads first: the error, the call and what to
// run. It is abbreviated, and for reading only: the script works with the data
// that follow it. Each line begins with a label or a space.
func headOf(f *failure.Failure, k *kind.Kind, spec jsontree.Object) string {
	var h kind.Head
	expect, source := spec.Object("expect"), spec.Object("source")
	h.Add("error", packed(strings.TrimSuffix(cmp.Or(expect.Text("type"), "(type unknown)")+": "+expect.Text("message"), ": ")))
	if trigger := expect.Text("trigger"); trigger != "" {
		h.Add("trigger", trigger)
	}
	if k.Head != nil {
		k.Head(&h, spec)
	} else {
		h.Add("no call", reasons[string(f.Reason)])
	}
	h.Add("where", packed("service "+cmp.Or(source.Text("service"), "(unknown)")+", span "+cmp.Or(source.Text("span"), "(unnamed)")))
	h.Add("trace", f.Span.TraceID+", span "+f.Span.SpanID+", "+source.Text("time"))
	if n := len(spec.Array("redacted")); n > 0 {
		h.Add("withheld", fmt.Sprintf("%d values; --info lists them", n))
	}
	if k.Parts == nil {
		h.Add("run", "python3 repro.py   show all that is known; nothing can be replayed")
		return h.String()
	}
	flags := flagsFor(k, spec)
	// Beside more flags there is no room for what the line does.
	label, width := "run", min(len(" --plain"+flags), maxFlags)
	for _, line := range [...]struct{ flags, effect string }{
		{" --dry-run", "show the call, and whether its names permit it"},
		{flags, "make the call in a child process, and judge it"},
		{" --plain" + flags, "print the call alone, for a bug report"},
		{" --help", "list the flags and the exit codes"},
	} {
		h.Add(label, fmt.Sprintf("python3 repro.py%-*s   %s", max(width, 10), line.flags, line.effect))
		label = ""
	}
	return h.String()
}

// packed returns recorded text with one space for several: with many, a terminal
// that wraps the line would show the rest like a line of its own.
func packed(text string) string { return spaces.ReplaceAllString(text, " ") }

var spaces = regexp.MustCompile(` {2,}`)
