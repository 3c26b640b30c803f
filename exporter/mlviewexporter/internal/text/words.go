package text

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Words writes a name of the model, such as no_data, as words.
func Words(name string) string { return Printable(strings.ReplaceAll(name, "_", " ")) }

// State writes the state of a run, or what its time went to, as words.
func State(name string) string {
	if name == mlattr.RunStalled {
		return Words(mlattr.ProblemLooksHung)
	}
	return Words(name)
}

// Kind writes a kind of problem as words.
func Kind(kind string) string {
	if known, ok := mlattr.ProblemNamed(kind); ok {
		return known.Title
	}
	return Words(kind)
}

// Headline writes what a problem is, with its measure.
func Headline(n *api.Need) string {
	kind := strings.ToUpper(Kind(n.Kind))
	switch n.Kind {
	case mlattr.ProblemSlow:
		return joined(" ", kind, Change(n.Value, n.Usual))
	case mlattr.ProblemFailing:
		return joined(" ", kind, Percent(n.Value))
	default:
		return kind
	}
}

// joined joins the texts that are known.
func joined(separator string, texts ...string) string {
	return strings.Join(mlattr.Where(slices.Values(texts), func(text string) bool { return text != "" }), separator)
}

// prefixed puts a known text between others.
func prefixed(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}
