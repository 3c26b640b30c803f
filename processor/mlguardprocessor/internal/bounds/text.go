package bounds

import (
	"strconv"
	"unicode/utf8"
)

// shorten cuts text to limit bytes, at a character boundary, including a suffix
// with the original length. If the limit is too small for the suffix, only the
// suffix remains, and the result may exceed the limit.
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
