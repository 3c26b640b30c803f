package wallclock

import "time"

const (
	// windowSlots is the number of slots of a Window, and slotLength the time
	// that each of them covers.
	windowSlots = 15
	slotLength  = time.Minute
)

// Spent is time by State, in nanoseconds.
type Spent [states]int64

// Add adds the time of another Spent.
func (s *Spent) Add(other *Spent) {
	for state, nanoseconds := range other {
		s[state] += nanoseconds
	}
}

// Window has the time that a run spent during the last 15 minutes, by the time
// at which it was attributed. The zero Window is ready to use. It is not safe for
// concurrent use.
type Window struct {
	slots [windowSlots]struct {
		number int64
		spent  Spent
	}
	// ever reports for each state whether the run was ever in it.
	ever [states]bool
}

// Add adds time that was attributed at now.
func (w *Window) Add(spent *Spent, now time.Time) {
	number := now.UnixNano() / int64(slotLength)
	slot := &w.slots[uint64(number)%windowSlots] // #nosec G115 -- only the remainder matters
	if slot.number != number {
		slot.number, slot.spent = number, Spent{}
	}
	slot.spent.Add(spent)
	for state, nanoseconds := range spent {
		w.ever[state] = w.ever[state] || nanoseconds > 0
	}
}

// Ratios returns the fraction of the window in each state, -1 for a state that
// the run was never in. The others add up to 1. ok is false if no time was
// attributed.
func (w *Window) Ratios(now time.Time) (ratios [states]float64, ok bool) {
	newest := now.UnixNano() / int64(slotLength)
	var sum Spent
	for i := range w.slots {
		if slot := &w.slots[i]; slot.number > newest-windowSlots && slot.number <= newest {
			sum.Add(&slot.spent)
		}
	}
	total := int64(0)
	for _, nanoseconds := range sum {
		total += nanoseconds
	}
	if total <= 0 {
		return ratios, false
	}
	for state, nanoseconds := range sum {
		ratios[state] = float64(nanoseconds) / float64(total)
		if !w.ever[state] {
			ratios[state] = -1
		}
	}
	return ratios, true
}
