package anomalies

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// The systems whose telemetry is generated.
const (
	torchTel   = "TorchTel"
	ownLoop    = "own loop"
	fx         = "FX toolkit"
	tuft       = "TuFT"
	snakepit   = "Snakepit"
	taskWeaver = "TaskWeaver"
	agent      = "GenAI agent"
)

const (
	gib = 1 << 30
	// usualMemory is what a rank holds of its GPU's memory once it has warmed up for
	// some memoryWarm.
	usualMemory = 61 * gib
	memoryWarm  = 20 * time.Minute
	// The use and power of a GPU that trains, and of one whose kernels wait for a
	// collective.
	trainingUse, trainingPower = 0.9, 590.0
	waitingUse, waitingPower   = 1, 210.0
)

// run is a training run, restarted when it is preempted. Faults are planted in its
// fields.
type run struct {
	w      *world
	system string
	number int
	id     string
	host   string
	places []fleet.Place
	random *rand.Rand
	times  *stepTimes
	losses *losses

	program program
	begun   time.Time
	// life counts the attempts, so that what an ended one had planned is left out.
	// Between two attempts, the run is paused.
	life   int
	paused bool
	// lasting runs are not preempted and do not end.
	lasting bool

	// slower multiplies the step time. stuck runs take no step, and send no span.
	slower float64
	stuck  bool
	// muted is the rank whose telemetry is missing, -1 for none. noSaves reports
	// whether checkpoints are no longer written.
	muted   int
	noSaves bool
	// lossOf changes the loss of a step, if it is set.
	lossOf func(loss float64) float64
	// frozen runs have the same loss in each step.
	frozen bool
	// memory is what a rank's memory is more than usual, in bytes.
	memory int64
}

// program is the imitated client of one attempt.
type program interface {
	// step ends a step. pause ends a checkpoint.
	step(at time.Time) []scenario.Batch
	pause(until time.Time) []scenario.Batch
	finish(at time.Time) []scenario.Batch
	// stretch is by how much the client's own validation lengthens a step.
	stretch(step int) float64
}

// users is the number of people who train.
const users = 5

// train adds a run whose first attempt begins within an hour.
func (w *world) train(system string, number int, places []fleet.Place) *run {
	name := fmt.Sprintf("run%04d", number)
	r := &run{
		w: w, system: system, number: number, host: places[0].Host, places: places,
		random: w.stream(name), muted: -1, slower: 1,
	}
	r.times, r.losses = newStepTimes(w.stream(name+"/times")), &losses{random: w.stream(name + "/losses")}
	w.in(spread(r.random, time.Hour), r.fresh)
	return r
}

// fresh begins a new run.
func (r *run) fresh() {
	r.losses.step, r.program = 0, nil
	r.number += 10_000
	r.id = fmt.Sprintf("job-%d", r.number)
	if r.system == ownLoop {
		r.id = "trainer-" + strconv.Itoa(r.number)
	}
	r.begin()
	if number := r.number; !r.lasting {
		r.w.in(between(r.random, runLeast, runMost), func() {
			if r.number != number {
				return
			}
			if !r.paused {
				r.send(r.program.finish(time.Now()))
			}
			r.end(r.fresh)
		})
	}
}

// end ends the attempt's processes, and has something done after a pause, unless the
// run ends meanwhile.
func (r *run) end(then func()) {
	r.life++
	r.paused = true
	for _, place := range r.places {
		place.GPU.Release()
	}
	if life := r.life; then != nil {
		r.w.in(between(r.random, preemptLeast, preemptMost), func() {
			if r.life == life {
				then()
			}
		})
	}
}

// begin begins an attempt.
func (r *run) begin() {
	r.life++
	r.paused = false
	r.times.number, r.begun = 0, time.Now()
	r.program = r.newProgram()
	r.work(trainingUse, trainingPower)
	r.proceed()
	if life := r.life; !r.lasting {
		r.w.in(exponential(r.random, preemptEvery), func() {
			if r.life == life {
				r.end(r.begin)
			}
		})
	}
}

// work sets what the GPUs of the run do.
func (r *run) work(use, power float64) {
	for _, place := range r.places {
		place.GPU.Use, place.GPU.Power = use, power
	}
}

// proceed plans the next step.
func (r *run) proceed() {
	step, save := r.times.next()
	step = time.Duration(float64(step) * r.slower * r.program.stretch(r.times.number))
	life := r.life
	then := func(d time.Duration, do func()) {
		r.w.in(d, func() {
			if r.life == life && !r.stuck {
				do()
			}
		})
	}
	whole := func() {
		then(step, func() {
			r.send(r.program.step(time.Now()))
			r.remember()
			r.proceed()
		})
	}
	if save == 0 || r.noSaves {
		whole()
		return
	}
	then(save, func() {
		r.send(r.program.pause(time.Now()))
		whole()
	})
}

// remember sets the memory that the run holds.
func (r *run) remember() {
	age := time.Since(r.begun)
	warm := 0.7 + 0.3*(1-math.Exp(-age.Hours()/memoryWarm.Hours()))
	for _, place := range r.places {
		for _, w := range place.GPU.Workloads {
			w.Memory = min(int64(warm*usualMemory)+r.memory, 79*gib)
		}
	}
}

// send sends what the program has, as the run's own.
func (r *run) send(batches []scenario.Batch) {
	loss, known := 0.0, false
	lossOf := func() float64 {
		if !known {
			if loss, known = r.losses.next(), true; r.lossOf != nil {
				loss = r.lossOf(loss)
			}
		}
		return loss
	}
	for _, b := range batches {
		switch b.Signal {
		case sentlog.SignalTraces:
			b.Traces.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
				if !r.owns(rs.Resource().Attributes()) {
					return true
				}
				for _, ss := range rs.ScopeSpans().All() {
					for _, span := range ss.Spans().All() {
						r.setLoss(span.Attributes(), lossOf)
					}
				}
				return false
			})
			if b.Traces.SpanCount() > 0 {
				r.w.send(r.host, b)
			}
		case sentlog.SignalMetrics:
			if r.owns(b.Metrics.ResourceMetrics().At(0).Resource().Attributes()) {
				r.w.send(r.host, b)
			}
		}
	}
}

// owns labels a resource as the run's, and reports whether its telemetry is sent.
func (r *run) owns(resource pcommon.Map) bool {
	if r.system == fx && text(resource, "service.name") != "fx-forecasting" {
		return false // another program of the scenario
	}
	if r.system != ownLoop {
		resource.PutStr("ml.run.id", r.id)
		resource.PutStr("host.name", r.host)
	}
	for _, key := range []string{"global_rank", "ml.rank.global"} {
		if rank, ok := resource.Get(key); ok && int(rank.Int()) == r.muted {
			return false
		}
	}
	return true
}

// setLoss replaces the loss of a span that has one.
func (r *run) setLoss(attrs pcommon.Map, loss func() float64) {
	for _, key := range []string{"ml.loss", "loss"} {
		if v, ok := attrs.Get(key); ok {
			if v.SetDouble(loss() * (1 + 0.01*r.random.NormFloat64())); r.frozen {
				v.SetDouble(2.125)
			}
		}
	}
}

// newProgram makes the client of an attempt. Its processes hold their GPUs.
func (r *run) newProgram() program {
	settings := scenario.Settings{
		Seed: r.random.Int64(), Rate: 1 / time.Hour.Seconds(), Ranks: len(r.places), JobID: int64(r.number), JobName: r.id,
		MetricsInterval: time.Minute, ErrorRatio: func(time.Time) float64 { return usualErrors / 4 },
	}
	if r.system == ownLoop {
		if again, ok := r.program.(*loop); ok {
			again.run.RestartAt(r.places, time.Now())
			return again
		}
		return newLoop(settings, r)
	}
	for rank, place := range r.places {
		place.GPU.Hold(usualMemory, fleet.Attr{Key: "ml.run.id", Value: r.id}, fleet.Attr{Key: "ml.rank.global", Value: rank},
			fleet.Attr{Key: "service.name", Value: r.serviceName()})
	}
	name, each := "torchtel", 20
	if r.system == fx {
		name, each = "fx", 10
	}
	imitated, err := scenario.New(name, settings)
	if err != nil {
		panic(err) // one of two names
	}
	c := &client{Pauser: imitated.(scenario.Pauser), each: each}
	c.Pause(time.Now())
	return c
}

func (r *run) serviceName() string {
	switch r.system {
	case fx:
		return "fx-forecasting"
	case ownLoop:
		return "trainer"
	default:
		return "torchtel"
	}
}

// client is a program of a scenario.
type client struct {
	scenario.Pauser
	// each is the number of steps between two validations.
	each int
}

func (c *client) step(at time.Time) []scenario.Batch   { return c.Step(at) }
func (c *client) finish(at time.Time) []scenario.Batch { return c.Finish(at) }

// pause: neither client traces its checkpoints.
func (c *client) pause(until time.Time) []scenario.Batch {
	c.Pause(until)
	return nil
}

func (c *client) stretch(step int) float64 {
	if step%c.each == 0 {
		return 1.8
	}
	return 1
}

// loop is a training loop that traces as the quick start describes for one's own.
type loop struct {
	site *fleet.Site
	run  *fleet.Run
}

func newLoop(settings scenario.Settings, r *run) *loop {
	settings.MetricsInterval = time.Hour // its hosts are the world's
	site := fleet.NewSite("loop", settings)
	return &loop{site, site.Train(fleet.Training{
		Service: "trainer", Job: r.number, User: 1001 + r.number%users, Places: r.places, StepTime: r.times.median,
	})}
}

func (l *loop) step(at time.Time) []scenario.Batch     { return l.run.StepTo(at) }
func (l *loop) pause(until time.Time) []scenario.Batch { return l.run.SaveTo(until) }
func (l *loop) finish(at time.Time) []scenario.Batch   { return l.site.Finish(at) }
func (l *loop) stretch(int) float64                    { return 1 }
