package wallclock

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

const second = int64(1e9)

// timeline adds spans whose times are in seconds and advances to the newest.
func timeline(c *Clock, spans ...span) Totals {
	var into Totals
	for _, s := range spans {
		c.Observe(s.span(), &into)
		if s.phase == Optimizer {
			c.EndStep(s.end*second, false, &into)
		}
	}
	c.Advance(c.Newest(), &into)
	c.Finish(&into)
	return into
}

// span is a span of a phase, in seconds.
type span struct {
	start, end int64
	phase      Phase
}

func (s span) span() Span {
	return Span{Start: s.start * second, End: s.end * second, Phase: s.phase, State: s.phase.State()}
}

func seconds(of Totals) map[string]int64 {
	found := map[string]int64{}
	for state, nanoseconds := range of.States {
		if nanoseconds != 0 {
			found[State(state).String()] = nanoseconds / second
		}
	}
	return found
}

func TestTimeOfARun(t *testing.T) {
	for name, test := range map[string]struct {
		spans    []span
		expected map[string]int64
	}{
		"one step": {
			[]span{{10, 12, DataLoad}, {12, 15, Forward}, {15, 19, Backward}, {20, 21, Optimizer}},
			map[string]int64{"data_load": 2, "productive": 8, "other": 1},
		},
		"overlapping spans of a phase count once": {
			[]span{{10, 20, Forward}, {12, 15, Forward}, {18, 25, Forward}},
			map[string]int64{"productive": 15},
		},
		"loading beside a forward is no waiting": {
			[]span{{10, 20, Forward}, {15, 25, DataLoad}},
			map[string]int64{"productive": 10, "data_load": 5},
		},
		"forward below an optimizer, as LBFGS does": {
			[]span{{10, 20, Optimizer}, {11, 14, Forward}},
			map[string]int64{"productive": 10},
		},
		"loading before the first step": {
			[]span{{10, 12, DataLoad}, {15, 16, Forward}},
			map[string]int64{"data_load": 2, "startup": 3, "productive": 1},
		},
		"spans without a length": {
			[]span{{10, 12, Optimizer}, {11, 11, Optimizer}, {13, 13, Forward}, {14, 15, Forward}},
			map[string]int64{"productive": 3, "other": 2},
		},
		"silence of an hour": {
			[]span{{10, 11, Forward}, {3611, 3612, Forward}},
			map[string]int64{"productive": 2, "unknown": 3600},
		},
		"silence of four minutes": {
			[]span{{10, 11, Forward}, {251, 252, Forward}},
			map[string]int64{"productive": 2, "other": 240},
		},
		"validation and checkpoint": {
			[]span{{10, 11, Forward}, {11, 31, Validation}, {31, 35, Checkpoint}},
			map[string]int64{"productive": 1, "validation": 20, "checkpoint": 4},
		},
		"nonsense": {
			[]span{{10, 11, Forward}, {20, 15, Forward}, {-5, 8, Forward}, {0, 8, Forward}},
			map[string]int64{"productive": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.expected, seconds(timeline(&Clock{}, test.spans...)))
		})
	}
}

func TestPhasesOfSteps(t *testing.T) {
	steps := timeline(&Clock{},
		span{10, 12, DataLoad}, span{12, 15, Forward}, span{13, 16, Forward}, span{17, 18, Optimizer},
		span{18, 30, Forward}, span{30, 31, Optimizer},
	).Steps
	assert.Equal(t, []Step{
		{Phases: [phases + 1]int64{DataLoad: 2 * second, Forward: 4 * second, Optimizer: second, NoPhase: second}, Whole: 8 * second},
		{Phases: [phases + 1]int64{Forward: 12 * second, Optimizer: second}, Whole: 13 * second},
	}, steps)
}

// Optimizers with no forward between their ends end one step together, and the
// step is told when it is known to be over.
func TestSeveralOptimizersAreOneStep(t *testing.T) {
	var c Clock
	var into Totals
	add := func(s span) {
		c.Observe(s.span(), &into)
		if s.phase == Optimizer {
			c.EndStep(s.end*second, false, &into)
		}
		c.Advance(c.Newest(), &into)
	}
	add(span{10, 12, Forward})
	add(span{12, 13, Optimizer})
	add(span{14, 16, Optimizer})
	assert.Empty(t, into.Steps, "another optimizer may follow")
	add(span{17, 19, Forward})
	first := Step{Phases: [phases + 1]int64{Forward: 2 * second, Optimizer: 3 * second, NoPhase: second}, Whole: 6 * second}
	assert.Equal(t, []Step{first}, into.Steps)
	add(span{19, 20, Optimizer})
	c.Finish(&into)
	second := Step{Phases: [phases + 1]int64{Forward: 2 * second, Optimizer: second, NoPhase: second}, Whole: 4 * second}
	assert.Equal(t, []Step{first, second}, into.Steps)
	c.Finish(&into)
	assert.Len(t, into.Steps, 2, "once")
}

// An attempt that timed nothing has no end to count from.
func TestRestartBeforeTheFirstSpan(t *testing.T) {
	var c Clock
	var into Totals
	c.EndStep(10*second, false, &into)
	c.Restart(false, &into)
	assert.Equal(t, map[string]int64{"productive": 1}, seconds(timeline(&c, span{100, 101, Forward})))
}

// A batch is a whole step, and told at once.
func TestAWholeStepIsTold(t *testing.T) {
	var c Clock
	var into Totals
	for at := int64(10); at < 30; at += 10 {
		c.Observe(span{at, at + 5, Batch}.span(), &into)
		c.EndStep((at+5)*second, true, &into)
	}
	c.Advance(c.Newest(), &into)
	assert.Len(t, into.Steps, 2)
}

// LBFGS calls the model within its step.
func TestForwardsWithinAnOptimizerEndNoOtherStep(t *testing.T) {
	steps := timeline(&Clock{},
		span{10, 20, Optimizer}, span{11, 13, Forward}, span{13, 15, Backward}, span{16, 18, Forward},
		span{20, 30, Optimizer}, span{21, 23, Forward}, span{26, 28, Forward}).Steps
	assert.Equal(t, []Step{
		{Phases: [phases + 1]int64{Optimizer: 10 * second, Forward: 4 * second, Backward: 2 * second}, Whole: 10 * second},
		{Phases: [phases + 1]int64{Optimizer: 10 * second, Forward: 4 * second}, Whole: 10 * second},
	}, steps)
}

// A span of all of a step gives way to those in it and beside it.
func TestWholeSteps(t *testing.T) {
	var c Clock
	var into Totals
	for _, s := range []Span{
		{Start: second, End: 11 * second, Phase: Batch, Whole: true},
		{Start: 6 * second, End: 8 * second, Phase: Checkpoint, State: Checkpointing},
		{Start: 8 * second, End: 9 * second, Phase: Optimizer},
		{Start: 10 * second, End: 13 * second, Phase: Validation, State: Validating},
	} {
		assert.True(t, c.Observe(s, &into))
	}
	c.Advance(13*second, &into)
	assert.Equal(t, Spent{Productive: 7 * second, Checkpointing: 2 * second, Validating: 3 * second}, into.States)
}

// What a span shows of the state may be something else than its phase does.
func TestStatesOfSpans(t *testing.T) {
	at := func(start, end int64, phase Phase, state State) Span {
		return Span{Start: start * second, End: end * second, Phase: phase, State: state}
	}
	c := Clock{Idle: true, NoStartup: true}
	var into Totals
	for _, s := range []Span{
		at(5, 6, DataLoad, LoadingData),
		// A request that waits three seconds and then does its work.
		at(10, 20, ForwardBackward, Queueing), at(13, 19, ForwardBackward, Productive),
		at(22, 24, NoPhase, Queueing),
		at(24, 27, Checkpoint, Restoring),
		at(27, 29, Forward, Rework), at(28, 30, Forward, Productive),
	} {
		c.Observe(s, &into)
	}
	c.EndStep(20*second, false, &into)
	c.Advance(c.Newest(), &into)
	c.Finish(&into)
	assert.Equal(t, map[string]int64{
		"data_load": 1, "idle": 6, "queue": 6, "productive": 8, "checkpoint_restore": 3, "rework": 1,
	}, seconds(into))
	assert.Equal(t, []Step{{Phases: [phases + 1]int64{DataLoad: second, ForwardBackward: 10 * second, NoPhase: 4 * second}, Whole: 15 * second}}, into.Steps,
		"the phases of a step are those of its spans")
}

func TestStartOfAProcess(t *testing.T) {
	for name, tt := range map[string]struct {
		born     int64
		expected map[string]int64
	}{
		"known":                  {99_010, map[string]int64{"startup": 990 + 3, "data_load": 2, "productive": 1}},
		"after the first span":   {100_001, map[string]int64{"startup": 3, "data_load": 2, "productive": 1}},
		"long before any belief": {100_000 - 86_401, map[string]int64{"startup": 3, "data_load": 2, "productive": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Clock{Born: tt.born * second}
			assert.Equal(t, tt.expected, seconds(timeline(&c, span{100_000, 100_002, DataLoad}, span{100_005, 100_006, Forward})))
		})
	}
}

// Between two attempts the time is unknown, unless the first of them ended, and
// that in which the second one starts is no time of the first.
func TestRestart(t *testing.T) {
	for name, tt := range map[string]struct {
		ended    bool
		waited   int64
		born     int64
		expected map[string]int64
	}{
		"of a run that ended":                {true, 0, 0, map[string]int64{"productive": 3, "startup": 2, "data_load": 1}},
		"of a run that died":                 {false, 0, 0, map[string]int64{"productive": 3, "startup": 2, "data_load": 1, "unknown": 100}},
		"of one that had been given up":      {false, 60, 0, map[string]int64{"productive": 3, "startup": 2, "data_load": 1, "unknown": 100}},
		"by a process that says it is there": {false, 0, 80, map[string]int64{"productive": 3, "startup": 2 + 32, "data_load": 1, "unknown": 68}},
	} {
		t.Run(name, func(t *testing.T) {
			var c Clock
			var all Totals
			add := func(part Totals) {
				for state, length := range part.States {
					all.States[state] += length
				}
				all.Steps = append(all.Steps, part.Steps...)
			}
			add(timeline(&c, span{10, 11, Forward}, span{11, 12, Optimizer}))
			if tt.waited > 0 {
				c.Wait(tt.waited*second, &all)
			}
			c.Born = tt.born * second
			c.Restart(tt.ended, &all)
			assert.True(t, c.Stepped())
			add(timeline(&c, span{5, 9, Forward}, span{112, 113, DataLoad}, span{115, 116, Optimizer}))
			assert.Equal(t, tt.expected, seconds(all), "what is of the attempt before comes too late")
			assert.Len(t, all.Steps, 2)
			assert.Equal(t, 2*second, all.Steps[1].Phases[NoPhase], "the step begins with its attempt")
		})
	}
}

// An optimizer below another one, as AdamW's is, ends no step of its own.
func TestNestedOptimizersAreOneStep(t *testing.T) {
	steps := timeline(&Clock{}, span{11, 14, Optimizer}, span{10, 15, Optimizer}, span{15, 16, Optimizer}).Steps
	assert.Equal(t, []Step{
		{Phases: [phases + 1]int64{Optimizer: 5 * second}, Whole: 5 * second},
		{Phases: [phases + 1]int64{Optimizer: second}, Whole: second},
	}, steps)
}

// A step around a silence of which nothing is known has no length.
func TestAStepAroundASilenceIsNotTold(t *testing.T) {
	steps := timeline(&Clock{}, span{10, 11, Optimizer}, span{3000, 3001, Optimizer}, span{3001, 3003, Optimizer}).Steps
	assert.Len(t, steps, 2)
	assert.Equal(t, 2*second, steps[1].Phases[Optimizer])
}

// What was called unknown while the program was silent is not counted again
// when it speaks.
func TestWaitingCountsOnce(t *testing.T) {
	var c Clock
	timeline(&c, span{10, 11, Forward})
	var waited Totals
	c.Wait(400*second, &waited)
	c.Wait(100*second, &waited)
	assert.Equal(t, map[string]int64{"unknown": 500}, seconds(waited))
	assert.Equal(t, map[string]int64{"unknown": 100, "productive": 1}, seconds(timeline(&c, span{611, 612, Forward})))
	// A span that began before the silence did.
	c.Wait(100*second, &waited)
	assert.Equal(t, map[string]int64{"productive": 600}, seconds(timeline(&c, span{612, 1212, Forward})))
}

// Divided all at once or piece by piece, in whatever order the spans of a
// piece come, the time is the same.
func TestTheOrderOfArrivalDoesNotMatter(t *testing.T) {
	var spans []span
	at := int64(100)
	for range 200 {
		for _, phase := range []Phase{DataLoad, Forward, Backward, Optimizer} {
			length := 1 + rand.Int64N(5)
			spans = append(spans, span{at, at + length, phase})
			at += length + rand.Int64N(2)
		}
	}
	whole := timeline(&Clock{}, spans...)
	var c Clock
	var pieces Totals
	for i := 0; i < len(spans); i += 8 {
		piece := append([]span(nil), spans[i:i+8]...)
		rand.Shuffle(len(piece), func(i, j int) { piece[i], piece[j] = piece[j], piece[i] })
		part := timeline(&c, piece...)
		for state := range part.States {
			pieces.States[state] += part.States[state]
		}
		pieces.Steps = append(pieces.Steps, part.Steps...)
	}
	assert.Equal(t, whole, pieces)
	sum := int64(0)
	for _, nanoseconds := range whole.States {
		sum += nanoseconds
	}
	assert.Equal(t, (spans[len(spans)-1].end-100)*second, sum, "every moment is in one state")
}

func TestPatience(t *testing.T) {
	var c Clock
	var into Totals
	assert.Equal(t, 300*second, c.Patience())
	for i := range int64(50) {
		c.EndStep((100+i*100)*second, false, &into)
	}
	assert.Equal(t, 500*second, c.Patience())
	assert.True(t, c.Stepped())
}

// However much comes between two divisions, the memory is bounded and no time
// is lost.
func TestAFullClockAdvances(t *testing.T) {
	var c Clock
	var into Totals
	const n = 3 * maxPending
	for i := range int64(n) {
		c.Observe(span{i + 1, i + 2, Forward}.span(), &into)
		c.EndStep((i+2)*second, false, &into)
		assert.LessOrEqual(t, len(c.pending), maxPending)
		assert.LessOrEqual(t, len(c.ends), maxPending)
	}
	c.Advance(c.Newest(), &into)
	assert.Equal(t, int64(n)*second, into.States[Productive])
	c.Finish(&into)
	assert.Len(t, into.Steps, n)

	// Steps without a single span.
	var bare Clock
	for i := range int64(n) {
		bare.EndStep((i+2)*second, false, &into)
		assert.LessOrEqual(t, len(bare.ends), maxPending)
	}
}

// TestABurstLeavesNoMemory looks at what a clock keeps of many spans at once.
func TestABurstLeavesNoMemory(t *testing.T) {
	var c Clock
	var into Totals
	for i := range int64(maxPending) {
		c.Observe(Span{Start: i + 1, End: i + 2, Phase: Optimizer}, &into)
		c.EndStep(i+2, true, &into)
	}
	c.Advance(c.Newest(), &into)
	assert.Empty(t, c.pending)
	assert.LessOrEqual(t, cap(c.pending), maxIdle)
	assert.LessOrEqual(t, cap(c.ends), maxIdle)
}

func TestPhaseOf(t *testing.T) {
	for p := range phases {
		found, known := PhaseOf(p.String())
		assert.True(t, known)
		assert.Equal(t, p, found)
	}
	for _, name := range []string{"", "train", "epoch", "sample"} {
		_, known := PhaseOf(name)
		assert.False(t, known, name)
	}
}

// FuzzClock shows that whatever spans come, no time is negative and none is
// counted twice.
func FuzzClock(f *testing.F) {
	f.Add([]byte{1, 5, 0, 3, 9, 3, 200, 1, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var c Clock
		var into Totals
		first, latest := int64(0), int64(0)
		raw = raw[:min(len(raw), 3000)]
		for len(raw) >= 3 {
			start := int64(raw[0])*7*second + 1
			end := start + (int64(raw[1])-20)*second
			if end >= start && (first == 0 || start < first) {
				first = start
			}
			latest = max(latest, end)
			phase := Phase(raw[2] % byte(phases))
			c.Observe(Span{Start: start, End: end, Phase: phase, State: phase.State()}, &into)
			if raw[2]&8 != 0 {
				c.EndStep(end, false, &into)
			}
			if raw[2]&16 != 0 {
				c.Advance(c.Newest(), &into)
			}
			if raw[2]&32 != 0 {
				c.Restart(raw[2]&64 != 0, &into)
			}
			raw = raw[3:]
		}
		c.Advance(c.Newest(), &into)
		sum := int64(0)
		for state, nanoseconds := range into.States {
			if nanoseconds < 0 {
				t.Errorf("%s is %d", State(state), nanoseconds)
			}
			sum += nanoseconds
		}
		if sum > max(latest-first, 0) {
			t.Errorf("%d is more than the whole time, %d", sum, latest-first)
		}
		for _, step := range into.Steps {
			if step.Phases[NoPhase] < 0 {
				t.Errorf("other is %d", step.Phases[NoPhase])
			}
		}
	})
}
