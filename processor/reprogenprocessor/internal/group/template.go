package group

import (
	"regexp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
)

const maxTemplate = 512

var (
	// word is a piece of a message, or a URL in it.
	word   = regexp.MustCompile(`[\w.:+-]+://[^ \t\r\n"'<>)]*|[\w.:+-]+`)
	digits = regexp.MustCompile(`[0-9]+`)
)

// words are the forms of a word with a digit that differs between two messages of one
// defect. The first that fits counts.
var words = [...]struct {
	name string
	form *regexp.Regexp
}{
	{"<uuid>", regexp.MustCompile(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)},
	{"<ip>", regexp.MustCompile(`^[0-9]*(?:\.[0-9]*){3}(?::.*)?$`)},
	{"<ip>", regexp.MustCompile(`^(?:[0-9a-fA-F]*:){7}[0-9a-fA-F]*$|^[0-9a-fA-F:]*::[0-9a-fA-F:]*$`)},
	{"<date>", regexp.MustCompile(`^[0-9:.TZ+-]{4}-[0-9:.TZ+-]{2}-[0-9:.TZ+-]{2,}$`)},
	{"<num>", regexp.MustCompile(`^[0-9+.-][0-9.eE+-]*$`)},
	{"<size>", regexp.MustCompile(`^[0-9+.-][0-9.eE+-]*[KMGTiB]*B$`)},
	{"<hex>", regexp.MustCompile(`^0x[0-9a-fA-F]+$|^[0-9a-fA-F]{8,}$`)},
}

// template replaces what differs between two messages of one defect:
// numbers, sizes, hex strings, UUIDs, IP addresses, URLs and dates. Lists of
// numbers become one. At most the first 512 bytes are looked at.
func template(message string) string {
	message = attr.Cut(message, maxTemplate)
	if hasDigit(message) || strings.Contains(message, "://") {
		message = word.ReplaceAllStringFunc(message, wordTemplate)
	}
	return collapse(message)
}

// hasDigit spares most texts the look for what has numbers in it.
func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

func wordTemplate(w string) string {
	if strings.Contains(w, "://") {
		return "<url>"
	}
	if !hasDigit(w) {
		return w
	}
	punctuated := w
	w = strings.TrimRight(punctuated, ".:+-")
	rest := punctuated[len(w):]
	for _, known := range words {
		if known.form.MatchString(w) {
			return known.name + rest
		}
	}
	// The words around numbers stay: layer12.weight, cuda:0.
	return digits.ReplaceAllString(w, "<n>") + rest
}

var sizes = strings.NewReplacer(
	"<num> GiB", "<size>", "<num> MiB", "<size>", "<num> KiB", "<size>",
	"<num> TiB", "<size>", "<num> GB", "<size>", "<num> MB", "<size>", "<num> KB", "<size>", "<num> TB", "<size>",
	"<num> bytes", "<size>")

// collapse makes one of a list of numbers, so that shapes of other rank are
// the same message.
func collapse(s string) string {
	for _, separator := range []string{", ", " ", ","} {
		pair := "<num>" + separator + "<num>"
		for strings.Contains(s, pair) {
			s = strings.ReplaceAll(s, pair, "<num>")
		}
	}
	return sizes.Replace(s)
}
