package fleet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	// The parts of a step's time; the backward pass takes what is left.
	loadShare      = 0.08
	forwardShare   = 0.27
	optimizerShare = 0.14
	// tailShare is the time after the optimizer that no span of a phase covers.
	tailShare = 0.04
	// jitter is by how much steps differ.
	jitter = 0.02
	// checkpointEvery is the number of steps between checkpoints, stepsOfEpoch
	// that of an epoch.
	checkpointEvery = 50
	stepsOfEpoch    = 400
	// restartSteps is the length of a restart, in steps.
	restartSteps = 10
	// maxBehind is how far a run may be behind the clock; more is skipped.
	maxBehind = time.Minute

	tokensPerStep = 16_384
	samplesOfStep = 4
	parameters    = 8e9
	runMemory     = 61 * gib
)

// Place is where a rank runs. GPU is nil if no GPU is known.
type Place struct {
	Host string
	GPU  *GPU
}

// Places returns the GPUs of hosts, in order.
func Places(hosts ...*Host) (all []Place) {
	for _, h := range hosts {
		for _, g := range h.GPUs {
			all = append(all, Place{h.Name, g})
		}
	}
	return all
}

// Training describes a training run.
type Training struct {
	// Team is the service's namespace, empty without one, Service its name.
	Team, Service string
	// Job is the Slurm job. The run's id is the service and the job.
	Job int
	// User is the numeric id of its user.
	User int
	// Places has one for each rank.
	Places []Place
	// StepTime is the usual length of a step; 0 is that of the site.
	StepTime time.Duration
	// Begun is the part of the first step that is over when the site begins; 0
	// means all of it.
	Begun float64
	// Stuck runs take no step. Their processes hold GPU memory and send metrics
	// of their own, and no span.
	Stuck bool
}

// Run is a training run.
type Run struct {
	Training
	site     *Site
	source   source
	ranks    []*process
	gone     []*process
	measures bool
	attempt  int

	// clock is when the last step ended, next the length of the one that follows,
	// as a multiple of what is usual.
	clock time.Time
	next  float64
	steps int
	// load is the length of a data_load, as a share of a usual step.
	load float64
	// slowHost has ranks that load data for slowTimes as long.
	slowHost  string
	slowTimes float64
	// restoring is true until the processes of a new attempt have read their
	// checkpoint, at clock.
	restoring bool
	// hung has the rank that hangs, -1 if none does.
	hung    int
	stopped bool
	// driven reports whether StepTo and SaveTo move the run.
	driven bool
}

// Train adds a training run.
func (s *Site) Train(t Training) *Run {
	if t.StepTime == 0 {
		t.StepTime = s.StepTime()
	}
	if t.Begun == 0 {
		t.Begun = 1
	}
	r := &Run{Training: t, site: s, measures: t.Stuck, load: loadShare, hung: -1, stopped: t.Stuck}
	r.source = newSource(s.settings.Seed, r.ID())
	r.next = r.source.near(1, jitter)
	r.start()
	s.runs = append(s.runs, r)
	return r
}

// ID is the run's ml.run.id.
func (r *Run) ID() string { return r.Service + "-" + strconv.Itoa(r.Job) }

// start makes the processes of an attempt.
func (r *Run) start() {
	r.gone = append(r.gone, r.ranks...)
	r.ranks = nil
	local := map[string]int{}
	for rank, place := range r.Places {
		own := []Attr{
			{"ml.run.id", r.ID()},
			{"ml.run.attempt", r.attempt},
			{"ml.rank.global", rank},
			{"ml.rank.local", local[place.Host]},
			{"ml.world_size", len(r.Places)},
			{"slurm.job.id", strconv.Itoa(r.Job)},
			{"user.id", strconv.Itoa(r.User)},
		}
		local[place.Host]++
		name := fmt.Sprintf("%s/%d/%d", r.ID(), r.attempt, rank)
		p := newProcess(r.site.settings.Seed, name, append([]Attr{
			{"service.name", r.Service},
			{"service.instance.id", newSource(r.site.settings.Seed, name+"/instance").uuid()},
			{"host.name", place.Host},
			{"ml.job.name", r.Service},
			{"ml.tokens_per_step", tokensPerStep},
			{"ml.samples_per_step", samplesOfStep},
			{"ml.flops_per_token", 6 * parameters},
			simulated,
		}, own...))
		if r.Team != "" {
			p.resource = append(p.resource, Attr{"service.namespace", r.Team})
		}
		r.ranks = append(r.ranks, p)
		if place.GPU != nil {
			place.GPU.Hold(runMemory, own...)
			r.use(place.GPU)
		}
	}
}

// use sets what a GPU of the run does.
func (r *Run) use(g *GPU) {
	switch {
	case r.Stuck:
		g.Use, g.Power = 1, 128
	case r.hung >= 0:
		// The kernels of a collective wait in a loop: all the time, with little power.
		g.Use, g.Power = 1, 210
	default:
		busy := 1 - r.load/(1-loadShare+r.load)
		g.Use, g.Power = busy, idlePower+busy*580
	}
}

func (r *Run) useAll() {
	for _, place := range r.Places {
		if place.GPU != nil {
			r.use(place.GPU)
		}
	}
}

// Hang has one rank hang in its next step: the rank ends its data_load, the
// others end their forward passes, and none sends anything after that.
func (r *Run) Hang(rank int) { r.hung = rank }

// SlowInput makes the data_load longer, so that a step takes the given multiple
// of its usual time.
func (r *Run) SlowInput(times float64) {
	r.load = loadShare + times - 1
	r.useAll()
}

// SlowHost makes the data_load of the ranks on a host take the given multiple of its
// usual time, at most 6. The others wait for them in their backward passes.
func (r *Run) SlowHost(host string, times float64) { r.slowHost, r.slowTimes = host, times }

// Restart ends all processes and starts the next attempt, with the ranks at
// other places.
func (r *Run) Restart(places []Place) {
	r.RestartAt(places, r.clock.Add(restartSteps*r.StepTime))
}

// RestartAt is Restart for an attempt that has read its checkpoint at a time.
func (r *Run) RestartAt(places []Place, at time.Time) {
	for _, place := range r.Places {
		if place.GPU != nil {
			place.GPU.Release()
		}
	}
	r.Places = places
	r.attempt++
	r.clock = at
	r.restoring = true
	r.start()
}

// Mend ends all processes and starts the next attempt, which is well, with the ranks at
// other places.
func (r *Run) Mend(places []Place) {
	r.Stuck, r.measures, r.hung, r.stopped, r.load = false, false, -1, false, loadShare
	r.RestartAt(places, r.site.at.Add(restartSteps*r.StepTime))
}

// Stick ends all processes and starts the next attempt, which takes no step. It does nothing
// to a run that takes none.
func (r *Run) Stick() {
	if r.Stuck {
		return
	}
	r.Stuck, r.measures, r.stopped = true, true, true
	r.RestartAt(r.Places, r.site.at)
	r.restoring = false
	for _, p := range r.ranks {
		p.started = r.site.at
	}
}

// Crash has a step that fails on one rank, with an exception of the class and message. The
// others send nothing of it.
func (r *Run) Crash(rank int, class, message string) {
	p := r.ranks[rank]
	root, over := p.root(), r.clock.Add(r.StepTime/2)
	number := Attr{"ml.step", r.steps + 1}
	fail(p.end(p.below(root), root.span, "forward", ptrace.SpanKindInternal, r.clock, over, Attr{"ml.phase", "forward"}, number), class, message)
	fail(p.end(root, pcommon.SpanID{}, "train_step", ptrace.SpanKindInternal, r.clock, over, number), class, message)
}

// restore has the processes of a new attempt read their checkpoint.
func (r *Run) restore() {
	r.restoring = false
	for _, p := range r.ranks {
		p.started = r.clock.Add(-r.StepTime)
		p.end(p.root(), pcommon.SpanID{}, "load_checkpoint", ptrace.SpanKindInternal, p.started, r.clock,
			Attr{"ml.phase", "checkpoint"}, Attr{"ml.operation", "load_checkpoint"})
	}
}

func (r *Run) processes() []*process { return slices.Concat(r.gone, r.ranks) }

// advance takes the steps that end by the given time.
func (r *Run) advance(at time.Time) {
	if r.clock.IsZero() {
		r.clock = at.Add(-seconds(r.Begun * r.StepTime.Seconds()))
		for _, p := range r.ranks {
			p.started = r.clock
		}
	}
	if at.Sub(r.clock) > maxBehind+10*r.StepTime {
		r.clock = at.Add(-r.StepTime)
	}
	if r.restoring && !r.clock.After(at) {
		r.restore()
	}
	for !r.stopped && !r.restoring {
		end := r.clock.Add(seconds(r.next * r.StepTime.Seconds() * (1 - loadShare + r.load)))
		if end.After(at) {
			return
		}
		r.step(r.clock, end)
		r.clock, r.next = end, r.source.near(1, jitter)
	}
}

// StepTo takes one step of the run that ends at a time, however long it takes, and
// returns the requests of its site that are due. It is for a run whose steps
// Site.Step does not take.
func (r *Run) StepTo(at time.Time) []scenario.Batch {
	if r.clock.IsZero() {
		r.clock = at.Add(-r.StepTime)
		for _, p := range r.ranks {
			p.started = r.clock
		}
	}
	if r.restoring {
		r.restore()
	}
	from := r.clock
	r.driven, r.clock = true, at
	r.StepTime = seconds(at.Sub(from).Seconds() / (1 - loadShare + r.load))
	r.step(from, at)
	return r.site.flush(at, false)
}

// SaveTo has rank 0 write a checkpoint that ends at a time, while the others wait,
// and returns the requests of its site that are due. It is for a run that StepTo
// moves.
func (r *Run) SaveTo(at time.Time) []scenario.Batch {
	r.save(r.ranks[0], r.clock, at)
	r.clock = at
	return r.site.flush(at, false)
}

// save records a checkpoint.
func (r *Run) save(p *process, from, end time.Time) {
	p.end(p.root(), pcommon.SpanID{}, "save_checkpoint", ptrace.SpanKindInternal, from, end, Attr{"ml.phase", "checkpoint"}, Attr{"ml.operation", "save_checkpoint"})
}

// step takes one step on every rank.
func (r *Run) step(from, end time.Time) {
	r.steps++
	loss := 0.9 + 1.8*math.Exp(-float64(r.steps)/900) + r.source.between(-0.02, 0.02)
	for i, p := range r.ranks {
		r.stepOf(i, p, from, end, loss)
	}
	if r.hung >= 0 {
		r.stopped = true
		r.useAll()
		return
	}
	sentlog.Count(&r.site.truth.Steps, r.ID(), 1)
}

func (r *Run) stepOf(rank int, p *process, from, end time.Time, loss float64) {
	unit := r.StepTime.Seconds()
	root := p.root()
	number := Attr{"ml.step", r.steps}
	phase := func(name string, start time.Time, length float64, attrs ...Attr) time.Time {
		over := start.Add(seconds(length))
		p.end(p.below(root), root.span, name, ptrace.SpanKindInternal, start, over, append(attrs, Attr{"ml.phase", name}, number)...)
		return over
	}
	load := r.load
	if r.slowHost != "" && r.Places[rank].Host == r.slowHost {
		load *= r.slowTimes
	}
	clock := phase("data_load", from, unit*p.near(load, 0.05))
	if rank == r.hung {
		return
	}
	clock = phase("forward", clock, unit*p.near(forwardShare, 0.05), Attr{"ml.loss", loss + p.between(-0.01, 0.01)}, Attr{"ml.loss.scope", "batch"})
	if r.hung >= 0 {
		return
	}
	left := end.Sub(clock).Seconds() - unit*(optimizerShare+tailShare)
	clock = phase("backward", clock, left)
	rate := 3e-5 * min(1, float64(r.steps)/100)
	phase("optimizer", clock, unit*optimizerShare, Attr{"ml.learning_rate", rate})
	p.end(root, pcommon.SpanID{}, "train_step", ptrace.SpanKindInternal, from, end, number, Attr{"ml.epoch", (r.steps - 1) / stepsOfEpoch})
	if r.steps%checkpointEvery == 0 && rank == 0 && !r.driven {
		r.save(p, end.Add(-seconds(unit*tailShare)), end)
	}
}

// finish ends the processes as a program ends that is told to: the span of the
// whole training is sent. Those that hang are killed.
func (r *Run) finish(at time.Time) {
	if r.stopped || r.steps == 0 {
		return
	}
	r.stopped = true
	for _, p := range r.ranks {
		p.end(p.root(), pcommon.SpanID{}, "train", ptrace.SpanKindInternal, p.started, at, Attr{"ml.phase", "train"})
	}
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
