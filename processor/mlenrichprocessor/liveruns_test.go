package mlenrichprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memberAt is a process of a run at a place.
func memberAt(run string, p place) *member {
	m := &member{run: run, client: 1}
	m.at(p)
	return m
}

// runsAt lists the live runs of a place.
func runsAt(s *store, p place) []string {
	asked := []placeLookup{{place: p}}
	s.lookAround(asked)
	var runs []string
	for _, c := range asked[0].claimants {
		runs = append(runs, c.run)
	}
	return runs
}

func TestLiveRuns(t *testing.T) {
	s, c := newTestStore(t)
	rank := place{rung: rungRank, host: 1, numbers: [3]int64{0, 0, 8}}
	assert.Empty(t, runsAt(s, rank))
	s.seeRun(memberAt("r1", rank))
	assert.Equal(t, []string{"r1"}, runsAt(s, rank))
	assert.Empty(t, runsAt(s, place{rung: rungRank, host: 2, numbers: rank.numbers}), "another host")
	assert.Empty(t, runsAt(s, place{rung: rungRank, host: 1, numbers: [3]int64{0, 0, 4}}), "another job's world")
	assert.Empty(t, runsAt(s, place{rung: rungIndex, host: 1, numbers: rank.numbers}), "another rung")

	c.at = c.at.Add(time.Minute)
	s.seeRun(memberAt("r2", rank))
	assert.ElementsMatch(t, []string{"r1", "r2"}, runsAt(s, rank), "two runs are alive there")
	c.at = c.at.Add(liveAge)
	s.seeRun(memberAt("r2", rank))
	assert.Equal(t, []string{"r2"}, runsAt(s, rank), "the first has ended")
	c.at = c.at.Add(liveAge + time.Second)
	assert.Empty(t, runsAt(s, rank), "a look does not keep a run alive")
}

func TestThreeRunsAtAPlaceAreNotOne(t *testing.T) {
	s, _ := newTestStore(t)
	p := place{rung: rungService, host: 1, id: 1}
	for _, id := range []string{"r1", "r2", "r3"} {
		s.seeRun(memberAt(id, p))
	}
	assert.Len(t, runsAt(s, p), 2)
}

func TestWhatARunSaysOfAPlaceIsSeveralWhileItChanges(t *testing.T) {
	s, c := newTestStore(t)
	p := place{rung: rungPod, id: 1}
	see := func(client, container uint64) claimant {
		m := memberAt("r1", p)
		m.client, m.says[traitContainer] = client, container
		s.seeRun(m)
		asked := []placeLookup{{place: p}}
		s.lookAround(asked)
		require.Len(t, asked[0].claimants, 1)
		return asked[0].claimants[0]
	}
	one := see(1, 10)
	assert.True(t, one.alone)
	assert.Equal(t, said{value: 10}, one.says[traitContainer])
	two := see(2, 20)
	assert.False(t, two.alone)
	assert.Equal(t, said{value: 20, several: true}, two.says[traitContainer])
	c.at = c.at.Add(liveAge)
	assert.False(t, see(2, 20).alone)
	c.at = c.at.Add(time.Second)
	restarted := see(2, 20)
	assert.True(t, restarted.alone, "the first is long gone")
	assert.Equal(t, said{value: 20}, restarted.says[traitContainer])
}

func TestGPUsOfAPlace(t *testing.T) {
	s, c := newTestStore(t)
	p := place{rung: rungRank, host: 1}
	many := func(gpu uint64) bool {
		asked := []placeLookup{{place: p, gpu: gpu}}
		s.lookAround(asked)
		return asked[0].manyGPUs
	}
	assert.False(t, many(1))
	assert.Zero(t, s.runs.len(), "where no run was seen nothing is kept")
	s.seeRun(memberAt("r1", p))
	assert.False(t, many(1))
	assert.False(t, many(1))
	assert.True(t, many(2), "also in another batch")
	c.at = c.at.Add(gpuAge + time.Second)
	assert.False(t, many(2), "it has moved")
}
