package sentlog

// maxFailures bounds the failures that a summary lists. FailureCount counts all.
const maxFailures = 1000

// Summary is the last line of a clean end.
type Summary struct {
	// EndUnixNano is when the last request was answered.
	EndUnixNano int64 `json:"end_unix_nano"`
	// Interrupted is true where a signal ended the run before its duration.
	Interrupted bool `json:"interrupted,omitempty"`
	// Scenarios holds counts and truths by the scenario's name.
	Scenarios map[string]*ScenarioSummary `json:"scenarios"`
}

// ScenarioSummary tells what a scenario sent.
type ScenarioSummary struct {
	// Steps is the number of activity steps taken.
	Steps int64 `json:"steps"`
	// Requests, Items and Refused count by signal. Items are acknowledged
	// spans, data points or log records; Refused are items that were not.
	Requests map[string]int64 `json:"requests"`
	Items    map[string]int64 `json:"items"`
	Refused  map[string]int64 `json:"refused,omitempty"`
	// Truth is what the scenario knows about the acknowledged requests.
	Truth Truth `json:"truth"`
}

// Truth is what an observer of acknowledged telemetry can know. Each scenario
// fills the members that make sense for it.
type Truth struct {
	// Spans counts by span name, numbers in names replaced by {n}.
	Spans map[string]int64 `json:"spans,omitempty"`
	// Steps counts optimizer steps: by global rank for TorchTel, by training
	// run id for TuFT.
	Steps map[string]int64 `json:"steps,omitempty"`
	// Tokens counts by role (or training run, or model) and then by direction,
	// "input" or "output".
	Tokens map[string]map[string]int64 `json:"tokens,omitempty"`
	// Batches, Epochs and Validations count by process, for FX and TorchTel.
	Batches     map[string]int64 `json:"batches,omitempty"`
	Epochs      map[string]int64 `json:"epochs,omitempty"`
	Validations map[string]int64 `json:"validations,omitempty"`
	// Requests counts calls, rounds or operations by their name.
	Requests map[string]int64 `json:"requests,omitempty"`
	// Runs counts the training runs, sessions or process lives that were seen.
	Runs map[string]int64 `json:"runs,omitempty"`
	// FailureCount counts failures. Failures lists the first thousand.
	FailureCount int64     `json:"failure_count,omitempty"`
	Failures     []Failure `json:"failures,omitempty"`
}

// Failure is an error span that says what failed.
type Failure struct {
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
	Name    string `json:"name"`
	// ExceptionType and ExceptionMessage are what the span says and what a
	// reproduction must raise.
	ExceptionType    string `json:"exception_type"`
	ExceptionMessage string `json:"exception_message,omitempty"`
	// Payload is true where the span carries the call's arguments, so that it
	// can be run again.
	Payload bool `json:"payload,omitempty"`
	// Target is the module and function of the call, joined by a dot.
	Target string `json:"target,omitempty"`
}

// Count adds n to the counter of a map that may be nil.
func Count(m *map[string]int64, key string, n int64) {
	if *m == nil {
		*m = make(map[string]int64)
	}
	(*m)[key] += n
}

// CountTokens adds tokens of a role and a direction.
func (t *Truth) CountTokens(role, direction string, n int64) {
	if t.Tokens == nil {
		t.Tokens = make(map[string]map[string]int64)
	}
	if t.Tokens[role] == nil {
		t.Tokens[role] = make(map[string]int64)
	}
	t.Tokens[role][direction] += n
}

// Fail adds a failure. The list stops growing at a thousand.
func (t *Truth) Fail(f Failure) {
	t.FailureCount++
	if len(t.Failures) < maxFailures {
		t.Failures = append(t.Failures, f)
	}
}

// Merge adds what another truth knows.
func (t *Truth) Merge(o Truth) {
	for _, pair := range []struct {
		to   *map[string]int64
		from map[string]int64
	}{
		{&t.Spans, o.Spans},
		{&t.Steps, o.Steps},
		{&t.Batches, o.Batches},
		{&t.Epochs, o.Epochs},
		{&t.Validations, o.Validations},
		{&t.Requests, o.Requests},
		{&t.Runs, o.Runs},
	} {
		for k, n := range pair.from {
			Count(pair.to, k, n)
		}
	}
	for role, directions := range o.Tokens {
		for direction, n := range directions {
			t.CountTokens(role, direction, n)
		}
	}
	t.FailureCount += o.FailureCount
	room := maxFailures - len(t.Failures)
	t.Failures = append(t.Failures, o.Failures[:min(room, len(o.Failures))]...)
}
