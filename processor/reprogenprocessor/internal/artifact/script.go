package artifact

import (
	"bytes"
	"embed"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

//go:embed script/*.py.tmpl
var parts embed.FS

// order is the order of the script's parts. The first has the hole, which is
// inside the only string literal with three single quotes.
var order = [...]string{
	"start", "output", "arguments", "gates", "plan", "judging", "child", "parent", "main",
}

// template is the script, put together from its parts.
var template = func() []byte {
	var whole []byte
	for _, name := range order {
		part, err := parts.ReadFile("script/" + name + ".py.tmpl")
		if err != nil {
			panic(err) // a part was renamed in one of the two places
		}
		whole = append(whole, part...)
	}
	return whole
}()

var hole = []byte("@SPEC@")

// maxScriptBytes leaves room for the other two files.
const maxScriptBytes = MaxBytes - maxTraceBytes - 64<<10

// renderScript puts the data into the template's hole and asserts that the
// result is the template and data, and nothing else.
func renderScript(spec jsontree.Object) ([]byte, error) {
	before, after, ok := bytes.Cut(template, hole)
	if !ok {
		return nil, ErrUnsafe
	}
	data := jsontree.EncodeIndent(spec)
	if len(before)+len(data)+len(after) > maxScriptBytes {
		// Deep nesting makes most of a file out of indentation.
		data = jsontree.Encode(spec)
	}
	script := bytes.Join([][]byte{before, data, after}, nil)
	if err := checkScript(script); err != nil {
		return nil, err
	}
	return script, nil
}

// checkScript asserts what keeps data from becoming code: no byte outside
// line feed and printable ASCII, and no way out of the one string literal.
func checkScript(script []byte) error {
	if len(script) > maxScriptBytes {
		return ErrTooLarge
	}
	for _, b := range script {
		if b != '\n' && (b < 0x20 || b > 0x7E) {
			return ErrUnsafe
		}
	}
	if bytes.Count(script, []byte("'''")) != 2 {
		return ErrUnsafe
	}
	return nil
}
