package mlattr

import (
	"cmp"
	"time"
)

// Problem is the kind of a problem on its series, and the event name of the log
// records about one: see the Problem values.
const Problem = "ml.problem"

// Attributes of log records about problems.
const (
	// ProblemID identifies a problem from its beginning to its end.
	ProblemID = "ml.problem.id"
	// ProblemState is ProblemBegan, ProblemUpdated, ProblemStale or ProblemEnded.
	ProblemState = "ml.problem.state"
	// ProblemSeverity is one of the Severity values.
	ProblemSeverity = "ml.problem.severity"
	// ProblemOnset is when the problem began, ProblemDetected when ml_metrics
	// first knew of it, in seconds since 1970.
	ProblemOnset    = "ml.problem.onset"
	ProblemDetected = "ml.problem.detected"
	// ProblemEvidenceTime is when the newest data that shows the problem arrived, in
	// seconds since 1970.
	ProblemEvidenceTime = "ml.problem.evidence.time"
	// ProblemEndReason is why the problem has ended: ProblemOver or
	// ProblemNoEvidence.
	ProblemEndReason = "ml.problem.end.reason"
	// ProblemValue is what was observed, ProblemUsual what it was before, both in
	// ProblemUnit, a UCUM unit.
	ProblemValue = "ml.problem.value"
	ProblemUsual = "ml.problem.usual"
	ProblemUnit  = "ml.problem.unit"
	// ProblemWindow is the time in seconds that ProblemValue covers, ProblemCount
	// the number of observations in it.
	ProblemWindow = "ml.problem.window"
	ProblemCount  = "ml.problem.count"
	// ProblemEvidence has short phrases, ProblemExcluded what was taken out before
	// the comparison, ProblemBefore the changes before the onset, the newest first.
	ProblemEvidence = "ml.problem.evidence"
	ProblemExcluded = "ml.problem.excluded"
	ProblemBefore   = "ml.problem.before"
	// ProblemTelemetry is the fraction of the expected telemetry that arrived.
	ProblemTelemetry = "ml.problem.telemetry.ratio"
	// ProblemGPUs is the number of GPUs that the problem keeps from work, of one that slows
	// a run down a part of them, and ProblemGPUHours the hours of GPUs that it has taken so
	// far. ProblemHeld are the GPUs concerned, at most 64, each a HostName, a slash and a
	// HardwareID.
	ProblemGPUs     = "ml.problem.gpus"
	ProblemGPUHours = "ml.problem.gpu_hours"
	ProblemHeld     = "ml.problem.gpu.ids"
	// ProblemNext is what to do next.
	ProblemNext = "ml.problem.next"
	// ProblemCause is the ProblemID of the problem that this one follows from.
	ProblemCause = "ml.problem.cause"
	// ProblemShadow is true of a problem that is only recorded.
	ProblemShadow = "ml.problem.shadow"
)

// Values of ProblemState.
const (
	ProblemBegan = "began"
	// ProblemUpdated is that of a problem that lasts and whose evidence has changed.
	ProblemUpdated = "updated"
	// ProblemStale is that of a problem that lasts without new evidence.
	ProblemStale = "stale"
	ProblemEnded = "ended"
)

// Values of ProblemEndReason.
const (
	// ProblemOver: newer data no longer shows the problem.
	ProblemOver = "over"
	// ProblemNoEvidence: for ProblemKind.EndsAfter no data has shown it, and none
	// has shown that it is over.
	ProblemNoEvidence = "no_evidence"
)

// Values of Problem.
const (
	ProblemLooksHung        = "looks_hung"
	ProblemGPUFailed        = "gpu_failed"
	ProblemHostSilent       = "host_silent"
	ProblemRunSilent        = "run_silent"
	ProblemRankMissing      = "rank_missing"
	ProblemFailing          = "failing"
	ProblemSlowRequests     = "slow_requests"
	ProblemSlow             = "slow"
	ProblemSlowHost         = "slow_host"
	ProblemNonfinite        = "nonfinite"
	ProblemRunFailed        = "run_failed"
	ProblemRestartLoop      = "restart_loop"
	ProblemCheckpoint       = "checkpoint_overdue"
	ProblemRetryStorm       = "retry_storm"
	ProblemThrottled        = "throttled"
	ProblemHeldIdle         = "held_idle"
	ProblemToolErrors       = "tool_errors"
	ProblemTruncated        = "truncated"
	ProblemModelSubstituted = "model_substituted"
	ProblemCacheCollapsed   = "cache_collapsed"
	ProblemCostly           = "costly"
	ProblemLossSpike        = "loss_spike"
	ProblemLossDiverged     = "loss_diverged"
	ProblemLossFrozen       = "loss_frozen"
	ProblemAnswersChanged   = "answers_changed"
	ProblemTailLatency      = "tail_latency"
	ProblemMemoryGrowth     = "memory_growth"
	ProblemThroughputDrop   = "throughput_drop"
	ProblemLooping          = "looping"
)

// Severity says who should learn of a problem, and how fast.
type Severity string

// The severities. A problem that is only a mark has no series, and asks nobody
// to act.
const (
	SeverityPage   Severity = "page"
	SeverityTicket Severity = "ticket"
	SeverityMark   Severity = "mark"
)

// ProblemOf is what a problem is a problem of.
type ProblemOf string

// The values of ProblemOf.
const (
	OfRun     ProblemOf = "run"
	OfService ProblemOf = "service"
	OfGPU     ProblemOf = "gpu"
	OfHost    ProblemOf = "host"
)

// ProblemKind describes a kind of problem.
type ProblemKind struct {
	// Name is the value of Problem, Title the same in words.
	Name, Title string
	Severity    Severity
	Of          ProblemOf
	// Moment reports whether the problem ends when it begins.
	Moment bool
	// FromSilence reports whether the problem is concluded from what did not arrive:
	// while telemetry is refused or lost on its way, it may be none.
	FromSilence bool
	// Lasts is for how long the problem lasts without new evidence, 0 meaning an
	// hour; Calm for how long newer data must not show it until it ends, 0 meaning
	// that it ends at once.
	Lasts, Calm time.Duration
	// Description is one sentence: the rule with its figures.
	Description string
	// Method cites the method of the rule, or is "".
	Method string
}

// EndsAfter returns for how long a problem of the kind lasts without new evidence.
func (k *ProblemKind) EndsAfter() time.Duration { return cmp.Or(k.Lasts, time.Hour) }

// day is how long a problem lasts whose GPU or host may be beyond reach.
const day = 24 * time.Hour

// Problems has the kinds of problems that ml_metrics concludes: pages first, then
// tickets and marks.
var Problems = [...]ProblemKind{
	{
		Name: ProblemLooksHung, Title: "looks hung", Severity: SeverityPage, Of: OfRun, FromSilence: true, Lasts: day,
		Description: "The run is stalled: for five typical steps and at least `stall_timeout` it has held GPU memory and no training span has arrived; or the first step of its attempt is overdue (`first_step_timeout`). It looks hung at once if its GPUs wait for each other (busy at 0.4 of their highest power or less, the others at 0 %), if NCCL, a failed GPU, a missing rank or a rank that did something else last says so, or if their use is unknown. Else it may be in a checkpoint or an evaluation: it looks hung after five times as long, and after twelve times while most GPUs have worked since or a rank sends. A silence as before is none, up to 1.5 times the longest one of its program that ended by itself (30 minutes at most), 3 times after three without a sign of a wait, or, unless its GPUs wait, the longest checkpoint or validation. GPUs that do nothing between silences of different lengths, as of a notebook, are only held idle.",
	},
	{
		Name: ProblemGPUFailed, Title: "GPU failed", Severity: SeverityPage, Of: OfGPU, Lasts: day, Calm: 10 * time.Minute,
		Description: "The `hw.status` of the GPU is failed; each run that held it within the 5 minutes before has the problem. It has not ended before the GPU is read as healthy again.",
	},
	{
		Name: ProblemHostSilent, Title: "host silent", Severity: SeverityPage, Of: OfHost, FromSilence: true,
		Description: "For `stall_timeout`, and three of their usual intervals, neither readings of GPUs nor anything else has come from a host on which a workload holds a GPU: a rank of a run that has neither ended nor sent anything since, or another workload whose GPU worked within `idle_timeout` before; each such run has the problem. While other ranks of the run take steps, the host must be silent for six times as long. It ends when the host sends again, and 24 hours after its last reading.",
	},
	{
		Name: ProblemRunSilent, Title: "run silent", Severity: SeverityPage, Of: OfRun, FromSilence: true,
		Description: "Nothing has come from the run for as long as from a stalled one, and the hosts of all GPUs that it holds have been silent for `stall_timeout`, so that nobody knows whether it works. A run that was stalled when its GPUs were last read still looks hung. It ends when the run or a host of its GPUs sends again, and 24 hours after their last reading.",
	},
	{
		Name: ProblemRankMissing, Title: "rank missing", Severity: SeverityPage, Of: OfRun, FromSilence: true, Lasts: day,
		Description: "A rank has stopped sending for as long as a stalled run, and others have ended a step since half of that time; or, after `first_step_timeout`, a rank of the run's world size has never sent although more than half have. A rank whose GPU works is not missing, only its telemetry, nor are those of a run that has released its GPUs, or more than half of its ranks; if its host does not report GPUs, or it still holds its GPU, it must be silent for six times as long while others send.",
	},
	{
		Name: ProblemFailing, Title: "failing", Severity: SeverityPage, Of: OfService,
		Description: "At least 0.05 of the newest 12 to 400 requests to models, to one of several models or to agents, or calls within 15 minutes failed (larger numbers may take 2 hours if the newest quarter shows half of it, the 12 newest a day), 5 or more and 3 times the usual share, or so did those of one version; or at least 0.5 of the last 100, 3 or more, while fewer than 100 came before.",
		Method:      "Fisher's exact test (1935) against the up to 9000 outcomes before, with p < 1e-7; the onset by a cumulative sum (Page, 1954).",
	},
	{
		Name: ProblemSlowRequests, Title: "slow requests", Severity: SeverityPage, Of: OfService,
		Description: "The requests of the service to a model or an agent, their first tokens or waits, or its calls, take at least 1.75 times as long as usual, beyond what longer prompts or answers explain in proportion and the square root of higher demand; or those of one version do.",
		Method:      "Medians of blocks of at least a minute and 10 observations (batch means: Law and Kelton), 5 in a row, together 3.5 robust deviations (Hampel, 1974) from those of up to 60 blocks before; the duration is taken at the typical length of the answer by analysis of covariance (Fisher, 1932).",
	},
	{
		Name: ProblemSlow, Title: "slow", Severity: SeverityTicket, Of: OfRun,
		Description: "For `stall_timeout`, the median of the last 20 steps is more than 1.3 times that of the up to 500 before them, and clearly (z of 5 or more), and that of the last 10 is at the end; checkpoints, validations, the first 10 steps after a restart and time without demand do not count. Or their level has risen by 3.5 % or more, and by 6 standard errors, above a line through the steps before, for `stall_timeout` and 100 steps or for 400 steps; shifts of the run that went by themselves are usual. Or the shortest of each 10 or 20 steps have been 1.2 times as long as they once were for half an hour, however slowly they became so. Another number of ranks or of tokens of a step begins anew.",
		Method:      "Mann and Whitney (1947), rank-sum test; medians of blocks of 20 steps (10 from 1 s on) against the line by Theil (1950) and Sen (1968) through up to 32 before, with their autocorrelation",
	},
	{
		Name: ProblemSlowHost, Title: "slow host", Severity: SeverityTicket, Of: OfHost,
		Description: "In two runs or more within a day, and most of those on the host, its ranks loaded data for more than 1.5 times as long as those on three quarters of the other hosts, by 0.05 of a step and 6 median absolute deviations or more, for `stall_timeout`.",
		Method:      "Hampel (1974), median absolute deviation",
	},
	{
		Name: ProblemNonfinite, Title: "loss not finite", Severity: SeverityTicket, Of: OfRun,
		Description: "The newest two losses of the run, or 3 of the newest 20, are NaN or infinite, whichever rank they are of.",
	},
	{
		Name: ProblemLossFrozen, Title: "loss frozen", Severity: SeverityTicket, Of: OfRun,
		Description: "The newest 65 losses or more are exactly the same, where at most a tenth of those before equalled the one before them.",
	},
	{
		Name: ProblemRunFailed, Title: "run failed", Severity: SeverityTicket, Of: OfRun, Lasts: day,
		Description: "A rank has ended with an error and no rank takes steps: the span of its whole training failed; or a span without a parent around all its work did, and nothing followed for a fifth of the time of a stall; or its last work did, and nothing followed for the time of a stall, while its run holds no GPU. A new attempt ends it.",
	},
	{
		Name: ProblemRestartLoop, Title: "restart loop", Severity: SeverityTicket, Of: OfRun,
		Description: "The run has begun 3 or more new attempts within an hour. Without a launcher that counts, an attempt is another process that goes on after a gap of 10 s and 3 steps, or a step number that has fallen after one.",
	},
	{
		Name: ProblemCheckpoint, Title: "checkpoint overdue", Severity: SeverityTicket, Of: OfRun, FromSilence: true,
		Description: "The run takes steps, and the last checkpoint of each rank that saves regularly (5 of them within 1.25 times the median interval, or 3 after the same number of steps) is more than twice its longest interval ago, in steps and in time. Checkpoints that follow each validation may keep only the best, and are not overdue.",
	},
	{
		Name: ProblemRetryStorm, Title: "retry storm", Severity: SeverityTicket, Of: OfService,
		Description: "At least 0.1 of the newest 12 to 400 requests and calls within 15 minutes, 10 or more and 3 times the usual share, repeat one that failed within the 5 minutes before, or were resent; or in 5 minutes there are twice the usual requests, at least 50 and half of them fail, and no more than usual succeed.",
		Method:      "Fisher's exact test (1935) against the up to 9000 outcomes before, with p < 1e-7; the onset by a cumulative sum (Page, 1954); a tenth is the retry budget of Google's Site Reliability Engineering (2016), chapter 21.",
	},
	{
		Name: ProblemThrottled, Title: "throttled", Severity: SeverityTicket, Of: OfGPU,
		Description: "Thermal, power or hardware slowdown has been active for a quarter of the last 10 minutes, since 15 minutes before to 5 minutes after the run's steps became clearly longer than 1.1 times the usual time, and they have stayed so for `stall_timeout`.",
		Method:      "Mann and Whitney (1947), rank-sum test",
	},
	{
		Name: ProblemHeldIdle, Title: "held idle", Severity: SeverityTicket, Of: OfGPU,
		Description: "A workload holds the GPU's memory, and the GPU has done nothing for `idle_timeout`.",
	},
	{
		Name: ProblemToolErrors, Title: "tool errors", Severity: SeverityTicket, Of: OfService,
		Description: "At least 0.1 of the newest 12 to 400 calls of a tool within 15 minutes failed, 5 or more and 3 times the usual share, which needs 100 calls.",
		Method:      "Fisher's exact test (1935) against the up to 9000 outcomes before, with p < 1e-7; the onset by a cumulative sum (Page, 1954).",
	},
	{
		Name: ProblemTruncated, Title: "answers cut by length", Severity: SeverityTicket, Of: OfService,
		Description: "At least 0.1 of the newest 12 to 400 answers of a model within 15 minutes were cut at a limit of tokens, 5 or more and twice the usual share, which needs 100 answers.",
		Method:      "Fisher's exact test (1935) against the up to 9000 outcomes before, with p < 1e-7; the onset by a cumulative sum (Page, 1954).",
	},
	{
		Name: ProblemAnswersChanged, Title: "answers changed", Severity: SeverityTicket, Of: OfService,
		Description: "At least 0.05 of the newest 12 to 400 answers of a model are empty (0 or 1 token), withheld by a filter or refused, 5 or more and 3 times the usual share, which needs 100 answers; or they have 1.7 times fewer tokens than usual; or at least 5 embeddings have a number of dimensions that none of the 100 or more before had.",
		Method:      "Fisher's exact test (1935), medians of blocks (batch means: Law and Kelton), and the share of new values that is to be expected (Good and Turing, 1953).",
	},
	{
		Name: ProblemTailLatency, Title: "tail latency", Severity: SeverityTicket, Of: OfService,
		Description: "At least 0.07 of the newest 12 to 400 requests to a model or an agent, or calls, took more than 1.4 times as long as all but 3 of the first 128 did, 10 or more and 5 times the usual share, but not more than 0.4; the limit follows the median.",
		Method:      "Fisher's exact test (1935) against the up to 9000 outcomes before, with p < 1e-7; the onset by a cumulative sum (Page, 1954).",
	},
	{
		Name: ProblemModelSubstituted, Title: "another model answers", Severity: SeverityTicket, Of: OfService,
		Description: "At least 5 answers for a requested model come from models that gave none of the 100 or more answers before; after a day they are usual.",
		Method:      "The share of new models that is to be expected (Good and Turing, 1953), and the binomial distribution with p < 1e-7.",
	},
	{
		Name: ProblemCacheCollapsed, Title: "cached tokens collapsed", Severity: SeverityTicket, Of: OfService,
		Description: "The share of the input tokens of a model that is read from a cache, usually at least 0.2, has fallen to a third or less, in requests with at least 1024 input tokens.",
		Method:      "Means of blocks of at least a minute and 10 observations (batch means: Law and Kelton), 3 in a row, together 3.5 robust deviations (Hampel, 1974) from those of up to 60 blocks before.",
	},
	{
		Name: ProblemCostly, Title: "costly", Severity: SeverityTicket, Of: OfService,
		Description: "A task, which is one trace, takes at least 1.5 times the usual tokens, or costs 1.5 times as much where the cost is known.",
		Method:      "Medians of blocks of at least a minute and 10 observations (batch means: Law and Kelton), 3 in a row, together 3.5 robust deviations (Hampel, 1974) from those of up to 60 blocks before.",
	},
	{
		Name: ProblemLossSpike, Title: "loss spike", Severity: SeverityMark, Of: OfRun, Moment: true,
		Description: "3 of 5 losses are more than 1.2 times the median of up to 256 before them, and above it by 8 times their spread, on a logarithmic scale; at most one an hour, and none right after a restart or a raised learning rate. Two such rises that went by themselves are usual, up to 1.25 times their size on that scale.",
		Method:      "Hampel (1974), identifier by median and median absolute deviation",
	},
	{
		Name: ProblemLossDiverged, Title: "loss diverged", Severity: SeverityMark, Of: OfRun,
		Description: "The medians of two blocks of 32 losses are more than 1.3 times the lowest one, and above it by twice the spread of losses, on a logarithmic scale. Two such rises that went by themselves are usual, up to 1.25 times their size on that scale.",
		Method:      "Hampel (1974), identifier by median and median absolute deviation",
	},
	{
		Name: ProblemMemoryGrowth, Title: "memory grows", Severity: SeverityMark, Of: OfRun,
		Description: "The memory of a GPU of the run has grown steadily for 30 to 60 minutes, by 0.05 of its limit an hour or more, and reaches the limit within 12 hours.",
		Method:      "Theil (1950) and Sen (1968), slope; Kendall (1938), tau",
	},
	{
		Name: ProblemThroughputDrop, Title: "throughput dropped", Severity: SeverityMark, Of: OfService,
		Description: "The output tokens per second of a request to a model have fallen to two thirds of the usual rate or less, beyond what longer prompts or shorter answers explain in proportion and the square root of higher demand.",
		Method:      "Medians of blocks of at least a minute and 10 observations (batch means: Law and Kelton), 5 in a row, together 3.5 robust deviations (Hampel, 1974) from those of up to 60 blocks before.",
	},
	{
		Name: ProblemLooping, Title: "looping", Severity: SeverityMark, Of: OfService,
		Description: "Within one task an agent calls a tool with the same arguments, or takes the same step, at least 10 times and 3 times as often as any of the 256 tasks before.",
		Method:      "Repeated elements by Misra and Gries (1982).",
	},
}

// problemByName is an index of Problems.
var problemByName = func() map[string]*ProblemKind {
	index := make(map[string]*ProblemKind, len(Problems))
	for i := range Problems {
		index[Problems[i].Name] = &Problems[i]
	}
	return index
}()

// ProblemNamed returns the kind of problem with that name. ok is false if there is
// none.
func ProblemNamed(name string) (kind ProblemKind, ok bool) {
	known, ok := problemByName[name]
	if !ok {
		return ProblemKind{}, false
	}
	return *known, true
}
