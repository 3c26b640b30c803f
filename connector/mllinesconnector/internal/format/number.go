package format

import (
	"math"
	"strconv"
	"strings"
)

// maxDigits limits the text of a number.
const maxDigits = 40

// Number reads a number: with commas between thousands, as a time such as 1:02:03, or not
// finite. It returns false for anything else.
func Number(text string) (number float64, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxDigits {
		return 0, false
	}
	if strings.Contains(text, ":") {
		for part := range strings.SplitSeq(text, ":") {
			n, err := strconv.ParseFloat(part, 64)
			if err != nil || n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
				return 0, false
			}
			number = number*60 + n
		}
		return number, true
	}
	if text[0] != ',' {
		text = strings.ReplaceAll(text, ",", "")
	}
	if strings.EqualFold(strings.TrimLeft(text, "+-"), "nan") {
		return math.NaN(), true
	}
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil && !strings.ContainsAny(text, "xX_")
}

// leading returns the text of the number that a text begins with, after blanks, a quote or
// a bracket.
func leading(text string) (number string, ok bool) {
	text = strings.TrimLeft(text[:min(len(text), 2*maxDigits)], " \t")
	text = strings.TrimLeft(text, `'"[(`)
	end := 0
	for end < len(text) && (isWord(text[end]) || strings.IndexByte("+-.,:", text[end]) >= 0) {
		end++
	}
	for end > 0 && strings.IndexByte(".,:", text[end-1]) >= 0 {
		end--
	}
	text = text[:end]
	if _, ok := Number(text); ok {
		return text, true
	}
	// A number with its unit.
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	_, ok = Number(digits)
	return digits, ok
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
