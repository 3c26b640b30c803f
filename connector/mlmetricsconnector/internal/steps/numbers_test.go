package steps

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const second = int64(1e9)

// train adds steps of a second each, from a number on and a time on.
func train(s *Sequence, from, count, at int64, attempt int64) (more int64) {
	for n := range count {
		end := at + (n+1)*second
		more += s.Add(Forward, end-second, end-second/2)
		more += s.AddNumbered(end-second/2, end, from+n, attempt)
	}
	return more
}

// A clock that is set back puts steps among those before: their numbers tell them
// apart.
func TestAClockThatIsSetBackCostsNoStep(t *testing.T) {
	for _, back := range []int64{0, 1, 20, 33} {
		var s Sequence
		now := 1000 * second
		assert.Equal(t, int64(40), train(&s, 1, 40, now, 0))
		now += (40 - back) * second
		assert.Equal(t, int64(60), train(&s, 41, 60, now-second/3, 0), "back by %d s", back)
	}
}

// Without numbers there are fewer: nothing but the times tells the steps apart.
func TestAClockThatIsSetBackWithoutNumbers(t *testing.T) {
	var s Sequence
	unnumbered := func(count, at int64) (more int64) {
		for n := range count {
			end := at + (n+1)*second
			more += s.Add(Forward, end-second, end-second/2)
			more += s.Add(Optimizer, end-second/2, end)
		}
		return more
	}
	assert.Equal(t, int64(40), unnumbered(40, 1000*second))
	assert.Less(t, unnumbered(60, 1020*second), int64(60))
}

func TestNumbers(t *testing.T) {
	type step struct{ number, attempt, end int64 }
	for name, tt := range map[string]struct {
		steps []step
		want  int64
	}{
		"one after the other":         {[]step{{1, 0, 1}, {2, 0, 2}, {3, 0, 3}}, 3},
		"two optimizers of a step":    {[]step{{1, 0, 1}, {1, 0, 2}, {2, 0, 3}}, 2},
		"out of order":                {[]step{{1, 0, 1}, {3, 0, 3}, {2, 0, 2}, {2, 0, 2}}, 3},
		"far apart":                   {[]step{{1, 0, 1}, {1000, 0, 2}, {1001, 0, 3}}, 3},
		"late beyond what is kept":    {[]step{{1000, 0, 9}, {5, 0, 1}, {5, 0, 1}}, 3},
		"back to a checkpoint":        {[]step{{7, 0, 1}, {8, 0, 2}, {7, 0, 3}, {8, 0, 4}}, 4},
		"another attempt, clock back": {[]step{{7, 0, 10}, {8, 0, 11}, {7, 1, 3}, {8, 1, 4}}, 4},
		"late of an earlier attempt":  {[]step{{7, 1, 10}, {6, 0, 2}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var n numbers
			for _, s := range tt.steps {
				n.add(s.number, s.attempt, s.end)
			}
			assert.Equal(t, tt.want, n.Counted)
		})
	}
}

// A program may begin to number its steps late.
func TestNumbersFromSomeStepOn(t *testing.T) {
	var s Sequence
	more := s.Add(Forward, second, 2*second) + s.Add(Optimizer, 2*second, 3*second)
	more += train(&s, 2, 5, 10*second, 0)
	assert.Equal(t, int64(6), more)
}
