package bounds

import (
	"strconv"
	"unicode/utf8"
)

// shorten cuts text to limit bytes, between characters. The last of these bytes
// say how long the text was; where the limit has no room for that, they are all
// that is left, and may exceed it.
func shorten(text string, limit int) string {
	mark := "[cut: " + strconv.Itoa(len(text)) + " bytes]"
	end := limit - len(mark) - 1
	if end <= 0 {
		return mark
	}
	for back := 0; back < utf8.UTFMax && end > 0 && !utf8.RuneStart(text[end]); back++ {
		end--
	}
	return text[:end] + " " + mark
}
