// Package kept bounds what is held of texts and times that clients send.
package kept

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Lengths at which texts are cut, in characters.
const (
	MaxLabel   = 128
	MaxMessage = 512
	// maxMessageWithoutContent is how much of a message repro_gen's groups show.
	maxMessageWithoutContent = 200
)

// Texts has one copy of equal texts. It forgets all of them when it has grown too large.
type Texts struct {
	// content reports whether whole messages of errors are held.
	content bool
	all     map[string]string
	bytes   int
}

// NewTexts returns Texts. content reports whether whole messages of errors are held.
func NewTexts(content bool) *Texts { return &Texts{content: content} }

// maxTexts is the size of the texts that are known, in bytes.
const maxTexts = 8 << 20

// Of returns a copy of a text that shares no memory with it, cut to maxLabel
// characters.
func (t *Texts) Of(text string) string {
	if text == "" {
		return ""
	}
	if known, ok := t.all[text]; ok {
		return known
	}
	own := strings.Clone(Cut(text, MaxLabel))
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

// Set replaces a text that is held by another one, unless that is empty.
func (t *Texts) Set(held *string, text string) {
	if text != "" && text != *held {
		*held = t.Of(text)
	}
}

// Message returns what is held of the message of an error.
func (t *Texts) Message(text string) string {
	limit := maxMessageWithoutContent
	if t.content {
		limit = MaxMessage
	}
	return strings.Clone(Cut(text, limit))
}

// Cut returns at most limit characters of a text, as valid UTF-8. The result may
// share memory with the text.
func Cut(text string, limit int) string {
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

// Earlier returns the time of a client's clock, which may be far ahead, or now.
func Earlier(at, now time.Time) time.Time {
	if at.After(now) {
		return now.UTC()
	}
	return at
}

// Plausible returns a time that was saved, or the later one if it is after that or
// more than ten years before.
func Plausible(at, later time.Time) time.Time {
	if at.After(later) || at.Before(later.AddDate(-10, 0, 0)) {
		return later
	}
	return at
}

// MaxNoted limits the text of a change or of a mark, in bytes.
const MaxNoted = 256

// Clones returns copies that share no memory with texts, of bounded length.
func Clones(texts []string) []string {
	out := make([]string, len(texts))
	for i := range texts {
		out[i] = strings.Clone(Cut(texts[i], MaxMessage))
	}
	return out
}

// Week is how long changes and failures are kept, over restarts too.
const Week = 7 * 24 * time.Hour
