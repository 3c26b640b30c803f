package jsontree

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecodeKeepsWhatWasWritten(t *testing.T) {
	const text = `{"z":5.0,"a":9007199254740993,"e":1E+2,"s":"\ud83d\ude00\u0027","n":null,"l":[true,{}]}`
	v, lossy, err := Decode(text)
	require.NoError(t, err)
	assert.False(t, lossy)
	assert.Equal(t, Of("z", Number("5.0"), "a", Number("9007199254740993"), "e", Number("1E+2"),
		"s", "😀'", "n", nil, "l", Array{true, Object{}}), v)
	assert.Equal(t, text, string(Encode(v))) //nolint:testifylint // the bytes matter, not only the value
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"": errSyntax, "{": errSyntax, "[1,]": errSyntax, "[1 2]": errSyntax, "1 2": errSyntax, "{1:2}": errSyntax,
		"'x'": errSyntax, "nan": errSyntax, "1NaN": errSyntax, "--Infinity": errSyntax, `{NaN:1}`: errSyntax,
		`{"a":1,"a":2}`: ErrDuplicate, `[{"a":{"b":1,"\u0062":2}}]`: ErrDuplicate,
		strings.Repeat("[", 201) + strings.Repeat("]", 201): ErrDepth,
		strings.Repeat(`{"a":`, 1_000_000):                  ErrDepth,
	} {
		_, _, err := Decode(text)
		require.ErrorIs(t, err, want, "%.40s", text)
	}
	_, _, err := Decode(strings.Repeat("[", 200) + strings.Repeat("]", 200))
	require.NoError(t, err)
	_, _, err = Decode(`["` + strings.Repeat("[", 300) + `"]`)
	require.NoError(t, err, "brackets in a text are no depth")
}

func TestDecodeSpecialValues(t *testing.T) {
	v, _, err := Decode(`[NaN,Infinity,-Infinity,"NaN","\"NaN"]`)
	require.NoError(t, err)
	assert.Equal(t, Array{special("nan"), special("infinity"), special("neg_infinity"), "NaN", `"NaN`}, v)

	long := strings.Repeat("7", maxIntDigits+1)
	v, _, err = Decode("[" + long + "]")
	require.NoError(t, err)
	assert.Equal(t, Array{Of("__type__", "int", "__schema__", Number("1"), "value", long)}, v)
}

// TestDecodeTakesItsTimeOnce: a text without an end is not searched again for each word in it.
// Sixteen times the words take 256 times as long if it is.
func TestDecodeTakesItsTimeOnce(t *testing.T) {
	for _, end := range []string{"", `\`} {
		// The fastest of five, because another process may have taken the time of one.
		decode := func(words int) time.Duration {
			text, fastest := `"`+strings.Repeat(`NaN\"`, words)+end, time.Hour
			for range 5 {
				begin := time.Now()
				_, _, err := Decode(text)
				require.ErrorIs(t, err, errSyntax)
				fastest = min(fastest, time.Since(begin))
			}
			return fastest
		}
		few := decode(10_000)
		assert.Less(t, decode(160_000), 100*few)
	}
}

func TestLossy(t *testing.T) {
	for text, want := range map[string]bool{
		"[\"\xff\"]": true, `["\ud800"]`: true, `["\uDC00x"]`: true, "[\"\ufffd\"]": false, `["\ufffd"]`: false, `["\ud83d\ude00"]`: false,
	} {
		_, lossy, err := Decode(text)
		require.NoError(t, err)
		assert.Equal(t, want, lossy, "%q", text)
	}
}

func TestFloat(t *testing.T) {
	assert.Equal(t, Number("0.5"), Float(0.5))
	assert.Equal(t, special("nan"), Float(math.NaN()))
	assert.Equal(t, special("neg_infinity"), Float(math.Inf(-1)))
}

// FuzzDecode: whatever comes in, what is accepted can be encoded in printable
// ASCII without a quote, and reads back as the same.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"x\u0000'"]}`, `[NaN,-Infinity]`, "[\"\xff\u2028\"]", `{"a":1,"A":2}`, `"\ud800"`, `[1e5,-0.0]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, _, err := Decode(text)
		if err != nil {
			return
		}
		encoded := Encode(v)
		for _, b := range encoded {
			if b < 0x20 || b > 0x7E || b == '\'' {
				t.Fatalf("byte 0x%02x in %q", b, encoded)
			}
		}
		again, _, err := Decode(string(encoded))
		require.NoError(t, err)
		assert.Equal(t, v, again)
		var indented bytes.Buffer
		require.NoError(t, json.Compact(&indented, EncodeIndent(v)))
		assert.Equal(t, string(encoded), indented.String())
	})
}
