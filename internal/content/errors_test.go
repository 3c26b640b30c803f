package content

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTemplate(t *testing.T) {
	for message, want := range map[string]string{
		"mean requires at least one data point":                              "mean requires at least one data point",
		"mat1 and mat2 shapes cannot be multiplied (32x15 and 16x32)":        "mat1 and mat2 shapes cannot be multiplied (<n> and <n>)",
		"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total": "CUDA out of memory. Tried to allocate <n> MiB. GPU <n> has a total",
		"KeyError: 'alice@example.com'":                                      "KeyError: '<w>'",
		"No such file or directory: '/home/mary/secret plans.txt'":           "No such file or directory: '/<w>'",
		"invalid literal for int() with base 10: 'Grüße'":                    "invalid <w> for int() with base <n>: '<w>'",
		"expected scalar type Float but found Half":                          "expected scalar type Float but found Half",
		"call me on 0170 1234567":                                            "call <w> on <n>",
		"":                                                                   "",
		"a\r\n\tb":                                                           "a <w>",
		"token_4711":                                                         "<w>",
		"x = [1, 2, 3]":                                                      "x = [<n>]",
	} {
		assert.Equal(t, want, Template(message), message)
	}
}

// FuzzTemplate: no word is left that is not in the vocabulary, and no digit
// but those of its words.
func FuzzTemplate(f *testing.F) {
	f.Add("mat1 and mat2 shapes cannot be multiplied (32x15 and 16x32)")
	f.Add("\xff\u2028 <n> <w> n w")
	f.Fuzz(func(t *testing.T, message string) {
		kept := Template(message)
		for _, mark := range []string{wordMark, numberMark} {
			kept = strings.ReplaceAll(kept, mark, " ")
		}
		for _, word := range strings.FieldsFunc(kept, func(r rune) bool { return strings.ContainsRune(punctuation+" ", r) }) {
			assert.True(t, vocabulary()[strings.ToLower(word)] || word == "n" || word == "w", "%q of %q", word, message)
		}
	})
}
