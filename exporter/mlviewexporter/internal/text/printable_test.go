package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"plain – ü 你 🙂":                     "plain – ü 你 🙂",
		"a\tb\nc\r":                         `a\tb\nc\x0d`,
		"\x1b[31mred\x1b[0m":                "red",
		"a\x1b[1;31;40mb\x1b[2Jc":           "abc",
		"\x1b]0;title\x07\x1b[":             `\x1b]0;title\x07\x1b[`,
		"\x1b[31\x1b[0mx\x1b[9\n":           `\x1b[31x\x1b[9\n`,
		"\x7f\u0080\u009b2J":                `\x7f\u0080\u009b2J`,
		"\xff\xfe":                          `\xff\xfe`,
		"\u202eabc\u202c":                   `\u202eabc\u202c`,
		"\u05d0":                            `\u05d0`,
		"e\u0301\u200d\ufe0f":               `e\u0301\u200d\ufe0f`,
		"\U000e0041\U0010ffff":              `\U000e0041\U0010ffff`,
		"\u00a0\u2028\u3000":                `\u00a0\u2028\u3000`,
		strings.Repeat("a", maxTextRunes+1): strings.Repeat("a", maxTextRunes) + "…",
	} {
		assert.Equal(t, want, Printable(text))
	}
	assert.Equal(t, `\x1b[31mred`, Escape("\x1b[31mred"), "what is to be copied is whole")
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abc", 1, "…"},
		// A character of two cells does not fit into one.
		{"你好", 4, "你好"}, {"你好吗", 4, "你…"}, {"你好吗", 5, "你好…"},
	} {
		assert.Equal(t, test.want, cut(test.text, test.limit))
	}
}

func TestNumbers(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.00012: "1.2e-04", 0.0123: "0.012", 0.5: "0.50", 9.996: "10.0", 42: "42.0", 99_999: "99999", 999_999: "1.0M", 1e300: "1.00e+300"} {
		assert.Equal(t, want, number(&value))
	}
	for value, want := range map[float64]string{0: "0", 1: "1", 0.25: "0.25", 1.5: "1.5", 32: "32", 100: "100", 1e300: "1.00e+300"} {
		assert.Equal(t, want, Number(&value))
	}
	for value, want := range map[float64]string{0: "0 %", 0.004: "0.4 %", 0.1234: "12 %", 1: "100 %", 1e9: "1.0e+11 %"} {
		assert.Equal(t, want, Percent(&value))
	}
	for value, want := range map[float64]string{0: "0 s", 0.0123: "12.3 ms", 1.5: "1.50 s", 90: "90.0 s", 600: "10 min", 5400: "1.5 h", 3 * 86400: "3 d", 1e300: "years"} {
		assert.Equal(t, want, Seconds(&value))
	}
	usual := 2.0
	for value, want := range map[float64]string{2: "0 %", 2.002: "0 %", 3: "+50 %", 1: "-50 %", 1000: "×500"} {
		assert.Equal(t, want, Change(&value, &usual))
	}
	assert.Empty(t, Change(&usual, nil))
	assert.Empty(t, Change(&usual, new(float64)), "nothing is a multiple of zero")
}
