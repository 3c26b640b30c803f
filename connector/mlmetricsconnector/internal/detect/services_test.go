package detect_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// agent is an agent in virtual time, whose tasks call a model and a tool. Its
// fields are what tests change.
type agent struct {
	*rand.Rand
	t     *testing.T
	fleet *serving.Fleet
	now   time.Time
	next  time.Time
	trace uint64
	// found are the problems that have been reported, by kind, as they were first.
	found map[string]problem.Problem
	open  map[string]bool

	perMinute                         float64
	version, model, answered          string
	slower, prompts, answers          float64
	failed, toolFailed, cut, uncached float64
	retries, calls                    int
	cost                              float64
}

func newAgent(t *testing.T, seed uint64) *agent {
	return &agent{
		Rand: rand.New(rand.NewPCG(seed, 3)), t: t, fleet: serving.NewFleet(), now: start, next: start,
		found: map[string]problem.Problem{}, perMinute: 20, version: "1", model: "gpt-4o", answered: "gpt-4o-2024-08-06",
		slower: 1, prompts: 1, answers: 1, failed: 0.004, toolFailed: 0.01, cut: 0.02, uncached: 0.1, calls: 1, cost: math.NaN(),
	}
}

// observe adds a span of the newest trace that ends now.
func (a *agent) observe(span serving.Span) {
	span.Version = a.version
	for i := range 8 {
		span.Trace[i] = byte(a.trace >> (8 * i))
	}
	span.Parent = [8]byte{1}
	span.End = a.now.UnixNano()
	if !math.IsNaN(span.Seconds) {
		span.Start = span.End - int64(span.Seconds*1e9)
	}
	a.fleet.Observe(one(streams.Resource{Service: "agent"}, &span), a.now)
}

// task is one task. Its spans arrive in the order of their ends.
func (a *agent) task() {
	a.trace++
	began := a.now
	for range a.retries {
		a.chat(true)
	}
	a.chat(a.Float64() < a.failed)
	for range a.calls {
		tool := serving.Unknown
		tool.Kind, tool.Tool, tool.Operation, tool.Arguments = serving.Tool, "search", "execute_tool", 7
		if a.calls < 10 {
			tool.Arguments = a.Uint64()
		}
		if tool.Seconds = 0.2; a.Float64() < a.toolFailed {
			tool.Kind |= serving.Failed
		}
		a.now = a.now.Add(200 * time.Millisecond)
		a.observe(tool)
	}
	whole := serving.Unknown
	whole.Kind, whole.Seconds = serving.Agent|serving.Root, a.now.Sub(began).Seconds()
	a.observe(whole)
}

func (a *agent) chat(failed bool) {
	chat := serving.Unknown
	chat.Kind, chat.Operation, chat.Model = serving.Request, "chat", a.model
	input, output := a.prompts*2000*math.Exp(0.4*a.NormFloat64()), a.answers*150*math.Exp(0.7*a.NormFloat64())
	chat.Seconds = a.slower * (0.3 + input/10_000 + output/100) * math.Exp(0.2*a.NormFloat64())
	a.now = a.now.Add(time.Duration(chat.Seconds * float64(time.Second)))
	if failed {
		chat.Kind |= serving.Failed
		a.observe(chat)
		return
	}
	chat.Kind |= serving.Finished
	if a.Float64() < a.cut {
		chat.Kind |= serving.Cut
	}
	chat.Answered, chat.Input, chat.Output, chat.Cached = a.answered, int64(input), int64(output), int64(input*0.7)
	if a.Float64() < a.uncached {
		chat.Cached = 0
	}
	chat.Cost = a.cost
	a.observe(chat)
}

// one is one span of a service.
func one(of streams.Resource, span *serving.Span) []serving.Span {
	all := []serving.Span{*span}
	all[0].Resource = of
	return all
}

// detectors remember nothing of services, and nobody reads the store.
var (
	detectors = detect.New()
	store     = streams.NewStore(streams.Limits{})
)

// problemsOf reports what is found of services.
func problemsOf(f *serving.Fleet, expiration time.Duration, now time.Time, report func(problem.Problem)) {
	f.Settle(store, expiration, now)
	detectors(&detect.State{Now: now, Services: f, GPUs: &gpus.Facts{}}, report)
}

// until answers tasks and reports every 15 seconds. Tasks of all services take no
// time of each other here.
func (a *agent) until(end time.Time) {
	for a.now.Before(end) {
		begin := a.now.Add(time.Duration(a.ExpFloat64() / a.perMinute * float64(time.Minute)))
		a.now = begin
		a.task()
		a.now = begin
		if a.now.After(a.next) {
			a.next = a.now.Add(15 * time.Second)
			a.report()
		}
	}
}

func (a *agent) report() {
	a.open = map[string]bool{}
	problemsOf(a.fleet, time.Hour, a.now, func(p problem.Problem) {
		a.open[p.Kind] = true
		if _, known := a.found[p.Kind]; !known {
			a.found[p.Kind] = p
		}
	})
}

func (a *agent) lasts(d time.Duration) { a.until(a.now.Add(d)) }

// TestEvidenceOfFewRequests asks for the evidence while requests that fail have become rare:
// that the only one in a quarter of an hour failed says little.
func TestEvidenceOfFewRequests(t *testing.T) {
	a := newAgent(t, 1)
	a.calls = 0
	a.lasts(2 * time.Hour)
	a.failed = 1
	a.lasts(20 * time.Minute)
	a.perMinute = 0.02
	a.lasts(4 * time.Hour)
	seen := false
	problemsOf(a.fleet, time.Hour, a.now, func(p problem.Problem) {
		if p.Kind == "failing" {
			seen = true
			assert.Contains(t, p.Evidence[0], "12 of the last 12 requests to models failed")
		}
	})
	assert.True(t, seen)
}

// TestPlanted plants one problem after an hour of healthy work. It must be found
// within half an hour, with its onset, and end after it has passed.
func TestPlanted(t *testing.T) {
	for name, tt := range map[string]struct {
		kind     string
		plant    func(*agent)
		evidence string
		value    float64
		// other are kinds that follow from the same.
		other []string
	}{
		"requests that fail":       {"failing", func(a *agent) { a.failed = 0.3 }, "requests to models failed", 0.3, []string{"retry_storm"}},
		"slow requests":            {"slow_requests", func(a *agent) { a.slower = 3 }, "requests to", 0, []string{"throughput_drop"}},
		"a lower rate":             {"throughput_drop", func(a *agent) { a.slower = 1.7 }, "output of one request", 0, []string{"slow_requests"}},
		"a tool that fails":        {"tool_errors", func(a *agent) { a.toolFailed = 0.4 }, "calls of search failed", 0.4, []string{"failing"}},
		"answers that are cut":     {"truncated", func(a *agent) { a.cut = 0.4 }, "reached their limit", 0.4, nil},
		"a cache that is cold":     {"cache_collapsed", func(a *agent) { a.uncached = 1 }, "cached share of the input of gpt-4o: 0 %, usually 6", 0, nil},
		"another model":            {"model_substituted", func(a *agent) { a.answered = "gpt-4o-mini" }, "answered by gpt-4o-mini, usually by gpt-4o-2024-08-06", 1, nil},
		"longer prompts":           {"costly", func(a *agent) { a.prompts = 3 }, "a task: ", 0, nil},
		"retries":                  {"retry_storm", func(a *agent) { a.retries = 2 }, "requests repeat one that failed", 0.4, []string{"failing", "slow_requests"}},
		"the same call repeatedly": {"looping", func(a *agent) { a.calls = 30 }, "search was called", 0, []string{"slow_requests"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, 1)
			a.lasts(2 * time.Hour)
			require.Empty(t, a.found)
			healthy := *a
			onset := a.now
			tt.plant(a)
			a.version = "2"
			a.lasts(30 * time.Minute)
			p, found := a.found[tt.kind]
			require.True(t, found, "found: %v", a.found)
			assert.WithinDuration(t, onset, p.Onset, 4*time.Minute)
			assert.Contains(t, strings.Join(p.Evidence, "\n"), tt.evidence)
			assert.NotEmpty(t, p.Next)
			assert.Equal(t, "agent", p.Subject.Resource.Service)
			assert.Positive(t, p.Count)
			assert.Positive(t, p.Window)
			if tt.value > 0 {
				assert.InDelta(t, tt.value, p.Value, 0.3)
			}
			for kind := range a.found {
				assert.Contains(t, append(tt.other, tt.kind), kind)
			}
			a.failed, a.slower, a.toolFailed, a.cut, a.uncached = healthy.failed, healthy.slower, healthy.toolFailed, healthy.cut, healthy.uncached
			a.answered, a.prompts, a.retries, a.calls = healthy.answered, healthy.prompts, healthy.retries, healthy.calls
			a.lasts(time.Hour)
			assert.Empty(t, a.open)
		})
	}
}

// What is no problem: more demand, longer prompts or answers, a faster model, a new
// version of the same service.
func TestWhatIsNoProblem(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*agent)
		may    []string
	}{
		"more demand":    {func(a *agent) { a.perMinute = 100 }, nil},
		"less demand":    {func(a *agent) { a.perMinute = 2 }, nil},
		"longer prompts": {func(a *agent) { a.prompts = 5 }, []string{"costly"}},
		"longer answers": {func(a *agent) { a.answers = 4 }, []string{"slow_requests", "costly"}},
		"short answers":  {func(a *agent) { a.answers = 0.2 }, []string{"answers_changed"}},
		"faster":         {func(a *agent) { a.slower = 0.3 }, nil},
		"a version":      {func(a *agent) { a.version = "2" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, 2)
			a.lasts(2 * time.Hour)
			tt.change(a)
			a.lasts(3 * time.Hour)
			for kind, p := range a.found {
				if kind == "slow_requests" {
					// The agent takes longer, because its model has more to do.
					assert.NotContains(t, strings.Join(p.Evidence, "\n"), "gpt-4o")
				}
				assert.Contains(t, tt.may, kind, "%+v", p)
			}
		})
	}
}

// Agents that work as usual for days, by day and by night, have no problem.
func TestHealthy(t *testing.T) {
	days := 2.0
	if testing.Short() {
		days = 0.5
	}
	for seed := range uint64(6) {
		t.Run("", func(t *testing.T) {
			a := newAgent(t, 10+seed)
			usual := []float64{0.5, 3, 20}[seed%3]
			a.failed, a.toolFailed, a.cut = []float64{0, 0.01, 0.05}[seed%3], []float64{0.02, 0, 0.2}[seed%3], []float64{0, 0.1, 0.01}[seed%3]
			for end := start.Add(time.Duration(days * 24 * float64(time.Hour))); a.now.Before(end); {
				day := math.Sin(2 * math.Pi * a.now.Sub(start).Hours() / 24)
				a.perMinute = usual * math.Exp(day)
				if a.IntN(40) == 0 {
					a.perMinute *= 5
				}
				a.prompts, a.calls = math.Exp(0.2*day), 1
				if a.IntN(10) == 0 {
					a.calls = 4
				}
				a.lasts(5 * time.Minute)
				require.Empty(t, a.found, "%s", a.now)
			}
		})
	}
}

// An alias that moves among known models is usual, a router has no usual model, and
// rare models among many answers are no substitution.
func TestModelsThatAreUsual(t *testing.T) {
	a := newAgent(t, 4)
	for i := range 1000 {
		a.answered = []string{"a", "b"}[i%2]
		a.lasts(time.Second)
	}
	a.answered = "b"
	a.lasts(time.Hour)
	assert.NotContains(t, a.found, "model_substituted")

	a = newAgent(t, 5)
	for i := range 500 {
		a.answered = string(rune('a' + i%20))
		a.task()
	}
	a.answered = "another"
	a.lasts(time.Hour)
	assert.NotContains(t, a.found, "model_substituted")
}

// New requests of which most fail are a storm, even if their repetition is not seen.
func TestAStormOfFailures(t *testing.T) {
	a := newAgent(t, 6)
	a.lasts(2 * time.Hour)
	a.perMinute, a.failed = 80, 0.9
	a.lasts(12 * time.Minute)
	p := a.found["retry_storm"]
	assert.Contains(t, strings.Join(p.Evidence, "\n"), "requests in 5 minutes, usually")
}

// The cost that a client reports counts rather than tokens.
func TestReportedCost(t *testing.T) {
	a := newAgent(t, 7)
	a.cost = 0.002
	a.lasts(2 * time.Hour)
	a.cost = 0.006
	a.lasts(30 * time.Minute)
	p := a.found["costly"]
	assert.Equal(t, "USD", p.Unit)
	assert.InDelta(t, 0.006, p.Value, 1e-4)
	assert.InDelta(t, 0.002, p.Usual, 1e-4)
}

// However many services, models, tools and traces there are, few are remembered.
func TestBounds(t *testing.T) {
	f := serving.NewFleet()
	for i := range 30_000 {
		s := serving.Unknown
		s.Kind, s.Model, s.Tool = serving.Request|serving.Tool, strings.Repeat("m", i%200), string(rune('a'+i%5000))
		s.Trace = [16]byte{byte(i), byte(i >> 8), 1}
		f.Observe(one(streams.Resource{Service: string(rune('a' + i%3000))}, &s), start)
	}
	remembered := 0
	problemsOf(f, time.Hour, start, func(problem.Problem) {})
	f.Each(func(*serving.Service) { remembered++ })
	assert.Equal(t, 1024, remembered)
	problemsOf(f, time.Hour, start.Add(2*time.Hour), func(problem.Problem) {})
	f.Each(func(*serving.Service) { t.Error("they have expired") })
}

// TestOthersTasks has a service with ever new traces: the tasks of others are watched.
func TestOthersTasks(t *testing.T) {
	f, now := serving.NewFleet(), start
	span := serving.Unknown
	span.Kind, span.Model, span.Input, span.Output = serving.Request, "m", 10, 10
	for i := range 40_000 {
		span.Trace = [16]byte{1, byte(i), byte(i >> 8)}
		f.Observe(one(streams.Resource{Service: "flood"}, &span), now)
	}
	tool := serving.Unknown
	tool.Kind, tool.Tool, tool.Arguments = serving.Tool, "search", 7
	call := func(task byte, times int) {
		tool.Trace = [16]byte{2, task}
		for range times {
			f.Observe(one(streams.Resource{Service: "other"}, &tool), now)
		}
	}
	for task := range byte(30) {
		call(task, 1)
	}
	kinds := func() (kinds []string) {
		problemsOf(f, 0, now, func(p problem.Problem) { kinds = append(kinds, p.Kind) })
		return kinds
	}
	now = now.Add(5 * time.Minute)
	kinds() // the tasks end
	call(99, 40)
	assert.Contains(t, kinds(), "looping")
	for i := range 40_000 {
		span.Trace = [16]byte{3, byte(i), byte(i >> 8)}
		f.Observe(one(streams.Resource{Service: "flood"}, &span), now)
	}
	call(100, 40)
	assert.Contains(t, kinds(), "looping")
}

// A task that comes again after it has ended is another one, and a trace has a task of
// its own in each service.
func TestATaskIsOfItsServiceAndTime(t *testing.T) {
	f, now := serving.NewFleet(), start
	tool := serving.Unknown
	tool.Kind, tool.Tool, tool.Arguments = serving.Tool, "search", 7
	services := [...]string{"one", "other"}
	call := func(task byte, times int) {
		tool.Trace = [16]byte{1, task}
		for range times {
			for _, service := range services {
				f.Observe(one(streams.Resource{Service: service}, &tool), now)
			}
		}
	}
	looping := func() (n int) {
		problemsOf(f, 0, now, func(p problem.Problem) {
			if p.Kind == "looping" {
				n++
			}
		})
		return n
	}
	for task := range byte(30) {
		call(task, 1)
	}
	now = now.Add(5 * time.Minute)
	assert.Zero(t, looping())
	call(30, 6)
	assert.Zero(t, looping(), "six calls of each service")
	call(31, 40)
	assert.Equal(t, len(services), looping())
	services = [...]string{"other", "other"}
	now = now.Add(5 * time.Minute)
	assert.Zero(t, looping())
	call(31, 20)
	assert.Equal(t, 1, looping(), "again")
}
