package artifact

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/python"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// maxReportValue is the length at which a value is cut in the report; the
// other files have it whole.
const maxReportValue = 8 << 10

// flagsFor returns the flags that the script cannot do without.
func flagsFor(k *kind.Kind, spec jsontree.Object) string {
	if k.Flags == nil {
		return ""
	}
	return k.Flags(spec)
}

//go:embed report.md.tmpl
var reportText string

var report = template.Must(template.New("report").Funcs(template.FuncMap{"fence": fence, "lines": linesOf, "time": timeText}).Parse(reportText))

// reportOf returns report.md, the text of an issue. It takes its values from
// the redacted spec, and puts each into a fence that it cannot leave.
func reportOf(f *failure.Failure, k *kind.Kind, spec jsontree.Object, redactor *redact.Redactor) ([]byte, error) {
	var needs []string
	if k.Needs != nil {
		needs = k.Needs(spec)
	}
	var b bytes.Buffer
	err := report.Execute(&b, struct {
		*failure.Failure
		Spec              jsontree.Object
		Replays           bool
		Flags, Why, Stack string
		Needs             []string
	}{
		Failure: f, Spec: spec, Replays: k.Parts != nil, Flags: flagsFor(k, spec), Why: reasons[string(f.Reason)], Needs: needs,
		Stack: redactor.Text("report.stack", f.Error.Stack),
	})
	return b.Bytes(), err
}

func linesOf(lines jsontree.Array) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// fence returns a value as a code block whose fence is longer than any run of
// back-ticks in it. Control characters, which could hide or reorder text on a
// screen, are written as escapes.
func fence(title string, v any) string {
	value, isText := v.(string)
	if !isText {
		value = string(jsontree.EncodeIndent(v))
	}
	if value == "" {
		return ""
	}
	if len(value) > maxReportValue {
		value = value[:maxReportValue] + "\n... (cut; the other files have more)"
	}
	lines := strings.Split(strings.TrimRight(value, "\n"), "\n")
	for i, line := range lines {
		lines[i] = python.Spelled(line, false)
	}
	longest := 2
	for _, run := range ticks.FindAllString(value, -1) {
		longest = max(longest, len(run))
	}
	mark := strings.Repeat("`", longest+1)
	return fmt.Sprintf("%s:\n\n%stext\n%s\n%s\n\n", title, mark, strings.Join(lines, "\n"), mark)
}

var ticks = regexp.MustCompile("`+")
