package xid

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMeanings(t *testing.T) {
	for code, expected := range map[uint64]struct {
		severity Severity
		effect   Effect
	}{
		13: {Program, None}, 31: {Program, None}, 43: {Program, None}, 45: {Program, None},
		48: {Device, Degrades}, 74: {Device, Degrades}, 94: {Device, Degrades},
		63: {Device, Predicts}, 64: {Device, Fails}, 95: {Device, Fails},
		79: {Gone, Fails}, 119: {Device, Fails}, 120: {Device, Fails},
		154: {Notice, None},
	} {
		meaning := Of(code)
		assert.True(t, meaning.Known, code)
		assert.Equal(t, expected.severity, meaning.Severity, code)
		assert.Equal(t, expected.effect, meaning.Effect, code)
	}
}

// The codes that operators of data centres meet are all there.
func TestTheTableIsComplete(t *testing.T) {
	for _, code := range []uint64{
		8, 11, 13, 31, 32, 38, 43, 44, 45, 48, 56, 57, 58, 61, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 92, 94, 95,
		109, 110, 119, 120, 121, 122, 123, 124, 136, 137, 140, 143, 144, 145, 146, 147, 148, 149, 150, 154,
	} {
		assert.True(t, Of(code).Known, code)
	}
}

// What nobody knows is neither the fault of a program nor the end of a GPU.
func TestAnUnknownCode(t *testing.T) {
	for _, code := range []uint64{0, 5, 9999, 1<<64 - 1} {
		meaning := Of(code)
		assert.False(t, meaning.Known, code)
		assert.Equal(t, Device, meaning.Severity, code)
		assert.Equal(t, None, meaning.Effect, code)
		assert.Contains(t, meaning.Text, "not known")
	}
}

// A line has a code that no other has, and words that are known.
func TestLinesOfTheTable(t *testing.T) {
	text, err := os.ReadFile("meanings.txt")
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(text)) {
		count++
		assert.Regexp(t, `^[1-9][0-9]* +(notice|program|device|gone) +(-|predicts|degrades|fails) +\S.*\n$`, line)
	}
	assert.Len(t, meanings, count)
}

func TestEveryMeaningIsASentence(t *testing.T) {
	for code, meaning := range meanings {
		assert.NotEmpty(t, meaning.Text, code)
		assert.LessOrEqual(t, len(meaning.Text), 120, code)
		assert.Equal(t, strings.ToUpper(meaning.Text[:1]), meaning.Text[:1], code)
		assert.NotEqual(t, '.', meaning.Text[len(meaning.Text)-1], code)
		if meaning.Severity == Notice || meaning.Severity == Program {
			assert.Equal(t, None, meaning.Effect, "%d is no fault of the device", code)
		}
		if meaning.Severity == Gone {
			assert.Equal(t, Fails, meaning.Effect, code)
		}
	}
}

// A series that is there from the beginning is one whose code means something.
func TestCommonCodes(t *testing.T) {
	assert.True(t, slices.IsSorted(Common))
	assert.Len(t, slices.Compact(slices.Clone(Common)), len(Common))
	for _, code := range Common {
		assert.True(t, Of(code).Known, code)
	}
	for code, meaning := range meanings {
		if meaning.Severity == Gone {
			assert.Contains(t, Common, code)
		}
	}
}

// The README lists the codes that ask for a reset, and those that are there
// from the beginning.
func TestReadmeListsTheCodes(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	list := func(codes []uint64) string {
		var text []string
		for _, code := range codes {
			text = append(text, strconv.FormatUint(code, 10))
		}
		return strings.Join(text, ", ")
	}
	var fails []uint64
	for code, meaning := range meanings {
		if meaning.Effect == Fails {
			fails = append(fails, code)
		}
	}
	slices.Sort(fails)
	flat := strings.Join(strings.Fields(string(readme)), " ")
	assert.Contains(t, flat, "(XID "+list(fails)+")")
	last := len(Common) - 1
	assert.Contains(t, flat, "The codes "+list(Common[:last])+" and "+list(Common[last:])+" start at 0")
}
