// Package api has the documents of the page's API, and how their values are formed.
package api

import (
	"fmt"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// SchemaVersion is the version of State. It changes only if a field changes its
// meaning or goes away; new fields keep it.
const SchemaVersion = 1

// State is everything that the page shows at one moment, and the document of
// GET /api/v1/state. A State is immutable. Each row has a key that is unique in
// its list and stays the same while the row exists. Numbers that nobody reported
// are nil and are omitted. Times are in UTC. Durations are in seconds, sizes in
// bytes, fractions between 0 and 1.
type State struct {
	// Version is SchemaVersion.
	Version int `json:"version"`
	// Time is when the State was taken, by the collector's clock.
	Time      time.Time `json:"time"`
	Collector Collector `json:"collector"`
	// Needs are the problems that need a person, the most urgent first: by kind, as
	// mlattr.Problems lists them, then by GPU-hours lost, then by onset.
	Needs []Need `json:"needs"`
	// Resolved are the problems that ended within the last 24 hours, the newest end
	// first.
	Resolved []Need `json:"resolved"`
	// Runs are ordered by service and start, so that rows keep their places.
	Runs []Run `json:"runs"`
	// GPUs are ordered by host and index.
	GPUs []GPU `json:"gpus"`
	// Failures are ordered by their last occurrence, the newest first.
	Failures []Failure `json:"failures"`
	// Calls are the most recent calls, the newest first.
	Calls []Call `json:"calls"`
	// Pools are the pools of workers that clients report.
	Pools []Pool `json:"pools"`
	// Models are the models and agents in use.
	Models []Model `json:"models"`
	// Changes are what was first seen of a service or run, and the marks of services,
	// the newest first.
	Changes []Change `json:"changes"`
	// Missing is what the page cannot show, why, and what changes it.
	Missing []Missing `json:"missing"`
	// Collectors are those that send to the page of a fleet, the silent ones first.
	// On other pages there are none.
	Collectors []SendingCollector `json:"collectors"`
}

// SendingCollector is a collector that sends its data to the page of a fleet.
type SendingCollector struct {
	Key string `json:"key"`
	// ID is its name, or its address if nothing names it.
	ID string `json:"id"`
	// Address is that of its machine, as far as known, Version that of its
	// distribution.
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	// FirstSeen is when the page first got data of it, LastSeen when it last did.
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen" updates:"-"`
	// SilentSince is LastSeen of a collector that has sent nothing for three of its
	// intervals and at least 15 seconds, nil for others.
	SilentSince *time.Time `json:"silent_since,omitempty"`
}

// Collector describes the collector and how complete and recent its data is.
type Collector struct {
	// Version is the version of the distribution.
	Version string `json:"version"`
	// Started is when the page started.
	Started time.Time `json:"started"`
	// DataTime is when data last arrived, nil if none has.
	DataTime *time.Time `json:"data_time,omitempty"`
	// Interval is the time between two updates of the page, in seconds.
	Interval float64 `json:"interval"`
	// Hosts is the number of hosts that have sent any data, with a GPU or without, HostsReporting the
	// number of those that have within three of their usual intervals, and 15 seconds.
	// What ml_metrics computes of a host is no data of it.
	Hosts          int `json:"hosts"`
	HostsReporting int `json:"hosts_reporting"`
	// HostsWithoutGPU are those of Hosts of which no GPU is known, at most 16 of
	// them; empty if no GPU is known at all.
	HostsWithoutGPU []string `json:"hosts_without_gpu,omitempty"`
	// GPUs counts the GPUs by what they do: working, looks_hung, slow,
	// held_idle, failed, free, no_data. Each GPU is in one of them, the first problem that
	// applies. NoDataSince is when the first of those in no_data was last read.
	GPUs        map[string]int `json:"gpus"`
	NoDataSince *time.Time     `json:"no_data_since,omitempty"`
	// Simulated reports whether any data on the page is simulated or recorded.
	Simulated bool `json:"simulated"`
	// Hidden is the number of rows of each list beyond the limits of the page.
	Hidden map[string]int `json:"hidden,omitempty"`
	// Links are the addresses of other pages: jaeger.
	Links map[string]string `json:"links,omitempty"`
}

// Need is a problem that needs a person. ml_metrics decides that it exists and
// since when.
type Need struct {
	Key string `json:"key"`
	// ID is ml.problem.id, by which people give a verdict.
	ID string `json:"id,omitempty"`
	// Kind is the Name of a kind in mlattr.Problems whose severity is not mark.
	Kind  string    `json:"kind"`
	Since time.Time `json:"since"`
	// NoEvidenceSince is when the newest evidence arrived of a problem that lasts
	// without new evidence, nil for others: it may be over.
	NoEvidenceSince *time.Time `json:"no_evidence_since,omitempty"`
	// Ended is when the problem ended, nil while it lasts. EndReason is why: over, newer
	// data no longer shows it; or no_evidence, no data has shown it for long.
	Ended     *time.Time `json:"ended,omitempty"`
	EndReason string     `json:"end_reason,omitempty"`
	// Severity is page for a problem that needs somebody now, ticket for one that
	// needs somebody today: that of the kind, or of what follows from the problem.
	Severity string `json:"severity"`
	// Urgency is the place in the order of urgency, 1 for the most urgent problem. One
	// that follows from another has the place of that one.
	Urgency int `json:"urgency"`
	// Run is the key of the run, empty if the problem has none.
	Run     string `json:"run,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	Service string `json:"service,omitempty"`
	Job     string `json:"job,omitempty"`
	// Owner is the user of the run, of the processes of the service, or of the workload
	// that held the GPU. Team is service.namespace. Both are empty if nothing names them.
	// Run, Job and Owner are those of the onset.
	Owner string `json:"owner,omitempty"`
	Team  string `json:"team,omitempty"`
	// GPUs are the keys of the GPUs concerned, of a problem of a run those that it held
	// last.
	GPUs []string `json:"gpus,omitempty"`
	// Subject is what has the problem, in a few words, such as the service, or
	// "gpu-08: GPU 4-7".
	Subject string `json:"subject"`
	// Value and Usual are the measure of the problem now and before, in Unit, a UCUM unit.
	Value *float64 `json:"value,omitempty"`
	Usual *float64 `json:"usual,omitempty"`
	Unit  string   `json:"unit,omitempty"`
	// Evidence are short phrases that say what was observed.
	Evidence []string `json:"evidence"`
	// Before are the changes that came before, the newest first. They are not
	// necessarily the cause.
	Before []Change `json:"before"`
	// GPUHours are the hours from the onset to the newest evidence of the GPUs that the problem
	// keeps from work, nil if none is known. Of a slow run these are the part of its GPUs that
	// its steps take longer than usual.
	GPUHours *float64 `json:"gpu_hours,omitempty"`
	// Cause is the key of the problem that this one follows from. The row comes
	// after it.
	Cause string `json:"cause,omitempty"`
	// Simulated reports whether data of its run, service or GPUs is simulated or recorded.
	Simulated bool `json:"simulated,omitempty"`
	// Recorded reports whether nothing but its GPUs is, and these come from a recording.
	Recorded bool `json:"recorded,omitempty"`
	// Next says what to do next; Command is a command for it, if there is one.
	Next    string `json:"next,omitempty"`
	Command string `json:"command,omitempty"`
}

// Run is a run of training, inference or an agent.
type Run struct {
	Key string `json:"key"`
	// ID is ml.run.id.
	ID      string `json:"id"`
	Service string `json:"service"`
	// Job is the name or number of the job, Owner whose it is, as far as known.
	Job   string `json:"job,omitempty"`
	Owner string `json:"owner,omitempty"`
	Team  string `json:"team,omitempty"`
	// State is the value of ml.run.state: running, stalled, failed, silent, ended or
	// unknown. StateSince is when it began.
	State      string     `json:"state"`
	StateSince *time.Time `json:"state_since,omitempty"`
	// Needs are the kinds of problems of the run.
	Needs []string `json:"needs,omitempty"`
	// FirstSeen is when the page first saw the run, LastSeen when its programs have last
	// sent anything. NoDataSince is LastSeen of a run that is not over and has sent
	// nothing for three of its usual intervals and at least 15 seconds, nil for others.
	FirstSeen   time.Time  `json:"first_seen"`
	LastSeen    time.Time  `json:"last_seen" updates:"-"`
	NoDataSince *time.Time `json:"no_data_since,omitempty"`
	// Steps is the largest ml.steps of its ranks, StepRate the steps per second.
	Steps    *float64 `json:"steps,omitempty"`
	StepRate *float64 `json:"step_rate,omitempty" updates:"-"`
	// StepTime and StepTimeUsual are ml.run.step.time, recent and usual.
	StepTime      *float64 `json:"step_time,omitempty"`
	StepTimeUsual *float64 `json:"step_time_usual,omitempty"`
	// Tokens is the sum of ml.tokens without those of the run's callers, TokenRate
	// their number per second. TokenBasis says what the rate rests on.
	Tokens     *float64 `json:"tokens,omitempty"`
	TokenRate  *float64 `json:"token_rate,omitempty"`
	TokenBasis string   `json:"token_basis,omitempty"`
	// Samples and SampleRate are those of ml.samples.
	Samples    *float64 `json:"samples,omitempty"`
	SampleRate *float64 `json:"sample_rate,omitempty"`
	// Loss is the mean of the ranks' ml.loss, LossScope its ml.loss.scope.
	Loss         *float64 `json:"loss,omitempty"`
	LossScope    string   `json:"loss_scope,omitempty"`
	LearningRate *float64 `json:"learning_rate,omitempty"`
	Epoch        *float64 `json:"epoch,omitempty"`
	// ValidationLoss is the mean of the ranks' ml.loss on held-out data, if Loss is
	// another one.
	ValidationLoss *float64 `json:"validation_loss,omitempty"`
	// Goodput is ml.run.goodput, Bound the current value of ml.run.bound.
	Goodput *float64 `json:"goodput,omitempty"`
	Bound   string   `json:"bound,omitempty"`
	// GPUs is ml.run.gpus, GPUUtilization ml.run.gpu.utilization.
	GPUs           *float64 `json:"gpus,omitempty"`
	GPUUtilization *float64 `json:"gpu_utilization,omitempty"`
	// Cost is what the run's requests to models cost in US dollars (ml.cost), GPUPrice
	// what its GPUs cost an hour (ml.run.gpu.price).
	Cost     *float64 `json:"cost,omitempty"`
	GPUPrice *float64 `json:"gpu_price,omitempty"`
	// GPUKeys are the keys of the GPUs that the run holds.
	GPUKeys []string `json:"gpu_keys,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`
	Ranks   int      `json:"ranks"`
	// Attempts is the largest ml.run.attempts of its ranks; 1 means no restart.
	Attempts *float64 `json:"attempts,omitempty"`
	// LastStep and LastCheckpoint are when the last step and checkpoint ended.
	LastStep       *time.Time `json:"last_step,omitempty"`
	LastCheckpoint *time.Time `json:"last_checkpoint,omitempty"`
	// Errors is the sum of ml.errors.
	Errors *float64 `json:"errors,omitempty"`
	// Version is the service.version that was seen last.
	Version string `json:"version,omitempty"`
	// Simulated reports whether data of the run or of its GPUs is simulated or recorded.
	Simulated bool `json:"simulated,omitempty"`
	// Recorded reports whether nothing but its GPUs is, and these come from a recording.
	Recorded bool `json:"recorded,omitempty"`
	// Why says for a number that is missing what would give it, by the name of
	// its field, such as token_rate.
	Why map[string]string `json:"why,omitempty"`
}

// RunDetail is what the page shows of one opened run, and the document of
// GET /api/v1/runs/{key}.
type RunDetail struct {
	Run   Run    `json:"run"`
	Needs []Need `json:"needs"`
	Ranks []Rank `json:"ranks"`
	// MissingRanks are the ranks between 0 and the largest that sent nothing, unless
	// the run's program sends from some ranks only.
	MissingRanks []string `json:"missing_ranks,omitempty"`
	Phases       []Phase  `json:"phases"`
	// TimeRatio is ml.run.time.ratio by ml.run.state.
	TimeRatio map[string]float64 `json:"time_ratio,omitempty"`
	// Spent is what the run's time went to since the page first saw it.
	Spent Spent `json:"spent"`
	// Settings are what is known of how the run was started, ordered by name.
	Settings []Setting `json:"settings"`
	// Changes are those of the run, its service and its hosts, the newest first.
	Changes []Change `json:"changes"`
	Curves  []Curve  `json:"curves"`
	// Marks are changes, problems and failures on the curves.
	Marks    []Mark    `json:"marks"`
	Calls    []Call    `json:"calls"`
	Failures []Failure `json:"failures"`
	Traces   []Trace   `json:"traces"`
}

// Rank is one process of a run.
type Rank struct {
	Rank string `json:"rank"`
	Host string `json:"host,omitempty"`
	// GPU is the key of its GPU.
	GPU      string     `json:"gpu,omitempty"`
	GPUIndex string     `json:"gpu_index,omitempty"`
	Steps    *float64   `json:"steps,omitempty"`
	LastStep *time.Time `json:"last_step,omitempty"`
	// LastSpan is the operation or phase of the span that ended last.
	LastSpan     string     `json:"last_span,omitempty"`
	LastSpanTime *time.Time `json:"last_span_time,omitempty"`
	Utilization  *float64   `json:"utilization,omitempty"`
	Power        *float64   `json:"power,omitempty"`
}

// Phase is a phase of a run's steps.
type Phase struct {
	Phase string `json:"phase"`
	// SecondsPerStep is the mean over the last five minutes and over ranks.
	SecondsPerStep *float64 `json:"seconds_per_step,omitempty"`
	// Share is its part of the whole step.
	Share *float64 `json:"share,omitempty"`
}

// Curve is a number over time.
type Curve struct {
	// Name is loss, step_time, token_rate, goodput, gpu_utilization, gpu_memory,
	// power, validation_loss, learning_rate or sample_rate.
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Times are Unix seconds, Values the numbers at these times. NaN does not
	// occur; a gap is a time without an entry. If there is Fine, they are means of the
	// minutes that begin at Times.
	Times  []float64 `json:"times"`
	Values []float64 `json:"values"`
	// Low and High are the smallest and the largest number of each mean. They are omitted
	// where Values are single numbers.
	Low  []float64 `json:"low,omitempty"`
	High []float64 `json:"high,omitempty"`
	// Fine are the single numbers of the last ten minutes. It is omitted where Times
	// and Values have them.
	Fine *FinePoints `json:"fine,omitempty"`
}

// SpanDetail is what an opened span shows, and the document of GET
// /api/v1/traces/{id}/spans/{span}. Without content of the exporter, text that is no word,
// name, id or path as its key says is its size only. Secrets are redacted.
type SpanDetail struct {
	Attributes []Setting   `json:"attributes"`
	Events     []SpanEvent `json:"events"`
}

// SpanEvent is an event of a span. Offset is the time from the span's start, in seconds.
type SpanEvent struct {
	Name       string    `json:"name"`
	Offset     float64   `json:"offset"`
	Attributes []Setting `json:"attributes"`
}

// History is the last hour of the page as a whole, and the document of GET
// /api/v1/history; with the query range=600 it is the last ten minutes.
type History struct {
	// Step is the length of the steps in seconds, Times are their starts in Unix seconds.
	Step  float64   `json:"step"`
	Times []float64 `json:"times"`
	// GPUs are those with the most problems first, then by host and index. If they are more
	// than 128, each row is a host; Hidden is the number of hosts beyond 128.
	GPUs   []GPUHistory `json:"gpus"`
	Hidden int          `json:"hidden,omitempty"`
	// Curves are token_rate, of the runs that train, model_token_rate, of requests to models,
	// gpu_cost_rate, and request_cost, what requests have cost in all; without those of which
	// nothing is known.
	Curves []Curve `json:"curves"`
}

// GPUHistory is what a GPU, or those of a host, did in each step of a History.
type GPUHistory struct {
	Host string `json:"host"`
	// Index is nvidia.gpu.index, empty for a whole host, and GPUs the number of GPUs.
	Index string `json:"index,omitempty"`
	GPUs  int    `json:"gpus"`
	// Activity is the worst that any of them did: a key of Collector.GPUs, or empty if
	// nothing is known. Use is their mean utilization, null if unknown.
	Activity []string   `json:"activity"`
	Use      []*float64 `json:"use"`
}

// FinePoints are the numbers of a Curve at Times, in Unix seconds.
type FinePoints struct {
	Times  []float64 `json:"times"`
	Values []float64 `json:"values"`
}

// Mark is a moment on the curves of a run.
type Mark struct {
	Time time.Time `json:"time"`
	// Kind is change, failure, state or the Kind of a Need.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// GPU is a GPU or a MIG device.
type GPU struct {
	Key string `json:"key"`
	// ID is hw.id, Index nvidia.gpu.index.
	ID    string `json:"id"`
	Index string `json:"index,omitempty"`
	Host  string `json:"host"`
	// Name is the product's name.
	Name string `json:"name,omitempty"`
	// Parent is hw.id of the GPU that a MIG device is part of. Collector.GPUs
	// counts GPUs only.
	Parent string `json:"parent,omitempty"`
	// Source is nvidia.gpu.source; Simulated reports whether the numbers come
	// from a recording or a simulation.
	Source    string `json:"source,omitempty"`
	Simulated bool   `json:"simulated,omitempty"`
	// Recorded reports whether the numbers come from a recording.
	Recorded bool `json:"recorded,omitempty"`
	// Activity is the key of Collector.GPUs that counts this GPU.
	Activity string `json:"activity"`
	// NoDataSince is LastSeen of a GPU that has not been read for three of its usual
	// intervals and at least 15 seconds, nil for others. LastActivity is what it did
	// then; its numbers and Holders are those of its last reading.
	NoDataSince    *time.Time `json:"no_data_since,omitempty"`
	LastActivity   string     `json:"last_activity,omitempty"`
	Utilization    *float64   `json:"utilization,omitempty"`
	MemoryUsed     *float64   `json:"memory_used,omitempty"`
	MemoryLimit    *float64   `json:"memory_limit,omitempty"`
	MemoryReserved *float64   `json:"memory_reserved,omitempty"`
	// MemoryUnattributed is used memory that belongs to no known workload.
	MemoryUnattributed *float64 `json:"memory_unattributed,omitempty"`
	Power              *float64 `json:"power,omitempty"`
	PowerLimit         *float64 `json:"power_limit,omitempty"`
	Temperature        *float64 `json:"temperature,omitempty"`
	// Throttle are the reasons that reduce the clocks now.
	Throttle []string `json:"throttle,omitempty"`
	// Health is the current hw.state: ok, degraded, failed or what is sent.
	Health string `json:"health,omitempty"`
	// XID is the last error of the driver.
	XID *XID `json:"xid,omitempty"`
	// Holders are the workloads that hold memory, the largest first.
	Holders []Holder `json:"holders"`
	// IdleSince is since when the GPU does nothing although it is held; HeldIdle
	// whether ml_metrics calls that a problem.
	IdleSince *time.Time `json:"idle_since,omitempty"`
	HeldIdle  bool       `json:"held_idle,omitempty"`
	// LastSeen is when data of the GPU last arrived.
	LastSeen time.Time `json:"last_seen" updates:"-"`
}

// XID is an error that the NVIDIA driver reported.
type XID struct {
	Code    string    `json:"code"`
	Message string    `json:"message,omitempty"`
	Time    time.Time `json:"time"`
}

// Holder is a workload that holds memory of a GPU.
type Holder struct {
	// Run is the key of its run, empty if none is known.
	Run     string `json:"run,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	Service string `json:"service,omitempty"`
	Rank    string `json:"rank,omitempty"`
	// Name is what is known of the workload otherwise, such as "slurm job 48211",
	// "pod ml/train-0" or "user 1001".
	Name  string `json:"name,omitempty"`
	Owner string `json:"owner,omitempty"`
	// Join is the rule that joined the workload to the run.
	Join   string   `json:"join,omitempty"`
	Memory *float64 `json:"memory,omitempty"`
}

// Failure is a group of failures with the same cause.
type Failure struct {
	Key string `json:"key"`
	// Kind is repro_gen's kind, empty without a reproduction.
	Kind    string `json:"kind,omitempty"`
	Class   string `json:"class"`
	Message string `json:"message,omitempty"`
	Service string `json:"service,omitempty"`
	// Run is the key of the run of the last occurrence.
	Run       string     `json:"run,omitempty"`
	RunID     string     `json:"run_id,omitempty"`
	Version   string     `json:"version,omitempty"`
	Operation string     `json:"operation,omitempty"`
	Count     int64      `json:"count"`
	FirstSeen *time.Time `json:"first_seen,omitempty"`
	LastSeen  *time.Time `json:"last_seen,omitempty"`
	// Variants is the number of different inputs, 0 if unknown.
	Variants int `json:"variants,omitempty"`
	// Command reproduces the failure. Replays reports whether it runs the failed
	// call; otherwise it prints what is known. Requires are the flags and packages
	// that it needs, which are in Command already where they are flags.
	Command  string   `json:"command,omitempty"`
	Replays  bool     `json:"replays,omitempty"`
	Requires []string `json:"requires,omitempty"`
	// Fill are the words in capitals in Command, such as URL, that its user must
	// replace: what telemetry does not know.
	Fill []string `json:"fill,omitempty"`
	// Why says why there is no Command, such as "not yet written", or why Command does
	// not run the failed call; empty if that is not known.
	Why string `json:"why,omitempty"`
	// Report is the path of the report on this server.
	Report  string `json:"report,omitempty"`
	TraceID string `json:"trace_id,omitempty"`
	// TraceURL is the address of the trace in Jaeger.
	TraceURL string `json:"trace_url,omitempty"`
	// Simulated reports whether the data of its service is simulated.
	Simulated bool `json:"simulated,omitempty"`
}

// Call is a call of a function or of a worker.
type Call struct {
	Key      string    `json:"key"`
	Time     time.Time `json:"time"`
	Service  string    `json:"service"`
	Library  string    `json:"library,omitempty"`
	Function string    `json:"function"`
	Host     string    `json:"host,omitempty"`
	Run      string    `json:"run,omitempty"`
	// Model is the model of a request, Tool the tool that a call runs, Agent and Session whose
	// work it is, as far as the span says so.
	Model    string   `json:"model,omitempty"`
	Tool     string   `json:"tool,omitempty"`
	Agent    string   `json:"agent,omitempty"`
	Session  string   `json:"session,omitempty"`
	Duration float64  `json:"duration"`
	Queue    *float64 `json:"queue,omitempty"`
	// Serialize is the time to encode arguments and results.
	Serialize *float64 `json:"serialize,omitempty"`
	// Bound is what the time of calls of the function was spent on in the last
	// minute, else since the start of ml_metrics: fractions by ml.call.bound.
	Bound map[string]float64 `json:"bound,omitempty"`
	// Error is the class of the error, empty if the call succeeded.
	Error    string `json:"error,omitempty"`
	Message  string `json:"message,omitempty"`
	Slow     bool   `json:"slow,omitempty"`
	TraceID  string `json:"trace_id,omitempty"`
	TraceURL string `json:"trace_url,omitempty"`
	// Simulated reports whether the data of its service is simulated.
	Simulated bool `json:"simulated,omitempty"`
}

// Pool is a pool of workers.
type Pool struct {
	Key      string   `json:"key"`
	Service  string   `json:"service"`
	Pool     string   `json:"pool"`
	Instance string   `json:"instance,omitempty"`
	Size     *float64 `json:"size,omitempty"`
	Busy     *float64 `json:"busy,omitempty"`
	Idle     *float64 `json:"idle,omitempty"`
	Queue    *float64 `json:"queue,omitempty"`
	Crashes  *float64 `json:"crashes,omitempty"`
	Breakers *float64 `json:"breakers,omitempty"`
	Alerts   *float64 `json:"alerts,omitempty"`
}

// Model is the use of a model by a service and role.
type Model struct {
	Key     string `json:"key"`
	Service string `json:"service"`
	Model   string `json:"model,omitempty"`
	Role    string `json:"role,omitempty"`
	// Side is ml.side, where a client and its server report the same tokens.
	Side string `json:"side,omitempty"`
	// Requests, Errors and tokens are totals since the start of the collector.
	Requests        *float64 `json:"requests,omitempty"`
	RequestRate     *float64 `json:"request_rate,omitempty"`
	InputTokens     *float64 `json:"input_tokens,omitempty"`
	OutputTokens    *float64 `json:"output_tokens,omitempty"`
	CachedTokens    *float64 `json:"cached_tokens,omitempty"`
	InputTokenRate  *float64 `json:"input_token_rate,omitempty"`
	OutputTokenRate *float64 `json:"output_token_rate,omitempty"`
	// Errors counts by error.type.
	Errors map[string]float64 `json:"errors,omitempty"`
	// ToolErrors counts the failed calls of tools of the service by error.type.
	ToolErrors map[string]float64 `json:"tool_errors,omitempty"`
	// FirstToken and Duration are quantiles of the last requests, in seconds;
	// Decode is output tokens per second of one request.
	FirstToken *Quantiles `json:"first_token,omitempty"`
	Duration   *Quantiles `json:"duration,omitempty"`
	Decode     *Quantiles `json:"decode,omitempty"`
	// DecodeBasis is ml.throughput.basis of Decode.
	DecodeBasis string `json:"decode_basis,omitempty"`
	// LengthStops is the number of answers that ended at the limit of tokens.
	LengthStops *float64 `json:"length_stops,omitempty"`
	// Cost is what the requests cost in US dollars (ml.cost).
	Cost *float64 `json:"cost,omitempty"`
	// ErrorRatio and ErrorRatioUsual are ml.request.error.ratio of the service.
	ErrorRatio      *float64 `json:"error_ratio,omitempty"`
	ErrorRatioUsual *float64 `json:"error_ratio_usual,omitempty"`
	// Bound is what the time of requests was spent on in the last minute, else since
	// the start of ml_metrics: fractions by ml.call.bound.
	Bound map[string]float64 `json:"bound,omitempty"`
	// Simulated reports whether the data of the service is simulated.
	Simulated bool `json:"simulated,omitempty"`
}

// Quantiles are the median and the 95th percentile of Count values.
type Quantiles struct {
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	Count int     `json:"count"`
}

// Change is something that was seen for the first time, or a problem of a service that
// is only a mark.
type Change struct {
	Key  string    `json:"key"`
	Time time.Time `json:"time"`
	// Kind is the value of ml.change.kind, such as version, or the Name of a kind in
	// mlattr.Problems whose severity is mark, such as looping.
	Kind    string `json:"kind"`
	Service string `json:"service,omitempty"`
	Run     string `json:"run,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	// Host is set if a host has changed.
	Host string `json:"host,omitempty"`
	// From and To are the values before and after.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Text says it in a few words, such as "version 1.8.2 (was 1.8.1)".
	Text string `json:"text"`
}

// Missing is something that the page cannot show.
type Missing struct {
	Key string `json:"key"`
	// Kind groups equal causes, such as driver, attribution, run, rank_host,
	// step_tokens, content or limit.
	Kind string `json:"kind"`
	// What is missing, and why.
	What string `json:"what"`
	Why  string `json:"why"`
	// Count is how many rows or items it concerns, 0 if it cannot be counted.
	Count int64 `json:"count,omitempty"`
	// Since is when it began, of what goes on now and loses data, so that somebody has
	// to know at once. Such rows are the first. It is nil for others.
	Since *time.Time `json:"since,omitempty"`
	// Fix is the line of configuration, or the command, that changes it.
	Fix string `json:"fix,omitempty"`
}

// Trace is a trace with its spans as far as they are held.
type Trace struct {
	ID      string    `json:"id"`
	Service string    `json:"service"`
	Name    string    `json:"name"`
	Run     string    `json:"run,omitempty"`
	Start   time.Time `json:"start"`
	// Duration is that of the longest root span, in seconds.
	Duration float64 `json:"duration"`
	Error    bool    `json:"error,omitempty"`
	// Spans are ordered as a tree: a parent before its children. Dropped is the
	// number of spans beyond the limit.
	Spans   []Span `json:"spans"`
	Dropped int    `json:"dropped,omitempty"`
	URL     string `json:"url,omitempty"`
}

// Span is a span of a Trace.
type Span struct {
	ID      string `json:"id"`
	Parent  string `json:"parent,omitempty"`
	Name    string `json:"name"`
	Service string `json:"service,omitempty"`
	// Phase is ml.phase, Operation ml.operation.
	Phase     string `json:"phase,omitempty"`
	Operation string `json:"operation,omitempty"`
	Depth     int    `json:"depth"`
	// Offset is the time from the trace's start, in seconds.
	Offset   float64 `json:"offset"`
	Duration float64 `json:"duration"`
	// Error is the class of the error.
	Error string `json:"error,omitempty"`
	// Critical reports whether the span is on the critical path of the trace.
	Critical bool `json:"critical,omitempty"`
	// CriticalTime is the share of the span in the critical path, in seconds. The shares
	// of a trace add up to the duration of its root.
	CriticalTime float64 `json:"critical_time,omitempty"`
}

// Say adds a phrase of evidence.
func (n *Need) Say(format string, a ...any) {
	n.Evidence = append(n.Evidence, fmt.Sprintf(format, a...))
}

// Title names a collector, with its address if that is another text.
func (c *SendingCollector) Title() string {
	if c.Address == "" || c.Address == c.ID {
		return c.ID
	}
	return c.ID + " (" + c.Address + ")"
}

// Values of Comparison.Basis.
const (
	// BasisLastGood is the last run of the same service, and of the same job name if
	// there is one, that began before, took steps and ended without a problem.
	BasisLastGood = "last_good"
	// BasisChosen is the run that was asked for.
	BasisChosen = "chosen"
)

// Comparison is a run beside another one, and the document of
// GET /api/v1/runs/{key}/compare.
type Comparison struct {
	Run Profile `json:"run"`
	// With is the other run. It is omitted if there is none, and Why says why.
	With *Profile `json:"with,omitempty"`
	Why  string   `json:"why,omitempty"`
	// Basis is last_good or chosen.
	Basis string `json:"basis"`
	// Settings are those that differ. Equal is the number of the others.
	Settings []SettingPair `json:"settings"`
	Equal    int           `json:"equal"`
	// Changes are those of the service and of the hosts of Run between the starts of
	// the two runs and since, and those of Run, the newest first.
	Changes []Change `json:"changes"`
	// Parting says where the curves of the loss part. It is omitted if one run has
	// none.
	Parting *Parting `json:"parting,omitempty"`
	// Others are the runs that Run can be compared with, those of its service first.
	Others []RunName `json:"others"`
}

// SettingPair is a setting that differs between two runs. A value that is not known
// is empty.
type SettingPair struct {
	Name string `json:"name"`
	Run  string `json:"run"`
	With string `json:"with"`
}

// RunName names a run that another one can be compared with.
type RunName struct {
	Key       string    `json:"key"`
	ID        string    `json:"id"`
	Service   string    `json:"service"`
	State     string    `json:"state"`
	FirstSeen time.Time `json:"first_seen"`
	// Good reports whether it has ended without a problem.
	Good bool `json:"good,omitempty"`
}

// Parting says where two curves part: where they stay further apart than their
// noise.
type Parting struct {
	// Curve is the name of the curve. By is what it was compared by: steps, or elapsed
	// if a run has no steps.
	Curve string `json:"curve"`
	By    string `json:"by"`
	// Positions is the number of positions that were compared, between From and To.
	// It is 0 if they are fewer than 20, which are not judged.
	Positions int     `json:"positions"`
	From      float64 `json:"from"`
	To        float64 `json:"to"`
	// Parted reports whether the curves part; At is the first position at which they
	// do. There, Run and With are the smoothed curves, and Band is the difference
	// beyond which they part.
	Parted bool     `json:"parted"`
	At     *float64 `json:"at,omitempty"`
	Run    *float64 `json:"run,omitempty"`
	With   *float64 `json:"with,omitempty"`
	Band   *float64 `json:"band,omitempty"`
	// Time is when Run was at that position.
	Time *time.Time `json:"time,omitempty"`
}

// Profile is what a run is compared by.
type Profile struct {
	Run Run `json:"run"`
	// Settings are what is known of how the run was started, ordered by name.
	Settings []Setting `json:"settings"`
	// Numbers are those of the whole run.
	Numbers []RunNumber `json:"numbers"`
	// Phases are the mean seconds of each phase in a step, of the whole run and all
	// ranks, the longest first.
	Phases []RunNumber    `json:"phases"`
	Curves []ProfileCurve `json:"curves"`
}

// RunNumber is a number of a whole run.
type RunNumber struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// ProfileCurve is a number over time, with the step and the epoch at which it was.
// All lists have the same length, or are empty if nobody reports steps or epochs.
type ProfileCurve struct {
	// Name and Unit are those of a Curve.
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Elapsed are seconds since the page first saw the run.
	Elapsed []float64 `json:"elapsed"`
	Steps   []float64 `json:"steps"`
	Epochs  []float64 `json:"epochs"`
	Values  []float64 `json:"values"`
}

// Curve returns the curve with a name, or nil.
func (p *Profile) Curve(name string) *ProfileCurve {
	return mlattr.Find(p.Curves, func(c *ProfileCurve) bool { return c.Name == name })
}

// Setting is something that is known of how a run was started: its attribute and
// the value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Spent is what the time of a run went to since the page first saw it. It does not
// grow after the run has ended.
type Spent struct {
	// States has the seconds in each ml.run.state.
	States map[string]float64 `json:"states,omitempty"`
	// Uses has the seconds by use, as ml.run.time.ratio names it: that ratio of each
	// 15 minutes.
	Uses map[string]float64 `json:"uses,omitempty"`
	// GPUHours are the GPUs that the run held, times hours, nil if none is known.
	GPUHours *float64 `json:"gpu_hours,omitempty"`
	// GPUCost is what these cost in US dollars, nil if no price is known.
	GPUCost *float64 `json:"gpu_cost,omitempty"`
}
