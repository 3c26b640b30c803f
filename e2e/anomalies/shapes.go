package anomalies

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Trainings of other shapes than those of the fleets: they pause, differ and change as
// real ones do, and nothing is wrong with them, or one thing is.

// part is what all ranks of a shaped run do for a while.
type part struct {
	// phase is that of the span that the ranks send at its end, "" for none. A step is
	// stepPart.
	phase string
	d     time.Duration
	// use and power are those of the GPUs, those of training if use is 0 and power is 0;
	// bursts alternates between them and training each 90 s.
	use, power float64
	bursts     bool
	// only are the ranks that send, nil for all.
	only func(rank int) bool
	// loss is that of the rank in a step.
	loss func(rank int) float64
	// each changes the time of a rank in a step: it computes longer, and the others wait.
	each func(rank int) float64
	// attrs are further attributes of the spans.
	attrs map[string]any
	// do is done at the beginning.
	do func()
}

const stepPart = "step"

// shaped is a run of a shape.
type shaped struct {
	w       *world
	id      string
	hosts   []string
	ranks   int
	world   int
	number  int
	steps   int
	places  []fleet.Place
	workers []*fleet.Workload
	random  *rand.Rand
	next    func() []part
	spans   uint64
	ends    bool
	// pid is the process.pid of the first rank, or 0.
	pid int
}

// shape is a kind of training.
type shape struct {
	name string
	// ranks is their number, 2 if it is 0, and hosts how many they are on, 1 if it is 0.
	ranks, hosts int
	// make returns what comes next of a run, again and again.
	make func(r *shaped) func() []part
	// kind is what is found after plantedAfter, "" where nothing is wrong.
	kind string
	// days is for how long each run lives, 1 if it is 0.
	days float64
	// names is what the evidence says of it.
	names string
	// missed says why fewer are found, and what the client would have to send, "" if most are.
	missed string
	// may are kinds that are reported rightly, or for want of what the client would have
	// to send.
	may []string
}

// trainShape adds a run of a shape.
func (w *world) trainShape(s *shape, number int) {
	r := &shaped{w: w, number: number, ranks: cmp.Or(s.ranks, 2), id: fmt.Sprintf("shape-%d", number), pid: 100}
	r.world = r.ranks
	r.random = w.stream(r.id)
	for i := range max(s.hosts, 1) {
		r.hosts = append(r.hosts, fmt.Sprintf("sh-%03d", number)+strings.Repeat("b", i))
		r.places = append(r.places, w.addHost(r.hosts[i], r.ranks/max(s.hosts, 1))...)
	}
	r.hold()
	r.next = s.make(r)
	w.in(spread(r.random, 10*time.Minute), r.proceed)
}

func (r *shaped) hold() {
	r.workers = r.workers[:0]
	for rank, place := range r.places {
		r.workers = append(r.workers, place.GPU.Hold(usualMemory, fleet.Attr{Key: "ml.run.id", Value: r.id}, fleet.Attr{Key: "ml.rank.global", Value: rank},
			fleet.Attr{Key: "service.name", Value: "shaped"}))
	}
}

// host returns the host of a rank.
func (r *shaped) host(rank int) string { return r.hosts[rank*len(r.hosts)/r.ranks] }

// stop ends the processes.
func (r *shaped) stop() {
	for _, place := range r.places {
		place.GPU.Release()
	}
}

func (r *shaped) gpus(use, power float64) {
	for i, place := range r.places {
		if len(place.GPU.Workloads) > 0 && i < r.world {
			place.GPU.Use, place.GPU.Power = use, power
		}
	}
}

func (r *shaped) proceed() {
	parts := r.next()
	at := time.Duration(0)
	for i := range parts {
		p := &parts[i]
		r.w.in(at, func() { r.begin(p) })
		at += p.d
		r.w.in(at, func() { r.end(p) })
	}
	if !r.ends {
		r.w.in(at, r.proceed)
	}
}

func (r *shaped) begin(p *part) {
	if p.do != nil {
		p.do()
	}
	use, power := p.use, p.power
	if use == 0 && power == 0 {
		use, power = trainingUse, trainingPower
	}
	if r.gpus(use, power); !p.bursts {
		return
	}
	for n := 1; time.Duration(n)*90*time.Second < p.d; n++ {
		r.w.in(time.Duration(n)*90*time.Second, func() {
			if n%2 == 1 {
				r.gpus(trainingUse, trainingPower)
			} else {
				r.gpus(use, power)
			}
		})
	}
}

func (r *shaped) end(p *part) {
	if p.phase == "" {
		return
	}
	if p.phase == stepPart {
		r.steps++
	}
	for rank := range r.world {
		if p.only != nil && !p.only(rank) {
			continue
		}
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		attrs := rs.Resource().Attributes()
		attrs.PutStr("service.name", "shaped")
		attrs.PutStr(mlattr.RunID, r.id)
		attrs.PutStr("host.name", r.host(rank))
		attrs.PutInt(mlattr.RankGlobal, int64(rank))
		attrs.PutInt(mlattr.WorldSize, int64(r.world))
		if r.pid > 0 {
			attrs.PutInt("process.pid", int64(r.pid+rank))
		}
		list := rs.ScopeSpans().AppendEmpty().Spans()
		if p.phase != stepPart {
			r.span(list, rank, p.phase, p.d, 0)
		} else {
			own := 1.0
			if p.each != nil {
				own = p.each(rank)
			}
			forward := time.Duration(float64(p.d) * 0.3 * own)
			backward := time.Duration(float64(p.d) * 0.5 * own)
			r.span(list, rank, mlattr.PhaseForward, forward, p.d-forward)
			r.span(list, rank, mlattr.PhaseBackward, backward, p.d-forward-backward)
			last := r.span(list, rank, mlattr.PhaseOptimizer, p.d/10, 0)
			last.Attributes().PutInt(mlattr.Step, int64(r.steps))
			if p.loss != nil {
				last.Attributes().PutDouble(mlattr.Loss, p.loss(rank))
				last.Attributes().PutStr(mlattr.LossScope, "batch")
			}
			for key, value := range p.attrs {
				_ = last.Attributes().PutEmpty(key).FromRaw(value)
			}
		}
		r.w.send(r.host(rank), scenario.Batch{Signal: sentlog.SignalTraces, Traces: td})
	}
}

// span adds a span that ended some time ago.
func (r *shaped) span(list ptrace.SpanSlice, rank int, phase string, d, ago time.Duration) ptrace.Span {
	r.spans++
	s := list.AppendEmpty()
	s.SetTraceID(pcommon.TraceID{byte(rank + 1), byte(r.number), 7})
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], r.spans<<8|uint64(rank))
	s.SetSpanID(id)
	s.SetName(phase)
	end := time.Now().Add(-ago)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-d)))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	s.Attributes().PutStr(mlattr.Phase, phase)
	return s
}

// step is a usual step of some seconds.
func (r *shaped) step(seconds float64) part {
	return part{phase: stepPart, d: time.Duration(seconds * math.Exp(0.02*r.random.NormFloat64()) * 1e9)}
}

// eachSteps returns what comes each n steps of some seconds.
func eachSteps(n int, seconds float64, then func(r *shaped) []part) func(*shaped) func() []part {
	return func(r *shaped) func() []part {
		return func() []part {
			if r.steps%n == n-1 {
				return append(then(r), r.step(seconds))
			}
			return []part{r.step(seconds)}
		}
	}
}

// pause returns a pause.
func pause(d time.Duration, p part) func(*shaped) []part {
	return func(r *shaped) []part {
		p.d = time.Duration(float64(d) * math.Exp(0.1*r.random.NormFloat64()))
		return []part{p}
	}
}

func withLoss(seconds float64, loss func(r *shaped, rank int) float64) func(*shaped) func() []part {
	return func(r *shaped) func() []part {
		return func() []part {
			p := r.step(seconds)
			p.loss = func(rank int) float64 { return loss(r, rank) }
			return []part{p}
		}
	}
}

func idleGPU() part { return part{use: 0, power: 110} }

// healthyShapes are those with which nothing is wrong.
var healthyShapes = []shape{
	{name: "evaluation of 10 minutes each 500 steps, without spans, GPUs idle", make: eachSteps(500, 6, pause(10*time.Minute, idleGPU()))},
	{name: "the same, GPUs busy at 55 % of their power", make: eachSteps(500, 6, pause(10*time.Minute, part{use: 1, power: 0.55 * trainingPower}))},
	{name: "the same, GPUs at work in short bursts", make: eachSteps(500, 6, pause(10*time.Minute, part{use: 0, power: 110, bursts: true}))},
	{name: "the same, with its span", make: eachSteps(500, 6, pause(10*time.Minute, part{phase: mlattr.PhaseValidation, power: 110}))},
	{name: "checkpoint of 15 minutes each 600 steps, without spans", make: eachSteps(600, 6, pause(15*time.Minute, idleGPU()))},
	{name: "the same, with its span", make: eachSteps(600, 6, pause(15*time.Minute, part{phase: mlattr.PhaseCheckpoint, power: 110}))},
	{name: "checkpoint of 4 minutes, now and then 8", make: eachSteps(300, 6, func(r *shaped) []part {
		p := idleGPU()
		if p.d = 4 * time.Minute; r.random.IntN(6) == 0 {
			p.d *= 2
		}
		return []part{p}
	})},
	{name: "compilation of 20 minutes at first, later of 6 to 12", make: func(r *shaped) func() []part {
		return func() []part {
			p := idleGPU()
			switch {
			case r.steps == 0 && r.spans == 0:
				r.spans++
				p.d = 20 * time.Minute
			case r.random.IntN(1500) == 0:
				p.d = between(r.random, 6*time.Minute, 12*time.Minute)
			default:
				return []part{r.step(6)}
			}
			return []part{p, r.step(6)}
		}
	}},
	{name: "reinforcement learning: generation of 3 to 12 minutes, then 8 steps", make: func(r *shaped) func() []part {
		return func() (all []part) {
			all = append(all, part{d: logNormal(r.random, 6*time.Minute, 0.4), use: 1, power: 0.5 * trainingPower})
			for range 8 {
				all = append(all, r.step(20))
			}
			return all
		}
	}},
	{name: "notebook: some steps, then somebody thinks", ranks: 1, may: []string{mlattr.ProblemHeldIdle}, make: func(r *shaped) func() []part {
		return func() (all []part) {
			for range 5 + r.random.IntN(200) {
				all = append(all, r.step(2))
			}
			p := idleGPU()
			if p.d = logNormal(r.random, 9*time.Minute, 1); time.Now().Hour() == 12 && r.random.IntN(3) == 0 {
				p.d = time.Hour
			}
			return append(all, p)
		}
	}},
	{name: "ranks that end one after the other", ranks: 4, make: func(r *shaped) func() []part {
		return func() (all []part) {
			if r.steps < 3000 {
				return []part{r.step(6)}
			}
			for last := 3; last > 0; last-- {
				for range 120 {
					p := r.step(6)
					p.only = func(rank int) bool { return rank < last }
					p.use, p.power = 0.5, 300
					all = append(all, p)
				}
			}
			r.ends = true
			return append(all, part{do: r.stop})
		}
	}},
	{name: "one rank writes the result for half an hour after the others", ranks: 4, may: []string{mlattr.ProblemHeldIdle}, make: func(r *shaped) func() []part {
		return func() (all []part) {
			if r.steps < 3000 {
				return []part{r.step(6)}
			}
			for range 30 {
				all = append(all, part{phase: mlattr.PhaseCheckpoint, d: time.Minute, only: func(rank int) bool { return rank == 0 }, use: 0, power: 110})
			}
			r.ends = true
			return append(all, part{do: r.stop})
		}
	}},
	{name: "spans exported each 5 minutes", make: func(r *shaped) func() []part {
		return func() []part {
			// The steps of 5 minutes, sent together.
			all := []part{{d: 5*time.Minute + spread(r.random, 20*time.Second)}}
			for range 10 {
				p := r.step(30)
				p.d = time.Nanosecond
				all = append(all, p)
			}
			return all
		}
	}},
	{name: "workers come and go: 4 to 8 ranks, step times after it", ranks: 8, make: func(r *shaped) func() []part {
		return func() []part {
			if r.steps%900 == 899 {
				r.world = 4 + r.random.IntN(5)
				for i, place := range r.places {
					place.GPU.Release()
					if i < r.world {
						place.GPU.Hold(usualMemory, fleet.Attr{Key: "ml.run.id", Value: r.id}, fleet.Attr{Key: "ml.rank.global", Value: i},
							fleet.Attr{Key: "service.name", Value: "shaped"})
					}
				}
			}
			return []part{r.step(6 * 8 / float64(r.world))}
		}
	}},
	{name: "sequences grow in stages, their tokens are not sent", may: []string{mlattr.ProblemSlow}, make: func(r *shaped) func() []part {
		return func() []part { return []part{r.step(4 * math.Pow(1.3, float64(r.steps/5000)))} }
	}},
	{name: "two lengths of steps whose mix drifts", make: func(r *shaped) func() []part {
		return func() []part {
			share := 0.5 + 0.4*math.Sin(float64(r.steps)/1500)
			if r.random.Float64() < share {
				return []part{r.step(4)}
			}
			return []part{r.step(9)}
		}
	}},
	{name: "one step in 20 is 2 to 8 times as long", make: func(r *shaped) func() []part {
		return func() []part {
			if r.random.IntN(20) == 0 {
				return []part{r.step(5 * (2 + 6*r.random.Float64()))}
			}
			return []part{r.step(5)}
		}
	}},
	{name: "loss: restarts of a cosine, the rate is not sent", make: withLoss(5, func(r *shaped, _ int) float64 {
		phase := float64(r.steps%2000) / 2000
		return 2 + 0.8*math.Exp(-float64(r.steps)/6000) + 0.5*(1+math.Cos(math.Pi*phase))*math.Exp(-phase) + 0.03*r.random.NormFloat64()
	})},
	{name: "loss: GAN", make: withLoss(5, func(r *shaped, _ int) float64 {
		return 0.7 + 0.5*math.Sin(float64(r.steps)/40)*math.Sin(float64(r.steps)/300) + 0.3*math.Abs(r.random.NormFloat64())
	})},
	{name: "loss: fine-tuning in epochs", make: withLoss(5, func(r *shaped, _ int) float64 {
		return 1.4*math.Pow(0.75, float64(r.steps/400)) + 0.05*r.random.NormFloat64()
	})},
	{name: "loss: batches of one", make: withLoss(5, func(r *shaped, _ int) float64 {
		return math.Exp(0.6+0.9*r.random.NormFloat64()) + 1.5*math.Exp(-float64(r.steps)/3000)
	})},
	{name: "gradient norm: warm-up, then it grows, one step in 200 is ten times as high", make: withNorm(func(r *shaped) float64 {
		norm := (0.5 + 8*math.Exp(-float64(r.steps)/150) + float64(r.steps)/8000) * math.Exp(0.15*r.random.NormFloat64())
		if r.random.IntN(200) == 0 {
			norm *= 10
		}
		return norm
	})},
	{name: "gradient norm: batches of one", make: withNorm(func(r *shaped) float64 { return math.Exp(0.9 * r.random.NormFloat64()) })},
	{name: "gradient norm: mixed precision, infinite in the first 20 steps and in one of 300", make: withNorm(func(r *shaped) float64 {
		if r.steps < 20 || r.random.IntN(300) == 0 {
			return math.Inf(1)
		}
		return 0.8 * math.Exp(0.2*r.random.NormFloat64())
	})},
	{name: "gradient norm: reinforcement learning, one step in four has none", make: withNorm(func(r *shaped) float64 {
		if r.random.IntN(4) == 0 {
			return 0
		}
		return 0.1 * math.Exp(0.5*r.random.NormFloat64())
	})},
	{name: "two hosts: in one step in ten the data of a rank is late", ranks: 4, hosts: 2, make: lateSteps(func(r *shaped) (late int, is bool) {
		return r.random.IntN(4), r.random.IntN(10) == 0
	})},
	{name: "two hosts: one of them is late in one step in 100, both in each tenth", ranks: 4, hosts: 2, make: lateSteps(func(r *shaped) (late int, is bool) {
		if r.steps%10 == 0 {
			return -1, true
		}
		return 3, r.random.IntN(100) == 0
	})},
	{name: "loss: negative, with plateaus", make: withLoss(5, func(r *shaped, _ int) float64 {
		return -3*float64(r.steps/800)/10 - 1 + 0.1*r.random.NormFloat64()
	})},
}

// shapeRow is what was reported of runs or services of a shape.
type shapeRow struct {
	name  string
	runs  int
	lived time.Duration
	// missed is that of the shape.
	missed string
	// found and delays are of what was planted, and sightings of anything else.
	found                 int
	delays                []time.Duration
	pages, tickets, marks int
	others                []*sighting
}

// add adds a problem that was not planted.
func (r *shapeRow) add(seen *sighting) {
	r.others = append(r.others, seen)
	switch kind, _ := mlattr.ProblemNamed(seen.kind); kind.Severity {
	case mlattr.SeverityPage:
		r.pages++
	case mlattr.SeverityTicket:
		r.tickets++
	default:
		r.marks++
	}
}

// find adds what was found of a run or service after the onset, once.
func (r *shapeRow) find(known map[string]bool, of string, after time.Duration) {
	if !known[of] {
		known[of] = true
		r.found++
		r.delays = append(r.delays, after)
	}
}

// live lets runs of a shape live. It must run in a synctest bubble.
func (s *shape) live(ctx context.Context, seed int64, runs int) (*shapeRow, error) {
	time.Sleep(begins)
	w, err := newWorld(ctx, seed, flushOfPlanted)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		w.trainShape(s, i)
	}
	began := time.Now()
	days := s.days
	if days == 0 {
		days = 1
	}
	w.live(time.Duration(days * 24 * float64(time.Hour)))
	row := &shapeRow{name: s.name, missed: s.missed, runs: runs, lived: time.Since(began)}
	known := make(map[string]bool)
	for _, seen := range w.collector.reported() {
		if s.kind == seen.kind && seen.detected.After(began.Add(plantedAfter)) && strings.Contains(seen.evidence, s.names) {
			row.find(known, cmp.Or(seen.run, strings.Replace(seen.host, "sh-0", "shape-", 1)), seen.detected.Sub(began.Add(plantedAfter)))
		} else {
			row.add(seen)
		}
	}
	if err := w.collector.stop(ctx); err != nil {
		return nil, err
	}
	return row, w.collector.failed()
}

// then returns what comes until a time, and what comes after it.
func then(after time.Duration, before, since func(*shaped) func() []part) func(*shaped) func() []part {
	return func(r *shaped) func() []part {
		begun := time.Now()
		first, second := before(r), since(r)
		return func() []part {
			if time.Since(begun) < after {
				return first()
			}
			return second()
		}
	}
}

func steps(seconds float64) func(*shaped) func() []part {
	return func(r *shaped) func() []part { return func() []part { return []part{r.step(seconds)} } }
}

const plantedAfter = 4 * time.Hour

// hangWith has the run take no more steps, with GPUs as the part says.
func hangWith(p part) func(*shaped) func() []part {
	p.d = time.Minute
	return func(*shaped) func() []part { return func() []part { return []part{p} } }
}

func lossThen(loss, later func(r *shaped, rank int) float64) func(*shaped) func() []part {
	return then(plantedAfter, withLoss(5, loss), withLoss(5, later))
}

func usualLoss(r *shaped, _ int) float64 {
	return 1.6 + 3*math.Pow(float64(r.steps+10), -0.35) + 0.03*r.random.NormFloat64()
}

// plantedShapes are those with which one thing is wrong after some hours.
var plantedShapes = []shape{
	{name: "hang, GPUs wait", kind: mlattr.ProblemLooksHung, days: 0.3, make: then(plantedAfter, steps(6), hangWith(part{use: 1, power: waitingPower}))},
	{name: "hang, GPUs idle", kind: mlattr.ProblemLooksHung, may: []string{mlattr.ProblemHeldIdle}, days: 0.3, make: then(plantedAfter, steps(6), hangWith(idleGPU()))},
	{name: "hang, GPUs at half their power", kind: mlattr.ProblemLooksHung, days: 0.3, make: then(plantedAfter, steps(6), hangWith(part{use: 1, power: 0.5 * trainingPower}))},
	{name: "hang after evaluations of 10 minutes", kind: mlattr.ProblemLooksHung, days: 0.4,
		make: then(plantedAfter, eachSteps(500, 6, pause(10*time.Minute, idleGPU())), hangWith(part{use: 1, power: waitingPower}))},
	{name: "5 % slower", kind: mlattr.ProblemSlow, days: 0.4, make: then(plantedAfter, steps(6), steps(6.3))},
	{name: "20 % slower", kind: mlattr.ProblemSlow, days: 0.4, make: then(plantedAfter, steps(6), steps(7.2))},
	{name: "one rank 15 % slower", ranks: 4, kind: mlattr.ProblemSlow, days: 0.4, make: then(plantedAfter, steps(6), func(r *shaped) func() []part {
		return func() []part {
			p := r.step(6.9)
			p.each = func(rank int) float64 {
				if rank == 2 {
					return 1
				}
				return 1 / 1.15
			}
			return []part{p}
		}
	})},
	{name: "3 % slower each hour", kind: mlattr.ProblemSlow, make: func(r *shaped) func() []part {
		begun := time.Now()
		return func() []part { return []part{r.step(6 * (1 + 0.03*max(0, time.Since(begun).Hours()-4)))} }
	}},
	{name: "NaN in one rank", ranks: 4, kind: mlattr.ProblemNonfinite, days: 0.3, make: lossThen(usualLoss, func(r *shaped, rank int) float64 {
		if rank == 3 {
			return math.NaN()
		}
		return usualLoss(r, rank)
	})},
	{name: "frozen loss", kind: mlattr.ProblemLossFrozen, days: 0.3, make: lossThen(usualLoss, func(*shaped, int) float64 { return 2.125 })},
	{name: "restarts each 10 minutes, not counted, other processes", kind: mlattr.ProblemRestartLoop, days: 0.3, make: then(plantedAfter, steps(6), func(r *shaped) func() []part {
		return func() (all []part) {
			all = append(all, part{d: 90 * time.Second, power: 110, do: func() { r.pid += 100 }})
			for range 85 {
				all = append(all, r.step(6))
			}
			return all
		}
	})},
	{name: "restarts each 10 minutes, not counted, from the last checkpoint", kind: mlattr.ProblemRestartLoop, days: 0.3, make: then(plantedAfter, steps(6), func(r *shaped) func() []part {
		return func() (all []part) {
			all = append(all, part{d: 90 * time.Second, power: 110, do: func() { r.pid, r.steps = 0, r.steps-30 }})
			for range 85 {
				all = append(all, r.step(6))
			}
			return all
		}
	})},
	{name: "memory grows by 6 GiB an hour", kind: mlattr.ProblemMemoryGrowth, days: 0.3, make: func(r *shaped) func() []part {
		begun := time.Now()
		return func() []part {
			for _, w := range r.workers {
				w.Memory = usualMemory + int64(6*max(0, time.Since(begun).Hours()-4)*gib)
			}
			return []part{r.step(6)}
		}
	}},
	{name: "one host of two is slow in each tenth step: twice as long", ranks: 4, hosts: 2, kind: mlattr.ProblemSlow, days: 0.4, names: "b: in ", make: then(plantedAfter, steps(6), func(r *shaped) func() []part {
		return func() []part {
			if r.steps%10 != 0 {
				return []part{r.step(6)}
			}
			p := r.step(12)
			p.each = func(rank int) float64 {
				if rank >= 2 {
					return 1
				}
				return 0.5
			}
			return []part{p}
		}
	})},
	{name: "gradient norm: NaN from then on, losses stay", kind: mlattr.ProblemLossDiverged, days: 0.3, names: "norms of the gradient", make: gradients(func(float64) float64 { return math.NaN() })},
	{name: "gradient norm: ten times as high, losses stay", kind: mlattr.ProblemLossSpike, days: 0.3, names: "norm of the gradient", make: gradients(func(norm float64) float64 { return 10 * norm })},
	{name: "hang at the start, no GPU is read", kind: mlattr.ProblemLooksHung, days: 0.3, missed: "A program that has sent one span may as well have ended. " +
		"The receiver `gpu` on the host says that it still holds a GPU: then it is found.", make: func(r *shaped) func() []part {
		r.stop()
		return func() []part {
			if r.spans == 0 {
				return []part{{d: plantedAfter}, {phase: mlattr.PhaseDataLoad, d: time.Minute}}
			}
			return []part{{d: time.Hour}}
		}
	}},
	{name: "all ranks are killed for want of memory", ranks: 4, kind: mlattr.ProblemRunFailed, days: 0.3, missed: "A killed process sends nothing, and one that has come to its end releases its GPUs as well. " +
		"A launcher whose lines `ml_lines` reads, or that sends a span with the error, says so: then it is found.", make: then(plantedAfter, steps(6), func(r *shaped) func() []part {
		return func() []part {
			r.ends = true
			return []part{{do: r.stop}}
		}
	})},
}

// gradients has steps with the norm of the gradient, changed after some hours.
func gradients(change func(norm float64) float64) func(*shaped) func() []part {
	norm := func(r *shaped) float64 { return 0.8 * math.Exp(0.2*r.random.NormFloat64()) }
	return then(plantedAfter, withNorm(norm), withNorm(func(r *shaped) float64 { return change(norm(r)) }))
}

// withNorm has steps with the norm of the gradient.
func withNorm(norm func(r *shaped) float64) func(*shaped) func() []part {
	return func(r *shaped) func() []part {
		return func() []part {
			p := r.step(5)
			p.loss = func(rank int) float64 { return usualLoss(r, rank) }
			p.attrs = map[string]any{mlattr.GradientNorm: norm(r)}
			return []part{p}
		}
	}
}

// lateSteps has steps in some of which a rank is late, or all are if it is below 0: they take
// twice as long, and the others wait.
func lateSteps(late func(r *shaped) (rank int, is bool)) func(*shaped) func() []part {
	return func(r *shaped) func() []part {
		return func() []part {
			of, is := late(r)
			if !is {
				return []part{r.step(6)}
			}
			p := r.step(12)
			p.each = func(rank int) float64 {
				if of < 0 || rank == of {
					return 1
				}
				return 0.5
			}
			return []part{p}
		}
	}
}

// shapesSection returns what docs/evidence/anomalies.md says of other shapes, of which
// each is simulated in equally many runs.
func shapesSection(healthy, planted []*shapeRow) string {
	var text strings.Builder
	var calm []string
	days := 0.0
	var noisy strings.Builder
	for _, r := range healthy {
		lived := float64(r.runs) * r.lived.Hours() / 24
		if r.pages+r.tickets+r.marks == 0 {
			calm = append(calm, r.name)
			days += lived
			continue
		}
		fmt.Fprintf(&noisy, "| %s | %.0f | %d | %s | %d |\n", r.name, lived, r.pages, r.ticketKinds(), r.marks)
	}
	fmt.Fprintf(&text, shapesHead+`

With runs and services of these shapes nothing is wrong, and nothing is reported, in %.0f run-days together: %s.

With these nothing is wrong, too:

| shape | run-days | pages | tickets | marks |
|---|---:|---:|---:|---:|
%s
With these one thing is wrong after some hours (the delay is the median and the 90 %% quantile):

| shape | found of %d | delay | other tickets |
|---|---|---|---|
`, days, strings.Join(calm, "; "), noisy.String(), planted[0].runs)
	for _, r := range planted {
		others := r.ticketKinds()
		switch {
		case r.pages > 0:
			others += fmt.Sprintf(", %d pages", r.pages)
		case others == "0":
			others = ""
		}
		fmt.Fprintf(&text, "| %s | %d | %s | %s |\n", r.name, r.found, cmp.Or(both(r.delays), "–"), others)
	}
	text.WriteString("\nWhy some are not found, and what would have to be sent:\n\n")
	var names []string
	for i, r := range planted {
		if r.missed == "" {
			continue
		}
		if names = append(names, r.name); i+1 < len(planted) && planted[i+1].missed == r.missed {
			continue
		}
		fmt.Fprintf(&text, "- %s: %s\n", strings.Join(names, "; "), r.missed)
		names = nil
	}
	return text.String()
}

const shapesHead = `## Other shapes

Real trainings and services pause, mix and change. These are simulated, too.`

// ticketKinds returns the number of tickets, with their kinds.
func (r *shapeRow) ticketKinds() string {
	counts := make(map[string]int)
	for _, s := range r.others {
		if kind, _ := mlattr.ProblemNamed(s.kind); kind.Severity == mlattr.SeverityTicket {
			counts[s.kind]++
		}
	}
	kinds := []string{strconv.Itoa(r.tickets)}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, "`"+kind+"`")
	}
	return strings.Join(kinds, " ")
}
