package artifact

import (
	"bytes"
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

//go:embed script/*.py.tmpl
var files embed.FS

var hole = []byte("@SPEC@")

// templateOf returns the script of a kind for a SPEC, with the hole for its data.
func (b *Builder) templateOf(k *kind.Kind, spec jsontree.Object) []byte {
	return bytes.Join(mlattr.Mapped(partsOf(k, spec), func(name string) []byte { return b.parts[name] }), nil)
}

// renderScript puts a failure's head and data into the hole, and asserts that
// the result is the template with them, and nothing else.
func (b *Builder) renderScript(f *failure.Failure, k *kind.Kind, spec jsontree.Object, maxBytes int) ([]byte, error) {
	before, after, ok := bytes.Cut(b.templateOf(k, spec), hole)
	if !ok {
		return nil, errUnsafe
	}
	script := bytes.Join([][]byte{before, []byte(headOf(f, k, spec)), {'\n'}, encodeLines(spec), after}, nil)
	if err := checkScript(script, maxBytes); err != nil {
		return nil, err
	}
	return script, nil
}

// encodeLines writes an object as JSON: short members together on a line, a
// long one on a line of its own. The first line begins with the bracket.
func encodeLines(o jsontree.Object) []byte {
	b := []byte{'{'}
	line := 0 // where the present line begins
	for i, m := range o {
		text := slices.Concat(jsontree.Encode(m.Key), []byte(": "), jsontree.EncodeSpaced(m.Value))
		switch {
		case i == 0:
		case len(b)-line+len(text) < maxHeadColumns:
			b = append(b, ", "...)
		default:
			b = append(b, ",\n"...)
			line = len(b)
		}
		b = append(b, text...)
	}
	return append(b, '}')
}

// checkScript asserts what keeps data from becoming code: no byte outside
// line feed and printable ASCII, and no way out of the one string literal.
func checkScript(script []byte, maxBytes int) error {
	isOther := func(r rune) bool { return r != '\n' && (r < 0x20 || r > 0x7E) }
	switch {
	case len(script) > maxBytes:
		return ErrTooLarge
	case bytes.ContainsFunc(script, isOther) || bytes.Count(script, []byte("'''")) != 2:
		return errUnsafe
	}
	return nil
}

// shortened returns a part as scripts have it: without docstrings, blank lines
// and comments that have a line of their own. The first lines of a file are for people
// and stay. The parts are written for who changes them; scripts are for who runs
// them, and most of each is not read.
func shortened(part string) []byte {
	const endOfHead = "nothing of this failure."
	head := 0
	if at := strings.Index(part, endOfHead); at >= 0 {
		head = at + strings.IndexByte(part[at:], '\n') + 1
	}
	b := []byte(part[:head])
	inDocstring := false
	for line := range strings.Lines(part[head:]) {
		text := strings.TrimSpace(line)
		switch {
		case inDocstring:
			inDocstring = !strings.HasSuffix(text, `"""`)
		case strings.HasPrefix(text, `"""`):
			inDocstring = len(text) < 6 || !strings.HasSuffix(text, `"""`)
		case text != "" && !strings.HasPrefix(text, "#"):
			b = append(b, line...)
		}
	}
	return b
}

// readParts reads the parts of scripts in a folder, each made short.
func (b *Builder) readParts(folder fs.FS) {
	names, _ := fs.Glob(folder, "script/*.py.tmpl") // the pattern is one
	for _, path := range names {
		text, _ := fs.ReadFile(folder, path) // it is embedded
		b.parts[strings.TrimSuffix(strings.TrimPrefix(path, "script/"), ".py.tmpl")] = shortened(string(text))
	}
}

// partsOf returns the names of a script's parts in their order. The first has the
// hole, which is inside the only string literal with three single quotes.
func partsOf(k *kind.Kind, spec jsontree.Object) (parts kind.Parts) {
	env := spec.Object("env")
	variables := slices.ContainsFunc(env, func(m jsontree.Member) bool { return strings.HasPrefix(m.Key, "repro.env.") })
	parts.Add(true, "start", "output")
	parts.Add(len(spec.Array("redacted")) > 0, "set")
	parts.Add(variables, "apply")
	if k.Parts != nil {
		parts.Add(true, k.Parts(spec)...)
		parts.Add(true, "judging", "guard", "landlock", "child", "parent")
		parts.Add(!variables, "noapply")
		parts.Add(true, "plain")
	}
	parts.Add(len(env) > 0, "environment")
	parts.Add(true, "main")
	return parts
}
