package content

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

var (
	className  = compiled(`^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_<][A-Za-z0-9_>]*){0,31}$`)
	camelCase  = compiled(`^[A-Z][A-Za-z0-9]{0,63}$`)
	longNumber = compiled(`[0-9]{5}`)
)

// compiled returns a regular expression, which is compiled when it is first used: that
// takes longer than the start of a program without it.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// ErrorType returns the name of an error's class, or "" if the text has not the
// form of one: a capital letter and no longer number in its last part, or words
// that errors are made of.
func ErrorType(text string) string {
	if len(text) > 200 || !className().MatchString(text) || longNumber().MatchString(text) {
		return ""
	}
	name := strings.TrimLeft(text[strings.LastIndexByte(text, '.')+1:], "_")
	if camelCase().MatchString(name) || vocabulary()[strings.ToLower(name)] {
		return text
	}
	for word := range strings.SplitSeq(strings.ToLower(name), "_") {
		if !vocabulary()[word] {
			return ""
		}
	}
	return text
}

// What stands in a template for a word and for a number that was withheld.
const (
	wordMark   = "<w>"
	numberMark = "<n>"
)

const maxTemplate = 512

// Template returns what of an error's message is the program's own: the words
// that errors of Python, its libraries and GPUs are made of. Any other word,
// and any number, is replaced. At most the first 512 bytes are looked at.
func Template(message string) string {
	message = messageParts().ReplaceAllStringFunc(message[:min(len(message), maxTemplate)], func(piece string) string {
		switch {
		case piece[0] < utf8.RuneSelf && vocabulary()[strings.ToLower(piece)]:
			return piece
		case strings.Trim(piece, "0123456789") == "" || isShape(piece):
			return numberMark
		case strings.Trim(piece, " \t\r\n") == "":
			return " "
		case strings.Contains(punctuation, piece):
			return piece
		}
		return wordMark
	})
	message = spaces().ReplaceAllString(message, " ")
	for _, row := range rows {
		message = row().ReplaceAllString(message, "$1")
	}
	return strings.TrimSpace(message)
}

var spaces = compiled(` {2,}`)

// rows are what was withheld in a row: how many words a text had says something about it.
var rows = [...]func() *regexp.Regexp{rowOf(wordMark), rowOf(numberMark)}

func rowOf(mark string) func() *regexp.Regexp {
	return compiled("(" + mark + ")(?:(?:, |[ ,._:/-])?" + mark + ")+")
}

const punctuation = `.,:;()[]{}'"=<>/*+-!?|%&`

// messageParts are the words and the other characters of a message.
var messageParts = compiled(`[0-9A-Za-z_]+|(?s:.)`)

// isShape recognizes 32x15.
func isShape(word string) bool { return strings.Trim(word, "0123456789x") == "" && word[0] != 'x' }

//go:embed errorwords.txt
var listedErrorWords string

// vocabulary holds the words of errors, in lower case.
var vocabulary = sync.OnceValue(func() map[string]bool { return Words(listedErrorWords) })
