package content

import (
	"io"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rule may look at a byte again for each of a few names before it, and not
// for each name in the text.
const (
	once    = 1 << 10
	doubled = 2 * once
)

// lookedAt returns how many bytes the rules look at in a text that repeats a
// fragment up to a length.
func lookedAt(fragment string, length int) int {
	text := strings.Repeat(fragment, length/len(fragment)+1)
	s := scanner{writer: writer{text: text}}
	s.assigned()
	t, e := writer{text: text}, writer{text: text}
	t.tokens()
	e.encoded()
	return s.read + t.read + e.read
}

// assertLinear reports a fragment for which twice the text is more than twice
// the work, with room for what happens at the ends.
func assertLinear(t *testing.T, fragment string, of func(fragment string, length int) int) {
	t.Helper()
	if n, twice := of(fragment, once), of(fragment, doubled); twice > 5*n/2+once {
		t.Errorf("%q: of %d bytes %d are looked at, of %d bytes %d", fragment, once, n, doubled, twice)
	}
}

// pieces are what the rules for assignments, arguments, pairs, lists, headers
// and elements look for, and what ends or hides a value.
func pieces() (all []string) {
	all = strings.Fields(`pass token password secret_key api_key PASSWORD HF_TOKEN authorization cookie name key value stringValue
		--pass --token -p = : => := ?= == , ; & ? ( [ { {{ ${ $( < > ) ] } }} </ " ' \" \' \\" \\' \\\' '"'"' '' b' u" \n \r \t \u0026 \
		/ . .x a.b a.b( x( 1 12345 none null x xx *** ... <REDACTED:x> <x> $X Bearer Basic`)
	all = append(all, " ", "\t", "\n", "   ", "string", " string = ", "API key: ", ", ", `", "`, `': '`)
	for _, tokens := range byFirst {
		for _, token := range tokens {
			all = append(all, token.prefix)
		}
	}
	for i := range contexts {
		all = append(all, contexts[i].hints...)
	}
	return all
}

// No text takes more than linear time: each piece of each rule, alone, before
// and behind what else the rules look for, and many together.
func TestRulesAreLinear(t *testing.T) {
	all := pieces()
	for _, fragment := range []string{
		"pass:", "token=a.b(", `"cookie:" `, "''cookie:\n", "\"cookie:\n", `"{{pass=['{{", \'{{' ,`, `pass=['','`, `("pass",'x''`, "<pass>", "--pass \\", "name=\"pass\" value=",
	} {
		assertLinear(t, fragment, lookedAt)
	}
	for _, tokens := range byFirst {
		for _, token := range tokens {
			one := string(rune('0' + slices.Index(token.of['0':], true)))
			for _, n := range []int{0, 1, token.min - 1, token.min, token.min + 1} {
				assertLinear(t, token.prefix+strings.Repeat(one, n), lookedAt)
				assertLinear(t, token.prefix+strings.Repeat(one, n)+" ", lookedAt)
			}
		}
	}
	r := rand.New(rand.NewPCG(10, 31))
	for range 2000 {
		var fragment strings.Builder
		for range 1 + r.IntN(8) {
			fragment.WriteString(all[r.IntN(len(all))])
		}
		assertLinear(t, fragment.String(), lookedAt)
	}
}

// FuzzLinear: no text that repeats a fragment takes more than linear time.
func FuzzLinear(f *testing.F) {
	f.Add("pass:")
	f.Add(`"{{pass=['{{", \'{{' ,`)
	f.Fuzz(func(t *testing.T, fragment string) {
		if fragment != "" && len(fragment) <= 256 {
			assertLinear(t, fragment, lookedAt)
		}
	})
}

// counted counts the characters that a pattern reads.
type counted struct {
	text string
	read *int
}

func (c *counted) ReadRune() (rune, int, error) {
	if c.text == "" {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRuneInString(c.text)
	c.text = c.text[size:]
	*c.read++
	return r, size, nil
}

// readBy returns a function that counts what a form's pattern reads in order to
// find all of its matches.
func readBy(f *context) func(fragment string, length int) int {
	return func(fragment string, length int) int {
		text, read := strings.Repeat(fragment, length/len(fragment)+1), 0
		for text != "" {
			at := f.pattern().FindReaderIndex(&counted{text, &read})
			if at == nil {
				break
			}
			text = text[at[1]:]
		}
		return read
	}
}

// example writes a text that a pattern matches, its repetitions as short as
// they may be and more times longer.
func example(t *testing.T, re *syntax.Regexp, more int) string {
	t.Helper()
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		for _, c := range " ax0A/-.\n" {
			for i := 0; i < len(re.Rune); i += 2 {
				if re.Rune[i] <= c && c <= re.Rune[i+1] {
					return string(c)
				}
			}
		}
		return string(re.Rune[0])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpCapture, syntax.OpQuest:
		return example(t, re.Sub[0], more)
	case syntax.OpStar, syntax.OpPlus:
		return strings.Repeat(example(t, re.Sub[0], more), 1+more)
	case syntax.OpRepeat:
		return strings.Repeat(example(t, re.Sub[0], more), re.Min+more*min(1, max(re.Max-re.Min, -re.Max)))
	case syntax.OpConcat:
		var out strings.Builder
		for _, sub := range re.Sub {
			out.WriteString(example(t, sub, more))
		}
		return out.String()
	case syntax.OpAlternate:
		return example(t, re.Sub[more%len(re.Sub)], more)
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpBeginLine, syntax.OpEndLine:
		return ""
	}
	require.Fail(t, "no example", "%v", re)
	return ""
}

// The same for the patterns: what matches each, cut at every place, alone and
// before what may end a value.
func TestFormsAreLinear(t *testing.T) {
	endings := []string{" ", "\n", `"`, "'", "/", "@", "=", ",x"}
	for i := range contexts {
		f := &contexts[i]
		tree, err := syntax.Parse(f.pattern().String(), syntax.Perl)
		require.NoError(t, err)
		for more := range 3 {
			text := example(t, tree, more)
			if more == 0 {
				assert.True(t, f.pattern().MatchString(text), "%q is no example of %v", text, f.pattern)
			}
			for end := 1; end <= len(text); end++ {
				assertLinear(t, text[:end], readBy(f))
				assertLinear(t, text[:end]+endings[end%len(endings)], readBy(f))
			}
		}
	}
}
