package surroundings

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
)

// TestBoard: the last step of each rank counts, also if it came before earlier
// ones, and the board does not grow.
func TestBoard(t *testing.T) {
	b := newBoard()
	at := time.Unix(1_700_000_000, 0)
	b.note("run", failure.Step{Rank: "1", Step: 5, At: at.Add(time.Second)})
	b.note("run", failure.Step{Rank: "1", Step: 4, At: at})
	b.note("run", failure.Step{Rank: "0", Step: 6, At: at})
	b.note("other", failure.Step{Rank: "0", Step: 1, At: at})
	got := b.of("run")
	require.Len(t, got, 2)
	assert.Equal(t, "1", got[0].Rank, "the one behind comes first")
	assert.EqualValues(t, 5, got[0].Step)
	b.note("run", failure.Step{Rank: "1", Step: 1, At: at.Add(2 * time.Second)})
	assert.EqualValues(t, 1, b.of("run")[0].Step, "a run that begins anew begins at the first step")
	assert.Empty(t, b.of(""))
	for i := range 2 * maxRanks {
		b.note("many", failure.Step{Rank: strconv.Itoa(i), At: at})
	}
	assert.LessOrEqual(t, len(b.of("many")), maxRanks)
}
