package artifact

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
)

func TestReading(t *testing.T) {
	steps := func(numbers ...int64) (out []failure.Step) {
		for rank, n := range numbers {
			out = append(out, failure.Step{Rank: strconv.Itoa(rank), Step: n})
		}
		return out
	}
	assert.Empty(t, readingOf(nil, 0))
	assert.Empty(t, readingOf(steps(4), 8), "one rank says nothing about others")
	assert.Equal(t, "All ranks that are known ended step 4: none is behind.", readingOf(steps(4, 4), 0))
	assert.Equal(t, "Furthest behind: rank 0, 1, whose last step is 3; the first are at 5.", readingOf(steps(3, 3, 5), 3))
	assert.Equal(t, "All ranks that are known ended step 4: none is behind. No step was seen of 1 of 3 ranks: 2.", readingOf(steps(4, 4), 3))
}
