package gpujoin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newTestIndex returns an index and the time that it sees.
func newTestIndex() (*Index, *time.Time) {
	at := time.Unix(1_700_000_000, 0)
	return NewIndex(func() time.Time { return at }), &at
}

// processAt is a process of a run at a location.
func processAt(run string, p location) *Process {
	m := &Process{account: account{run: run, client: 1}}
	m.add(p)
	return m
}

// runsAt lists the live runs of a location.
func runsAt(s *Index, p location) []string {
	list, _ := s.live(p, s.Now())
	var runs []string
	for _, c := range list {
		runs = append(runs, c.run)
	}
	return runs
}

func TestLiveRuns(t *testing.T) {
	s, c := newTestIndex()
	rank := location{rule: ruleRank, host: 1, numbers: [3]int64{0, 0, 8}}
	assert.Empty(t, runsAt(s, rank))
	s.See(processAt("r1", rank))
	assert.Equal(t, []string{"r1"}, runsAt(s, rank))
	assert.Empty(t, runsAt(s, location{rule: ruleRank, host: 2, numbers: rank.numbers}), "another host")
	assert.Empty(t, runsAt(s, location{rule: ruleRank, host: 1, numbers: [3]int64{0, 0, 4}}), "another job's world")
	assert.Empty(t, runsAt(s, location{rule: ruleIndex, host: 1, numbers: rank.numbers}), "another rule")

	*c = c.Add(time.Minute)
	s.See(processAt("r2", rank))
	assert.ElementsMatch(t, []string{"r1", "r2"}, runsAt(s, rank), "two runs are alive there")
	*c = c.Add(liveAge)
	s.See(processAt("r2", rank))
	assert.Equal(t, []string{"r2"}, runsAt(s, rank), "the first has ended")
	*c = c.Add(liveAge + time.Second)
	assert.Empty(t, runsAt(s, rank), "a look does not keep a run alive")
}

// A run that sends nothing is alive while what it holds is read, at most for a day, and not
// beside another one.
func TestHeldRuns(t *testing.T) {
	s, c := newTestIndex()
	pod := location{rule: rulePod, id: 1}
	held := func(run string, d time.Duration) {
		for end := c.Add(d); c.Before(end); *c = c.Add(time.Minute) {
			s.keep(run, []location{pod}, *c)
		}
	}
	s.See(processAt("r1", pod))
	held("r1", heldAge-time.Minute)
	assert.Equal(t, []string{"r1"}, runsAt(s, pod))
	s.See(processAt("r2", pod))
	assert.Equal(t, []string{"r2"}, runsAt(s, pod), "the pod is another's by now")
	held("r2", heldAge+2*liveAge)
	assert.Empty(t, runsAt(s, pod), "for a day")

	s.SeeRun(processAt("r3", pod), "r4")
	held("r4", 2*liveAge)
	assert.Empty(t, runsAt(s, pod), "a process of many runs may have ended this one")
}

func TestThreeRunsAtAPlaceAreNotOne(t *testing.T) {
	s, _ := newTestIndex()
	p := location{rule: ruleService, host: 1, id: 1}
	for _, id := range []string{"r1", "r2", "r3"} {
		s.See(processAt(id, p))
	}
	assert.Len(t, runsAt(s, p), 2)
}

func TestWhatARunSaysOfAPlaceIsSeveralWhileItChanges(t *testing.T) {
	s, c := newTestIndex()
	p := location{rule: rulePod, id: 1}
	see := func(client, container uint64) candidate {
		m := processAt("r1", p)
		m.client, m.traits[traitContainer] = client, container
		s.See(m)
		list, _ := s.live(p, *c)
		require.Len(t, list, 1)
		return list[0]
	}
	one := see(1, 10)
	assert.True(t, one.alone)
	assert.Equal(t, traitValue{value: 10}, one.traits[traitContainer])
	two := see(2, 20)
	assert.False(t, two.alone)
	assert.Equal(t, traitValue{value: 20, several: true}, two.traits[traitContainer])
	*c = c.Add(liveAge)
	assert.False(t, see(2, 20).alone)
	*c = c.Add(time.Second)
	restarted := see(2, 20)
	assert.True(t, restarted.alone, "the first is long gone")
	assert.Equal(t, traitValue{value: 20}, restarted.traits[traitContainer])
}

func TestGPUsOfAPlace(t *testing.T) {
	s, c := newTestIndex()
	p := location{rule: ruleRank, host: 1}
	many := func(gpu uint64) bool {
		s.seeGPU(p, gpu, *c)
		_, many := s.live(p, *c)
		return many
	}
	assert.False(t, many(1))
	assert.Zero(t, s.Size().Entries, "where no run was seen nothing is kept")
	s.See(processAt("r1", p))
	assert.False(t, many(1))
	assert.False(t, many(1))
	assert.True(t, many(2), "also in another batch")
	*c = c.Add(gpuAge + time.Second)
	assert.False(t, many(2), "it has moved")
}
