package shift

import (
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// tailLearned is the number of values from which the usual tail is learned: those above
	// all but the tailFrom highest, and by tailTimes.
	tailLearned, tailFrom = 128, 3
	// lateValues are those whose median is the middle: once it has moved, only the half of
	// them that moved it are above.
	lateValues = 15
)

var tailTimes = math.Log(1.4)

// Tail finds out whether more values than usual are far above the middle one, which may
// move. The zero Tail is ready to use. It is not safe for concurrent use.
type Tail struct {
	learned []float64
	late    [lateValues]float64
	next    int
	// middle is the median of late, and limit how far above it the tail begins.
	middle, limit float64
	// Over has whether each value was in the tail.
	Over Proportion
}

// Add adds the logarithm of a value that came at now.
func (t *Tail) Add(now time.Time, value float64, version uint8) {
	if t.limit == 0 {
		t.learn(value)
		return
	}
	t.Over.Add(now, value-t.middle > t.limit, version)
	t.late[t.next%lateValues], t.next = value, t.next+1
	late := t.late
	t.middle = shared.Median(late[:])
}

func (t *Tail) learn(value float64) {
	if t.learned = append(t.learned, value); len(t.learned) == tailLearned {
		copy(t.late[:], t.learned[tailLearned-lateValues:])
		t.middle = shared.Median(t.learned) // sorts them
		t.limit, t.learned = t.learned[tailLearned-1-tailFrom]-t.middle+tailTimes, nil
	}
}

// Limit returns the logarithm of the value from which on the tail begins.
func (t *Tail) Limit() float64 { return t.middle + t.limit }
