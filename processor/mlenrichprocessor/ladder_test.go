package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// a and b are two runs in the table below.
func runA(change ...func(*claimant)) claimant { return claimantOf("a", change) }
func runB(change ...func(*claimant)) claimant { return claimantOf("b", change) }

func claimantOf(run string, change []func(*claimant)) claimant {
	c := claimant{run: run, alone: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func says(t trait, value uint64) func(*claimant) {
	return func(c *claimant) { c.says[t].value = value }
}

func severalOf(t trait, value uint64) func(*claimant) {
	return func(c *claimant) { c.says[t] = said{value: value, several: true} }
}

func isProcess(pid, start int64) func(*claimant) {
	return func(c *claimant) { c.process = processID{pid: pid, start: start} }
}

func inferred(c *claimant) { c.inferred = true }

func ofMany(c *claimant) { c.alone = false }

func one(c ...claimant) found { return found{claimants: c} }

func TestClimb(t *testing.T) {
	const second = startSlack
	ranked := evidence{ranked: true}
	for name, tt := range map[string]struct {
		workload evidence
		at       map[rung]found
		run      string
		rung     rung
	}{
		"nobody":     {},
		"the surest": {at: map[rung]found{rungRank: one(runA()), rungProcess: one(runA())}, workload: ranked, run: "a", rung: rungProcess},
		"rank":       {at: map[rung]found{rungRank: one(runA())}, workload: ranked, run: "a", rung: rungRank},
		"container":  {at: map[rung]found{rungContainer: one(runA())}, run: "a", rung: rungContainer},
		"pod":        {at: map[rung]found{rungPod: one(runA())}, run: "a", rung: rungPod},
		"slurm":      {at: map[rung]found{rungSlurm: one(runA())}, run: "a", rung: rungSlurm},
		"service":    {at: map[rung]found{rungService: one(runA())}, run: "a", rung: rungService},
		"index":      {at: map[rung]found{rungIndex: one(runA())}, workload: evidence{alone: true}, run: "a", rung: rungIndex},
		"index, not alone on the GPU": {
			at: map[rung]found{rungIndex: one(runA())},
		},
		"index, not alone on the host": {
			at: map[rung]found{rungIndex: {claimants: []claimant{runA()}, doubtful: true}}, workload: evidence{alone: true},
		},
		"two at a rung": {at: map[rung]found{rungRank: one(runA(), runB())}, workload: ranked},
		"two, and a lower rung decides": {
			at: map[rung]found{rungRank: one(runA(), runB()), rungPod: one(runB())}, workload: ranked, run: "b", rung: rungPod,
		},
		"two, and a lower rung knows only a third": {
			at: map[rung]found{rungRank: one(runA(), runB()), rungPod: one(claimant{run: "c"})}, workload: ranked,
		},
		"two, and a weak rung may not decide": {
			at: map[rung]found{rungPod: one(runA(), runB()), rungService: one(runA())},
		},
		"a rank on two GPUs": {
			at: map[rung]found{rungRank: {claimants: []claimant{runA()}, doubtful: true}}, workload: ranked,
		},
		"a rank on two GPUs, and its container": {
			at:       map[rung]found{rungRank: {claimants: []claimant{runA()}, doubtful: true}, rungContainer: one(runA())},
			workload: ranked, run: "a", rung: rungContainer,
		},
		"a rank that no run has": {
			at: map[rung]found{rungService: one(runA()), rungIndex: one(runA())}, workload: evidence{ranked: true, alone: true},
		},
		"another host of the same name": {
			at:       map[rung]found{rungRank: one(runA(says(traitHost, 1)))},
			workload: evidence{ranked: true, says: [traitCount]uint64{traitHost: 2}},
		},
		"two hosts of one name, and one is this": {
			at:       map[rung]found{rungRank: one(runA(says(traitHost, 1)), runB(says(traitHost, 2)))},
			workload: evidence{ranked: true, says: [traitCount]uint64{traitHost: 2}}, run: "b", rung: rungRank,
		},
		"the rank of another container": {
			at:       map[rung]found{rungRank: one(runA(says(traitContainer, 1)))},
			workload: evidence{ranked: true, says: [traitCount]uint64{traitContainer: 2}},
		},
		"a container more of the same Slurm job": {
			at:       map[rung]found{rungSlurm: one(runA(says(traitContainer, 1)))},
			workload: evidence{says: [traitCount]uint64{traitContainer: 2}}, run: "a", rung: rungSlurm,
		},
		"the world of another job in the pod": {
			at:       map[rung]found{rungPod: one(runA(says(traitWorld, 9)))},
			workload: evidence{says: [traitCount]uint64{traitWorld: 2}},
		},
		"one of several containers of the pod": {
			at:       map[rung]found{rungPod: one(runA(severalOf(traitContainer, 1)))},
			workload: evidence{says: [traitCount]uint64{traitContainer: 2}}, run: "a", rung: rungPod,
		},
		"a service in pods, and this is none of them": {
			at:       map[rung]found{rungService: one(runA(severalOf(traitPod, 1)))},
			workload: evidence{says: [traitCount]uint64{traitPod: 2}},
		},
		"a workload that names its run": {
			at: map[rung]found{rungRank: one(runA(), runB())}, workload: evidence{run: "b", ranked: true}, run: "b", rung: rungRank,
		},
		"a workload that names another run": {
			at: map[rung]found{rungRank: one(runA())}, workload: evidence{run: "b", ranked: true},
		},
		"a workload that names the run that was inferred": {
			at: map[rung]found{rungRank: one(runA(inferred))}, workload: evidence{run: "b", ranked: true}, run: "a", rung: rungRank,
		},
		"a workload that names another run than an inferred one's pod": {
			at: map[rung]found{rungPod: one(runA(inferred))}, workload: evidence{run: "b"},
		},
		"the start, as two clocks read it": {
			at:       map[rung]found{rungProcess: one(runA(isProcess(7, 10*second)))},
			workload: evidence{processes: []processID{{pid: 7, start: 11 * second}}}, run: "a", rung: rungProcess,
		},
		"a number that was given anew": {
			at: map[rung]found{rungRank: one(runA(isProcess(7, 10*second))), rungService: one(runA(isProcess(7, 10*second))),
				rungIndex: one(runA(isProcess(7, 10*second)))},
			workload: evidence{alone: true, processes: []processID{{pid: 7, start: 12 * second}}},
		},
		"a number of the host, and the client's is of its container": {
			at:       map[rung]found{rungProcess: one(runA(isProcess(7, 10*second), says(traitContainer, 1)))},
			workload: evidence{processes: []processID{{pid: 7, own: 7, start: 10 * second}}},
		},
		"a number in a container that the receiver does not know": {
			at:       map[rung]found{rungProcess: one(runA(isProcess(7, 10*second), says(traitContainer, 1)))},
			workload: evidence{processes: []processID{{pid: 4000, own: 7, start: 10 * second}}}, run: "a", rung: rungProcess,
		},
		"a rank's process that is another": {
			at:       map[rung]found{rungRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, processes: []processID{{pid: 8}}},
		},
		"a rank's process among others": {
			at:       map[rung]found{rungRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, processes: []processID{{pid: 8}, {pid: 7}}}, run: "a", rung: rungRank,
		},
		"a rank's process, by the number that it sees itself": {
			at:       map[rung]found{rungRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, processes: []processID{{pid: 4000, own: 7}}}, run: "a", rung: rungRank,
		},
		"a rank in a container that hides its numbers": {
			at:       map[rung]found{rungRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, says: [traitCount]uint64{traitContainer: 1}, processes: []processID{{pid: 4000}}},
			run:      "a", rung: rungRank,
		},
		"a worker of a service has another number than what reports": {
			at:       map[rung]found{rungService: one(runA(isProcess(7, 0)))},
			workload: evidence{processes: []processID{{pid: 8}}}, run: "a", rung: rungService,
		},
		"numbers of many processes tell nothing": {
			at:       map[rung]found{rungRank: one(runA(isProcess(7, 0), ofMany))},
			workload: evidence{ranked: true, processes: []processID{{pid: 8}}}, run: "a", rung: rungRank,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var at [rungCount]found
			for r, f := range tt.at {
				at[r] = f
			}
			c, r, ok := climb(&tt.workload, &at)
			assert.Equal(t, tt.run != "", ok)
			assert.Equal(t, tt.run, c.run)
			if ok {
				assert.Equal(t, rungNames[tt.rung], rungNames[r])
			}
		})
	}
}
