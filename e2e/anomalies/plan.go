package anomalies

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// plan is one kind of problem in one system at one strength.
type plan struct {
	kind, system, strength string
	// within is the time from the onset in which it must be found to count.
	within time.Duration
	// recall is the least share that must be found; 0 is no limit.
	recall float64
	// missed reports whether ml_metrics is known to find fewer. The page says so, and the
	// test does not fail.
	missed bool
	// fast ones are measured in make check.
	fast bool
	// usual is the least time before it, usualLeast if it is 0.
	usual time.Duration
	// ranks is the least number of a run's ranks.
	ranks int
	// inRun or inService plants it.
	inRun     func(*run)
	inService func(*service)
}

// name names the plan as a test.
func (p *plan) name() string { return p.kind + "/" + p.system + "/" + p.strength }

// The times in which problems must be found.
const (
	soon  = 10 * time.Minute
	hour  = time.Hour
	hours = 2 * time.Hour
)

// plans is what is planted, kind by kind.
var plans = []plan{
	{kind: mlattr.ProblemLooksHung, system: torchTel, strength: "all ranks stop", within: soon, recall: 0.99, fast: true, inRun: (*run).hang},
	{kind: mlattr.ProblemLooksHung, system: ownLoop, strength: "all ranks stop", within: soon, recall: 0.99, inRun: (*run).hang},
	{kind: mlattr.ProblemLooksHung, system: fx, strength: "the process stops", within: soon, recall: 0.99, inRun: (*run).hang},
	{kind: mlattr.ProblemLooksHung, system: ownLoop, strength: "before the first step", within: 40 * time.Minute, recall: 0.99, inRun: hangAtStart},
	{kind: mlattr.ProblemGPUFailed, system: ownLoop, strength: "`hw.status` is failed, the run stops", within: soon, recall: 0.99, fast: true, inRun: failGPU},
	{kind: mlattr.ProblemHostSilent, system: torchTel, strength: "its host is cut off", within: soon, inRun: cutOff},
	{kind: mlattr.ProblemHostSilent, system: ownLoop, strength: "its host is cut off", within: soon, recall: 0.9, fast: true, inRun: cutOff},
	{kind: mlattr.ProblemRunSilent, system: torchTel, strength: "its host is cut off", within: soon, inRun: cutOff},
	{kind: mlattr.ProblemRunSilent, system: ownLoop, strength: "its host is cut off", within: soon, recall: 0.9, fast: true, inRun: cutOff},
	{kind: mlattr.ProblemRankMissing, system: torchTel, strength: "the process of one ends", within: 30 * time.Minute, recall: 0.9, fast: true, ranks: 2, inRun: kill},
	{kind: mlattr.ProblemRankMissing, system: ownLoop, strength: "the process of one ends", within: 30 * time.Minute, ranks: 2, inRun: kill},
	{kind: mlattr.ProblemRankMissing, system: ownLoop, strength: "the telemetry of one is lost", within: 30 * time.Minute, ranks: 2, inRun: mute},
	{kind: mlattr.ProblemFailing, system: agent, strength: "10 % of the requests", within: hours, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: agent, strength: "30 % of the requests", within: hours, recall: 0.9, fast: true, inService: fail(0.3)},
	{kind: mlattr.ProblemFailing, system: taskWeaver, strength: "10 % of the rounds", within: hours, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: taskWeaver, strength: "30 % of the rounds", within: hours, inService: fail(0.3)},
	{kind: mlattr.ProblemFailing, system: snakepit, strength: "10 % of the calls", within: hours, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: snakepit, strength: "30 % of the calls", within: hours, inService: fail(0.3)},
	{kind: mlattr.ProblemFailing, system: tuft, strength: "10 % of the passes", within: hours, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: tuft, strength: "30 % of the passes", within: hours, inService: fail(0.3)},
	{kind: mlattr.ProblemSlowRequests, system: agent, strength: "2 times", within: hours, recall: 0.9, missed: true, fast: true, inService: slowRequests(2)},
	{kind: mlattr.ProblemSlowRequests, system: agent, strength: "4 times", within: hours, inService: slowRequests(4)},
	{kind: mlattr.ProblemSlowRequests, system: taskWeaver, strength: "2 times", within: hours, inService: slowRequests(2)},
	{kind: mlattr.ProblemSlowRequests, system: taskWeaver, strength: "4 times", within: hours, inService: slowRequests(4)},
	{kind: mlattr.ProblemSlowRequests, system: snakepit, strength: "2 times", within: hours, inService: slowRequests(2)},
	{kind: mlattr.ProblemSlowRequests, system: snakepit, strength: "4 times", within: hours, inService: slowRequests(4)},
	{kind: mlattr.ProblemSlowRequests, system: tuft, strength: "4 times", within: hours, inService: slowRequests(4)},

	{kind: mlattr.ProblemSlow, system: torchTel, strength: "1.2 times", within: hours, inRun: slower(1.2)},
	{kind: mlattr.ProblemSlow, system: torchTel, strength: "1.4 times", within: hours, inRun: slower(1.4)},
	{kind: mlattr.ProblemSlow, system: torchTel, strength: "2 times", within: hours, recall: 0.9, fast: true, inRun: slower(2)},
	{kind: mlattr.ProblemSlow, system: ownLoop, strength: "1.4 times", within: hours, inRun: slower(1.4)},
	{kind: mlattr.ProblemSlow, system: ownLoop, strength: "2 times", within: hours, inRun: slower(2)},
	{kind: mlattr.ProblemSlow, system: ownLoop, strength: "1.5 times, its input", within: hours, inRun: slowInput(1.5)},
	{kind: mlattr.ProblemSlow, system: fx, strength: "1.4 times", within: hours, inRun: slower(1.4)},
	{kind: mlattr.ProblemSlow, system: fx, strength: "2 times", within: hours, inRun: slower(2)},
	{kind: mlattr.ProblemSlowHost, system: ownLoop, strength: "1 of 3 hosts of 2 runs loads data 1.5 times as long", within: 4 * time.Hour, inRun: slowHost(1.5)},
	{kind: mlattr.ProblemSlowHost, system: ownLoop, strength: "1 of 3 hosts of 2 runs loads data 2 times as long", within: 4 * time.Hour, inRun: slowHost(2)},
	{kind: mlattr.ProblemSlowHost, system: ownLoop, strength: "1 of 3 hosts of 2 runs loads data 3 times as long", within: 4 * time.Hour, recall: 0.9, fast: true, inRun: slowHost(3)},
	{kind: mlattr.ProblemLemonHost, system: ownLoop, strength: "1 of a fleet of 5 hosts loads data 3 times as long, in 4 runs", within: 4 * time.Hour, recall: 0.9, fast: true, inRun: slowHost(3)},
	{kind: mlattr.ProblemLemonVersion, system: ownLoop, strength: "half of a fleet of 12 hosts get a driver with which steps take 1.1 times as long", within: 24 * time.Hour, recall: 0.9, fast: true, inRun: otherDriver(1.1)},
	{kind: mlattr.ProblemNonfinite, system: ownLoop, strength: "NaN from then on", within: soon, recall: 0.9, fast: true, inRun: notFinite(always)},
	{kind: mlattr.ProblemNonfinite, system: ownLoop, strength: "one step in ten", within: hour, inRun: notFinite(0.1)},
	{kind: mlattr.ProblemNonfinite, system: fx, strength: "NaN from then on", within: soon, inRun: notFinite(always)},
	{kind: mlattr.ProblemRunFailed, system: torchTel, strength: "its last work fails, its processes end", within: 30 * time.Minute, inRun: crash},
	{kind: mlattr.ProblemRunFailed, system: ownLoop, strength: "its last work fails, its processes end", within: 30 * time.Minute, recall: 0.8, fast: true, inRun: crash},
	{kind: mlattr.ProblemRestartLoop, system: torchTel, strength: "every 5 min", within: hour, recall: 0.9, fast: true, inRun: restartEach(5 * time.Minute)},
	{kind: mlattr.ProblemRestartLoop, system: torchTel, strength: "every 15 min", within: hour, inRun: restartEach(15 * time.Minute)},
	{kind: mlattr.ProblemRestartLoop, system: ownLoop, strength: "every 5 min", within: hour, inRun: restartEach(5 * time.Minute)},
	{kind: mlattr.ProblemRestartLoop, system: ownLoop, strength: "every 15 min", within: hour, inRun: restartEach(15 * time.Minute)},
	{kind: mlattr.ProblemCheckpoint, system: ownLoop, strength: "none any more", usual: 6 * time.Hour, within: 4 * time.Hour, recall: 0.9, fast: true, inRun: func(r *run) { r.noSaves = true }},
	{kind: mlattr.ProblemThrottled, system: torchTel, strength: "steps 1.3 times as long", within: hour, inRun: throttle(1.3)},
	{kind: mlattr.ProblemThrottled, system: torchTel, strength: "steps 1.6 times as long", within: hour, recall: 0.9, fast: true, inRun: throttle(1.6)},
	{kind: mlattr.ProblemThrottled, system: ownLoop, strength: "steps 1.6 times as long", within: hour, inRun: throttle(1.6)},
	{kind: mlattr.ProblemHeldIdle, system: ownLoop, strength: "the loop stops, its memory stays", within: hour, recall: 0.9, fast: true, inRun: idle},
	{kind: mlattr.ProblemRetryStorm, system: agent, strength: "3 failed tries for each answer", within: hours, recall: 0.9, fast: true, inService: retry(3, always)},
	{kind: mlattr.ProblemRetryStorm, system: agent, strength: "2 failed tries for 3 answers of 10", within: hours, inService: retry(2, 0.3)},
	{kind: mlattr.ProblemToolErrors, system: agent, strength: "10 % of the calls", within: hours, inService: toolErrors(0.1)},
	{kind: mlattr.ProblemToolErrors, system: agent, strength: "30 % of the calls", within: hours, recall: 0.9, fast: true, inService: toolErrors(0.3)},
	{kind: mlattr.ProblemTruncated, system: agent, strength: "15 % of the answers", within: hours, inService: truncate(0.15)},
	{kind: mlattr.ProblemTruncated, system: agent, strength: "40 % of the answers", within: hours, recall: 0.9, fast: true, inService: truncate(0.4)},
	{kind: mlattr.ProblemModelSubstituted, system: agent, strength: "a third of the answers", within: hour, inService: substitute(0.33)},
	{kind: mlattr.ProblemModelSubstituted, system: agent, strength: "every answer", within: hour, recall: 0.9, fast: true, inService: substitute(always)},
	{kind: mlattr.ProblemCacheCollapsed, system: agent, strength: "to a fifth", within: hours, inService: uncache(0.2)},
	{kind: mlattr.ProblemCacheCollapsed, system: agent, strength: "to nothing", within: hours, recall: 0.9, fast: true, inService: uncache(0)},
	{kind: mlattr.ProblemCostly, system: agent, strength: "2 times the tokens", within: hours, inService: tokens(2, 2)},
	{kind: mlattr.ProblemCostly, system: agent, strength: "4 times the tokens", within: hours, recall: 0.9, fast: true, inService: tokens(4, 4)},
	{kind: mlattr.ProblemCostly, system: taskWeaver, strength: "4 times the tokens", within: hours, inService: tokens(4, 4)},

	{kind: mlattr.ProblemLossSpike, system: ownLoop, strength: "2 times for 5 steps", usual: 6 * time.Hour, within: soon, inRun: spike(2, 5)},
	{kind: mlattr.ProblemLossSpike, system: ownLoop, strength: "4 times for 5 steps", usual: 6 * time.Hour, within: soon, recall: 0.9, fast: true, inRun: spike(4, 5)},
	{kind: mlattr.ProblemLossSpike, system: fx, strength: "4 times for 5 steps", usual: 6 * time.Hour, within: soon, inRun: spike(4, 5)},
	{kind: mlattr.ProblemLossDiverged, system: ownLoop, strength: "1 % more with each step", usual: 6 * time.Hour, within: hours, recall: 0.9, fast: true, inRun: diverge(1.01)},
	{kind: mlattr.ProblemLossDiverged, system: fx, strength: "1 % more with each step", usual: 6 * time.Hour, within: hours, inRun: diverge(1.01)},
	{kind: mlattr.ProblemLossFrozen, system: ownLoop, strength: "the same from then on", within: 2 * time.Hour, recall: 0.9, fast: true, inRun: func(r *run) { r.frozen = true }},
	{kind: mlattr.ProblemTailLatency, system: agent, strength: "one request in ten takes ten times as long", within: hours, recall: 0.8, fast: true, inService: slowNowAndThen(10, 0.1)},
	{kind: mlattr.ProblemMemoryGrowth, system: ownLoop, strength: "6 GiB an hour", within: hours, recall: 0.9, fast: true, inRun: grow(6 * gib)},
	{kind: mlattr.ProblemMemoryGrowth, system: torchTel, strength: "6 GiB an hour", within: hours, inRun: grow(6 * gib)},
	{kind: mlattr.ProblemAnswersChanged, system: agent, strength: "a third as long", within: hours, recall: 0.9, fast: true, inService: tokens(1, 0.33)},
	{kind: mlattr.ProblemThroughputDrop, system: agent, strength: "each token takes 3 times as long", within: hours, inService: slowTokens(3)},
	{kind: mlattr.ProblemLooping, system: agent, strength: "30 equal calls of a tool in 1 of 10 tasks", within: hours, recall: 0.9, fast: true, inService: repeat(30, 0.1)},
}
