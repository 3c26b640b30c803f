package model

import (
	"strings"
	"unicode/utf8"
)

// Lengths at which texts are cut, in characters.
const (
	maxLabel   = 128
	maxMessage = 512
	// maxMessageWithoutContent is how much of a message repro_gen's groups show.
	maxMessageWithoutContent = 200
)

// texts has one copy of equal texts. It forgets all of them when it has grown too large.
type texts struct {
	// content reports whether whole messages of errors are held.
	content bool
	all     map[string]string
	bytes   int
}

// maxTexts is the size of the texts that are known, in bytes.
const maxTexts = 8 << 20

// of returns a copy of a text that shares no memory with it, cut to maxLabel
// characters.
func (t *texts) of(text string) string {
	if text == "" {
		return ""
	}
	if known, ok := t.all[text]; ok {
		return known
	}
	own := strings.Clone(cut(text, maxLabel))
	// A text that is cut would have to be kept whole to be found.
	if len(own) != len(text) {
		return own
	}
	if t.all == nil || t.bytes+len(own) > maxTexts {
		t.all, t.bytes = make(map[string]string), 0
	}
	t.all[own], t.bytes = own, t.bytes+len(own)+32
	return own
}

// message returns what is held of the message of an error.
func (t *texts) message(text string) string {
	limit := maxMessageWithoutContent
	if t.content {
		limit = maxMessage
	}
	return strings.Clone(cut(text, limit))
}

// cut returns at most limit characters of a text, as valid UTF-8. The result may
// share memory with the text.
func cut(text string, limit int) string {
	if len(text) > 4*limit {
		end := 4 * limit
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}
