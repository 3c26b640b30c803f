package progress

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReading(t *testing.T) {
	steps := func(numbers ...int64) (out []Step) {
		for rank, n := range numbers {
			out = append(out, Step{Rank: strconv.Itoa(rank), Step: n})
		}
		return out
	}
	assert.Empty(t, Reading(nil, 0))
	assert.Empty(t, Reading(steps(4), 8), "one rank says nothing about others")
	assert.Equal(t, "All ranks that are known ended step 4: none is behind.", Reading(steps(4, 4), 0))
	assert.Equal(t, "Furthest behind: rank 0, 1, whose last step is 3; the first are at 5.", Reading(steps(3, 3, 5), 3))
	assert.Equal(t, "All ranks that are known ended step 4: none is behind. No step was seen of 1 of 3 ranks: 2.", Reading(steps(4, 4), 3))
}

// TestBoard: the last step of each rank counts, also if it came before earlier
// ones, and the board does not grow.
func TestBoard(t *testing.T) {
	b := New()
	at := time.Unix(1_700_000_000, 0)
	b.Note("run", Step{Rank: "1", Step: 5, At: at.Add(time.Second)})
	b.Note("run", Step{Rank: "1", Step: 4, At: at})
	b.Note("run", Step{Rank: "0", Step: 6, At: at})
	b.Note("other", Step{Rank: "0", Step: 1, At: at})
	got := b.Of("run")
	require.Len(t, got, 2)
	assert.Equal(t, "1", got[0].Rank, "the one behind comes first")
	assert.EqualValues(t, 5, got[0].Step)
	b.Note("run", Step{Rank: "1", Step: 1, At: at.Add(2 * time.Second)})
	assert.EqualValues(t, 1, b.Of("run")[0].Step, "a run that begins anew begins at the first step")
	assert.Empty(t, b.Of(""))
	for i := range 2 * maxRanks {
		b.Note("many", Step{Rank: strconv.Itoa(i), At: at})
	}
	assert.LessOrEqual(t, len(b.Of("many")), maxRanks)
}
