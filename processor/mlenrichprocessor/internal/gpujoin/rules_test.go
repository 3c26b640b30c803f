package gpujoin

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// a and b are two runs in the table below.
func runA(change ...func(*candidate)) candidate { return candidateOf("a", change) }
func runB(change ...func(*candidate)) candidate { return candidateOf("b", change) }

func candidateOf(run string, change []func(*candidate)) candidate {
	c := candidate{account: account{run: run}, alone: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func says(t trait, value uint64) func(*candidate) {
	return func(c *candidate) { c.traits[t].value = value }
}

func severalOf(t trait, value uint64) func(*candidate) {
	return func(c *candidate) { c.traits[t] = traitValue{value: value, several: true} }
}

func isProcess(pid, start int64) func(*candidate) {
	return func(c *candidate) { c.process = processID{pid: pid, start: start} }
}

func inferred(c *candidate) { c.inferred = true }

func ofMany(c *candidate) { c.alone = false }

func one(c ...candidate) candidates { return candidates{list: c} }

func TestMatch(t *testing.T) {
	const second = startSlack
	ranked := evidence{ranked: true}
	for name, tt := range map[string]struct {
		workload evidence
		at       map[rule]candidates
		run      string
		rule     rule
	}{
		"nobody":     {},
		"the surest": {at: map[rule]candidates{ruleRank: one(runA()), ruleProcess: one(runA())}, workload: ranked, run: "a", rule: ruleProcess},
		"rank":       {at: map[rule]candidates{ruleRank: one(runA())}, workload: ranked, run: "a", rule: ruleRank},
		"the GPU":    {at: map[rule]candidates{ruleGPU: one(runA()), ruleSlurm: one(runA(), runB())}, run: "a", rule: ruleGPU},
		"a GPU that two workloads use": {
			at: map[rule]candidates{ruleGPU: {list: []candidate{runA()}, ambiguous: true}, ruleSlurm: one(runB())},
		},
		"container": {at: map[rule]candidates{ruleContainer: one(runA())}, run: "a", rule: ruleContainer},
		"pod":       {at: map[rule]candidates{rulePod: one(runA())}, run: "a", rule: rulePod},
		"slurm":     {at: map[rule]candidates{ruleSlurm: one(runA())}, run: "a", rule: ruleSlurm},
		"service":   {at: map[rule]candidates{ruleService: one(runA())}, run: "a", rule: ruleService},
		"index":     {at: map[rule]candidates{ruleIndex: one(runA())}, workload: evidence{alone: true}, run: "a", rule: ruleIndex},
		"index, not alone on the GPU": {
			at: map[rule]candidates{ruleIndex: one(runA())},
		},
		"index, not alone on the host": {
			at: map[rule]candidates{ruleIndex: {list: []candidate{runA()}, ambiguous: true}}, workload: evidence{alone: true},
		},
		"two at a rule": {at: map[rule]candidates{ruleRank: one(runA(), runB())}, workload: ranked},
		"two, and a lower rule decides": {
			at: map[rule]candidates{ruleRank: one(runA(), runB()), rulePod: one(runB())}, workload: ranked, run: "b", rule: rulePod,
		},
		"two, and a lower rule knows only a third": {
			at: map[rule]candidates{ruleRank: one(runA(), runB()), rulePod: one(candidate{account: account{run: "c"}})}, workload: ranked,
		},
		"two, and a weak rule may not decide": {
			at: map[rule]candidates{rulePod: one(runA(), runB()), ruleService: one(runA())},
		},
		"a rank on two GPUs": {
			at: map[rule]candidates{ruleRank: {list: []candidate{runA()}, ambiguous: true}}, workload: ranked,
		},
		"a rank on two GPUs, and its container": {
			at:       map[rule]candidates{ruleRank: {list: []candidate{runA()}, ambiguous: true}, ruleContainer: one(runA())},
			workload: ranked, run: "a", rule: ruleContainer,
		},
		"a rank that no run has": {
			at: map[rule]candidates{ruleService: one(runA()), ruleIndex: one(runA())}, workload: evidence{ranked: true, alone: true},
		},
		"another host of the same name": {
			at:       map[rule]candidates{ruleRank: one(runA(says(traitHost, 1)))},
			workload: evidence{ranked: true, traits: [traitCount]uint64{traitHost: 2}},
		},
		"two hosts of one name, and one is this": {
			at:       map[rule]candidates{ruleRank: one(runA(says(traitHost, 1)), runB(says(traitHost, 2)))},
			workload: evidence{ranked: true, traits: [traitCount]uint64{traitHost: 2}}, run: "b", rule: ruleRank,
		},
		"the rank of another container": {
			at:       map[rule]candidates{ruleRank: one(runA(says(traitContainer, 1)))},
			workload: evidence{ranked: true, traits: [traitCount]uint64{traitContainer: 2}},
		},
		"a container more of the same Slurm job": {
			at:       map[rule]candidates{ruleSlurm: one(runA(says(traitContainer, 1)))},
			workload: evidence{traits: [traitCount]uint64{traitContainer: 2}}, run: "a", rule: ruleSlurm,
		},
		"the world of another job in the pod": {
			at:       map[rule]candidates{rulePod: one(runA(says(traitWorld, 9)))},
			workload: evidence{traits: [traitCount]uint64{traitWorld: 2}},
		},
		"one of several containers of the pod": {
			at:       map[rule]candidates{rulePod: one(runA(severalOf(traitContainer, 1)))},
			workload: evidence{traits: [traitCount]uint64{traitContainer: 2}}, run: "a", rule: rulePod,
		},
		"a service in pods, and this is none of them": {
			at:       map[rule]candidates{ruleService: one(runA(severalOf(traitPod, 1)))},
			workload: evidence{traits: [traitCount]uint64{traitPod: 2}},
		},
		"a workload that names its run": {
			at: map[rule]candidates{ruleRank: one(runA(), runB())}, workload: evidence{run: "b", ranked: true}, run: "b", rule: ruleRank,
		},
		"a workload that names another run": {
			at: map[rule]candidates{ruleRank: one(runA())}, workload: evidence{run: "b", ranked: true},
		},
		"a workload that names the run that was inferred": {
			at: map[rule]candidates{ruleRank: one(runA(inferred))}, workload: evidence{run: "b", ranked: true}, run: "a", rule: ruleRank,
		},
		"a workload that names another run than an inferred one's pod": {
			at: map[rule]candidates{rulePod: one(runA(inferred))}, workload: evidence{run: "b"},
		},
		"the start, as two clocks read it": {
			at:       map[rule]candidates{ruleProcess: one(runA(isProcess(7, 10*second)))},
			workload: evidence{processes: []processID{{pid: 7, start: 11 * second}}}, run: "a", rule: ruleProcess,
		},
		"a number that was given anew": {
			at: map[rule]candidates{ruleRank: one(runA(isProcess(7, 10*second))), ruleService: one(runA(isProcess(7, 10*second))),
				ruleIndex: one(runA(isProcess(7, 10*second)))},
			workload: evidence{alone: true, processes: []processID{{pid: 7, start: 12 * second}}},
		},
		"a number of the host, and the client's is of its container": {
			at:       map[rule]candidates{ruleProcess: one(runA(isProcess(7, 10*second), says(traitContainer, 1)))},
			workload: evidence{processes: []processID{{pid: 7, own: 7, start: 10 * second}}},
		},
		"a number in a container that the receiver does not know": {
			at:       map[rule]candidates{ruleProcess: one(runA(isProcess(7, 10*second), says(traitContainer, 1)))},
			workload: evidence{processes: []processID{{pid: 4000, own: 7, start: 10 * second}}}, run: "a", rule: ruleProcess,
		},
		"a rank's process that is another": {
			at:       map[rule]candidates{ruleRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, processes: []processID{{pid: 8}}},
		},
		"a rank's process among others": {
			at:       map[rule]candidates{ruleRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, processes: []processID{{pid: 8}, {pid: 7}}}, run: "a", rule: ruleRank,
		},
		"a rank's process, by the number that it sees itself": {
			at:       map[rule]candidates{ruleRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, processes: []processID{{pid: 4000, own: 7}}}, run: "a", rule: ruleRank,
		},
		"a rank in a container that hides its numbers": {
			at:       map[rule]candidates{ruleRank: one(runA(isProcess(7, 0)))},
			workload: evidence{ranked: true, traits: [traitCount]uint64{traitContainer: 1}, processes: []processID{{pid: 4000}}},
			run:      "a", rule: ruleRank,
		},
		"a worker of a service has another number than what reports": {
			at:       map[rule]candidates{ruleService: one(runA(isProcess(7, 0)))},
			workload: evidence{processes: []processID{{pid: 8}}}, run: "a", rule: ruleService,
		},
		"numbers of many processes tell nothing": {
			at:       map[rule]candidates{ruleRank: one(runA(isProcess(7, 0), ofMany))},
			workload: evidence{ranked: true, processes: []processID{{pid: 8}}}, run: "a", rule: ruleRank,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var at [ruleCount]candidates
			for r, f := range tt.at {
				at[r] = f
			}
			j := match(&tt.workload, &at)
			assert.Equal(t, tt.run != "", j.ok)
			assert.Equal(t, tt.run, j.run)
			if j.ok {
				assert.Equal(t, ruleNames[tt.rule], ruleNames[j.rule])
			}
		})
	}
}
