package communicator_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/communicator"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/ras"
)

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// of is a communicator whose ranks have launched so many operations.
func of(counts ...uint64) *ras.Communicator {
	c := &ras.Communicator{Hash: "0x1:0x2:0x3", Size: len(counts)}
	for i, count := range counts {
		c.Ranks = append(c.Ranks, ras.Rank{Number: i, Running: true, Counts: [5]uint64{4: count}})
	}
	return c
}

// without moves a rank to the missing ones.
func without(c *ras.Communicator, number int, is ras.Rank) *ras.Communicator {
	is.Number = number
	c.Missing = append(c.Missing, is)
	c.Ranks = append(c.Ranks[:number:number], c.Ranks[number+1:]...)
	return c
}

// states returns ranks with their states as text.
func states(all []communicator.Ranked) (text []string) {
	for i := range all {
		text = append(text, strconv.Itoa(all[i].Number)+" "+string(all[i].State))
	}
	return text
}

// behind returns the ranks that are behind.
func behind(r communicator.Report) (ranks []int) {
	for i := range r.Affected {
		if r.Affected[i].State == communicator.Behind {
			ranks = append(ranks, r.Affected[i].Number)
		}
	}
	return ranks
}

func TestAMissingRank(t *testing.T) {
	for state, is := range map[communicator.State]ras.Rank{
		communicator.Missing:      {},
		communicator.Unresponsive: {Unresponsive: true},
		communicator.Dead:         {Unresponsive: true, Dead: true},
	} {
		t.Run(string(state), func(t *testing.T) {
			tracker := communicator.NewTracker(4)
			assert.Empty(t, tracker.Observe(of(1, 1, 1), begin).Changed)
			r := tracker.Observe(without(of(1, 1, 1), 1, is), begin)
			assert.Equal(t, []string{"1 " + string(state)}, states(r.Changed))
			assert.Equal(t, 1, r.Count(state))
			assert.Equal(t, 2, r.Count(communicator.OK))
			r = tracker.Observe(without(of(2, 2, 2), 1, is), begin)
			assert.Empty(t, r.Changed, "reported once")
			assert.Equal(t, []string{"1 " + string(state)}, states(r.Affected), "and still so")
			r = tracker.Observe(of(3, 3, 3), begin)
			assert.Equal(t, []string{"1 ok"}, states(r.Changed))
			assert.Empty(t, r.Affected)
		})
	}
}

// The rank that the others wait for has launched less, and nothing changes.
func TestARankThatIsBehind(t *testing.T) {
	tracker := communicator.NewTracker(3)
	for range 2 {
		assert.Empty(t, tracker.Observe(of(7, 7, 6, 7), begin).Affected)
	}
	r := tracker.Observe(of(7, 7, 6, 7), begin)
	assert.Equal(t, []string{"2 behind"}, states(r.Changed))
	assert.Equal(t, uint64(1), r.Lag[4])
	assert.Empty(t, tracker.Observe(of(7, 7, 6, 7), begin).Changed, "reported once")
	assert.Equal(t, []string{"2 ok"}, states(tracker.Observe(of(8, 8, 8, 8), begin).Changed))
}

// Ranks launch ahead of each other, are read at different times, and may rest.
func TestWhatIsNotBehind(t *testing.T) {
	starting := of(7, 6)
	starting.Ranks[1].Running = false
	for name, answer := range map[string]func(n uint64) *ras.Communicator{
		"they go on":        func(n uint64) *ras.Communicator { return of(7+n, 6+n, 7+n) },
		"one goes on":       func(n uint64) *ras.Communicator { return of(7, 6, 7+n) },
		"all are equal":     func(uint64) *ras.Communicator { return of(7, 7, 7) },
		"it is being made":  func(uint64) *ras.Communicator { return starting },
		"one rank responds": func(uint64) *ras.Communicator { return without(of(7, 6), 0, ras.Rank{}) },
	} {
		t.Run(name, func(t *testing.T) {
			tracker := communicator.NewTracker(2)
			for n := range uint64(20) {
				assert.Empty(t, behind(tracker.Observe(answer(n), begin)))
			}
		})
	}
}

// Two jobs on a host answer in turn.
func TestCommunicatorsOfTwoJobs(t *testing.T) {
	tracker := communicator.NewTracker(3)
	other := of(5, 5)
	other.Hash = "0x9:0x2:0x3"
	var found []string
	for range 3 {
		found = append(found, states(tracker.Observe(of(7, 6), begin).Changed)...)
		assert.Empty(t, tracker.Observe(other, begin).Changed)
	}
	assert.Equal(t, []string{"1 behind"}, found, "what another job says does not count")
}

// A job that ends is forgotten, and a later one begins anew.
func TestForget(t *testing.T) {
	tracker := communicator.NewTracker(2)
	tracker.Observe(of(7, 6), begin)
	tracker.Forget(begin)
	assert.Len(t, behind(tracker.Observe(of(7, 6), begin)), 1, "not yet")
	tracker.Forget(begin.Add(time.Second))
	assert.Empty(t, behind(tracker.Observe(of(7, 6), begin.Add(time.Minute))))
}

// Beyond the limit, a communicator is judged without its past.
func TestManyCommunicators(t *testing.T) {
	tracker := communicator.NewTracker(2)
	for range 2 {
		for i := range 9000 {
			c := without(of(7, 6, 7), 0, ras.Rank{Dead: true})
			c.Hash = strconv.Itoa(i)
			r := tracker.Observe(c, begin)
			assert.Equal(t, 1, r.Count(communicator.Dead))
		}
	}
	c := of(7, 6)
	c.Hash = "8999"
	for range 3 {
		assert.Empty(t, behind(tracker.Observe(c, begin)))
	}
}
