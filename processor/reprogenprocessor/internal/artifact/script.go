package artifact

import (
	"bytes"
	"embed"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

//go:embed script/*.py.tmpl
var parts embed.FS

// The parts that every script has, around those of its kind. The first has
// the hole, which is inside the only string literal with three single quotes.
var (
	partsBefore = []string{"start", "output", "gates", "plan"}
	partsAfter  = []string{"judging", "guard", "landlock", "child", "parent", "environment", "main"}
)

// partsOf lists the parts of each kind. A script holds no code that its kind
// has no use for.
var partsOf = map[failure.Kind][]string{
	failure.PythonCall:  {"arguments", "tensors", "call"},
	remoteCall:          {"arguments", "tensors", "call", "connect", "remote"},
	failure.PythonCode:  {"code"},
	failure.GenAIChat:   {"connect", "address", "chat"},
	failure.TrainStep:   {"train"},
	failure.HTTPRequest: {"connect", "address", "request"},
	failure.Context:     {},
}

// remoteCall is a python_call whose payload lies somewhere else. Only the
// template differs.
const remoteCall failure.Kind = "python_call, remote"

// templateOf returns the kind whose template a failure's script is made of.
func templateOf(f *failure.Failure) failure.Kind {
	if f.Call != nil && f.Call.Remote != nil {
		return remoteCall
	}
	return f.Kind
}

// templates are the scripts of each kind, put together from their parts.
var templates = func() map[failure.Kind][]byte {
	whole := make(map[failure.Kind][]byte, len(partsOf))
	for kind, own := range partsOf {
		for _, name := range slices.Concat(partsBefore, own, partsAfter) {
			part, err := parts.ReadFile("script/" + name + ".py.tmpl")
			if err != nil {
				panic(err) // a part was renamed in one of the two places
			}
			whole[kind] = append(whole[kind], part...)
		}
	}
	return whole
}()

var hole = []byte("@SPEC@")

// renderScript puts the data into the template's hole and asserts that the
// result is the template and data, and nothing else.
func renderScript(kind failure.Kind, spec jsontree.Object, maxBytes int) ([]byte, error) {
	before, after, ok := bytes.Cut(templates[kind], hole)
	if !ok {
		return nil, ErrUnsafe
	}
	data := jsontree.EncodeIndent(spec)
	if len(before)+len(data)+len(after) > maxBytes {
		// Deep nesting makes most of a file out of indentation.
		data = jsontree.Encode(spec)
	}
	script := bytes.Join([][]byte{before, data, after}, nil)
	if err := checkScript(script, maxBytes); err != nil {
		return nil, err
	}
	return script, nil
}

// checkScript asserts what keeps data from becoming code: no byte outside
// line feed and printable ASCII, and no way out of the one string literal.
func checkScript(script []byte, maxBytes int) error {
	if len(script) > maxBytes {
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
