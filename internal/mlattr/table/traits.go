package table

// Trait is a property of a client that its spans do not state and that rules
// depend on. A table lists the traits of its client; System.Has and System.With
// ask for them. A client without a trait is treated as one that nothing is
// known about.
type Trait uint8

const (
	// ProcessIsRun is the trait of a client whose process is one run, so that a
	// run id can be inferred from the process where none is stated.
	ProcessIsRun Trait = iota
	// TraceIsRun is the trait of a client whose trace is one run where its
	// resource names a service and nothing else.
	TraceIsRun
	// ManyRuns is the trait of a client whose process serves many runs at once:
	// no run starts or ends with the process.
	ManyRuns
	// IdlesBetweenSpans is the trait of a client whose spans cover all of its
	// work: it is idle while it has no span. Such a client has no startup
	// either.
	IdlesBetweenSpans
	// NoStartup is the trait of a client whose first span begins with the work
	// that was asked for. The time before its first productive span is no
	// startup, unless the start of its process is known.
	NoStartup
	// OneTrace is the trait of a client that has one trace for the life of a
	// process. A new trace is a new attempt of the run.
	OneTrace
	// TracePerSpan is the trait of a client each of whose spans is a trace of
	// its own: spans belong together by their times alone.
	TracePerSpan
	// StepsPerEpoch is the trait of a client that numbers the steps of each
	// epoch from the start. Its step numbers say nothing about the run.
	StepsPerEpoch
	// ReportsSamples is the trait of a client whose spans state how many samples
	// each step has. A number configured for each step is not used.
	ReportsSamples
	// EstimatesTokens is the trait of a client that estimates its token counts.
	EstimatesTokens
	// ModelsElsewhere is the trait of a client whose models run in other processes,
	// for whose answers it waits.
	ModelsElsewhere
	// SomeRanksSend is the trait of a client whose user chooses which ranks send
	// telemetry: a rank that has never sent is not missing.
	SomeRanksSend
	// StepsInMetrics is the trait of a client that may have no spans of its steps.
	// Its metrics show then that it makes progress.
	StepsInMetrics

	// CachesApart is the trait of a client whose input tokens are without those that
	// were read from caches and written to them.
	CachesApart
	// TraitCount is the number of traits.
	TraitCount
)

// traits are the words of tables for the traits.
var traits = [TraitCount]string{
	ProcessIsRun: "process_is_run", TraceIsRun: "trace_is_run", ManyRuns: "many_runs",
	IdlesBetweenSpans: "idles_between_spans", NoStartup: "no_startup", OneTrace: "one_trace",
	TracePerSpan: "trace_per_span", StepsPerEpoch: "steps_per_epoch", ReportsSamples: "reports_samples",
	EstimatesTokens: "estimates_tokens", ModelsElsewhere: "models_elsewhere", SomeRanksSend: "some_ranks_send",
	StepsInMetrics: "steps_in_metrics", CachesApart: "caches_apart",
}

var traitTexts = [TraitCount]string{
	ProcessIsRun:      "A process is one run.",
	TraceIsRun:        "A trace is one run where the resource names only a service.",
	ManyRuns:          "A process serves many runs.",
	IdlesBetweenSpans: "It is idle while it has no span.",
	NoStartup:         "The time before its first productive span is no startup.",
	OneTrace:          "A process has one trace.",
	TracePerSpan:      "Each span is a trace of its own.",
	StepsPerEpoch:     "Steps are numbered anew in each epoch.",
	ReportsSamples:    "Its spans state the samples of a step.",
	EstimatesTokens:   "Token counts are estimates.",
	ModelsElsewhere:   "Its models run in other processes.",
	SomeRanksSend:     "Only some of its ranks send.",
	StepsInMetrics:    "Its metrics show its steps where no spans do.",
	CachesApart:       "Its input tokens are without those of caches.",
}

// String returns what the trait says of a client, for documentation.
func (t Trait) String() string { return wordOf(t, traitTexts[:]) }

// UnmarshalText reads the trait's word.
func (t *Trait) UnmarshalText(text []byte) error { return readWord(t, text, traits[:]) }
