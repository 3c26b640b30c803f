package mlattr_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// TestKeyTableDoesWhatAMapDoes: a table has the keys that it was given, with their values,
// and no others, however similar.
func TestKeyTableDoesWhatAMapDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	of, want := mlattr.NewKeyTable[int](16), make(map[string]int)
	for i := range 4000 {
		key := strings.Repeat("ab.c"[random.IntN(4):], 1+random.IntN(3)) + string(rune('a'+random.IntN(26)))
		if random.IntN(8) == 0 {
			*of.Ensure(key) = i
			want[key] = i
		}
		for _, asked := range []string{key, key + "x", key[1:], ""} {
			value, is := want[asked]
			if found := of.Find(asked); assert.Equal(t, is, found != nil, asked) && is {
				assert.Equal(t, value, *found, asked)
			}
		}
	}
	n := 0
	of.Values(func(*int) { n++ })
	assert.Len(t, want, n)
}

// TestKeyTableChainsAreShort shows it for the keys that clients are known to send.
func TestKeyTableChainsAreShort(t *testing.T) {
	all := clients.All()
	keys := mlattr.NewKeyTable[bool](256)
	for i := range all {
		for _, aliases := range [][]table.Alias{all[i].Resource, all[i].Span, all[i].Point} {
			for _, alias := range aliases {
				*keys.Ensure(alias.Source) = true
			}
		}
	}
	assert.LessOrEqual(t, keys.Longest(), 4)
}
