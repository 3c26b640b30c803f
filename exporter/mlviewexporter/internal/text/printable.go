package text

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/width"
)

// maxTextRunes limits texts from outside. A longer text ends with an ellipsis.
const maxTextRunes = 400

// ansi are the CSI sequences of ECMA-48, such as those that set colors. They are no
// content of a message.
var ansi = regexp.MustCompile(`\x1b\[[ -?]*[@-~]`)

// Printable returns a text from outside in a form that cannot control a terminal, turn
// the direction of a line or hide anything. It is Escape for a text without its control
// sequences for colors and cursors; one of more than maxTextRunes characters is cut and ends
// with an ellipsis.
func Printable(text string) string {
	text = ansi.ReplaceAllString(text, "")
	runes := 0
	for i := range text {
		if runes == maxTextRunes {
			return Escape(text[:i]) + "…"
		}
		runes++
	}
	return Escape(text)
}

// Escape returns text in a form that a terminal shows in one line as it is. It
// escapes control characters, invisible characters, characters without width,
// private ones and invalid UTF-8. It also escapes right-to-left letters, because
// a terminal that reorders them would mix up columns.
func Escape(text string) string {
	var out strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case size == 1 && (r == utf8.RuneError || r < 0x20 || r == 0x7f) && r != '\n' && r != '\t':
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case showsAsItIs(r):
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		text = text[size:]
	}
	return out.String()
}

// showsAsItIs reports whether a character is visible or the plain space, takes
// one or two cells, and does not reorder its neighbors.
func showsAsItIs(r rune) bool {
	if r == ' ' {
		return true
	}
	if !unicode.IsPrint(r) || unicode.Is(unicode.M, r) {
		return false
	}
	properties, _ := bidi.LookupRune(r)
	class := properties.Class()
	return class != bidi.R && class != bidi.AL && class != bidi.AN
}

// cells returns the number of terminal cells of a printable text.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	if r >= 0x7f {
		if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
			return 2
		}
	}
	return 1
}

// cut shortens a printable text to a number of cells, with an ellipsis.
func cut(text string, limit int) string {
	used := 0
	for i, r := range text {
		if used += runeCells(r); used > limit-1 && cells(text) > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// shortID shortens an id in the middle, where ids of one kind differ least.
func shortID(id string) string {
	text := []rune(Printable(id))
	if len(text) <= 24 {
		return string(text)
	}
	return string(text[:8]) + "…" + string(text[len(text)-7:])
}
