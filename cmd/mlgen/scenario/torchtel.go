package scenario

import (
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	torchtelScope = "torchtel.instrument"
	// torchtelEpoch and torchtelValidation are the steps of an epoch and of the
	// validation after it.
	torchtelEpoch      = 20
	torchtelValidation = 3
	// The parameters of a GPT-2 small, and a plausible footprint on an 80 GB GPU.
	torchtelParameters = 124_439_808
	torchtelAllocated  = 31 << 30
	torchtelReserved   = 36 << 30
)

// torchTel imitates TorchTel 0.0.3 in data-parallel training processes under
// torchrun. Each process has one trace for its whole life: its `train` span is
// opened at the first operation and sent only at a clean end.
type torchTel struct {
	settings Settings
	ranks    []*torchRank
}

type torchRank struct {
	*process
	label      string
	slowLoader bool
	train      ref
	last       time.Time
	step       int
	steps      *instrument
	memory     *instrument
}

func newTorchTel(settings Settings) Scenario {
	t := &torchTel{settings: settings}
	for rank := range settings.Ranks {
		t.ranks = append(t.ranks, newTorchRank(settings, rank))
	}
	return t
}

func newTorchRank(settings Settings, rank int) *torchRank {
	label := strconv.Itoa(rank)
	r := &torchRank{
		label: label,
		// The last rank reads its data a little slower: a straggler to find.
		slowLoader: rank > 0 && rank == settings.Ranks-1,
		process: newProcess("torchtel", "rank"+label, settings, []attr{
			{"service.name", "torchtel"},
			{"job_id", settings.JobID},
			{"job_name", settings.JobName},
			{"user", "mlgen"},
			{"cluster", "local-node"},
			{"local_rank", rank},
			{"global_rank", rank},
			{"world_size", settings.Ranks},
			{"host", Host},
		}),
	}
	m := &meter{scope: torchtelScope}
	r.steps = m.add(counter, "train.step.count", "1", "Optimizer steps (batches)")
	// TorchTel 0.0.3 documents this one and does not send it: its callback never
	// reaches the SDK. It is here for whoever has it repaired.
	m.add(gauge, "model.parameters", "", "Number of model parameters").record(torchtelParameters)
	// Known from TorchTel's source; without CUDA it is not sent.
	r.memory = m.add(gauge, "gpu.memory.bytes", "By", "GPU memory of the process")
	r.meters = []*meter{m}
	return r
}

// Step performs one training step on every rank.
func (t *torchTel) Step(at time.Time) []Batch {
	var out []Batch
	for _, r := range t.ranks {
		r.trainStep(at, t.settings.interval())
		out = append(out, r.flush(at, false)...)
	}
	return out
}

// Pause implements Pauser.
func (t *torchTel) Pause(until time.Time) {
	for _, r := range t.ranks {
		r.last = until
	}
}

// Finish imitates uninstrument() in every process: the `train` span ends and leaves at last.
func (t *torchTel) Finish(at time.Time) []Batch {
	var out []Batch
	for _, r := range t.ranks {
		if !r.start.IsZero() {
			r.end(spanSpec{ref: r.train, scope: torchtelScope, name: "train", start: r.start, end: at})
		}
		out = append(out, r.flush(at, true)...)
	}
	return out
}

// trainStep fills the time since the previous step, at most one interval.
func (r *torchRank) trainStep(at time.Time, interval time.Duration) {
	from := at.Add(-interval)
	if from.Before(r.last) {
		from = r.last
	}
	r.last = at
	if r.start.IsZero() {
		r.begin(from)
		r.train = r.newTrace()
		sentlog.Count(&r.truth.Runs, r.train.trace.String(), 1)
	}
	r.step++

	// The window's last part is the validation at the end of an epoch.
	epochEnd := r.step%torchtelEpoch == 0
	window := at.Sub(from)
	share := 0.94
	if epochEnd {
		share = 0.55
	}
	clock := from
	load := r.rand.near(0.06, 0.4)
	if r.slowLoader {
		load *= 2.5
	}
	clock = r.operation(clock, window, share*load, "dataloader.next")
	clock = r.operation(clock, window, share*r.rand.near(0.26, 0.05), "GPT.forward")
	clock = r.operation(clock, window, share*r.rand.near(0.44, 0.05), "autograd.backward")
	clock = r.optimizer(clock, window, share*r.rand.near(0.08, 0.1))
	if epochEnd {
		r.epochEnd(clock, at, window)
	}

	allocated := r.rand.near(torchtelAllocated, 0.03)
	r.memory.record(float64(int64(allocated)), attr{"kind", "allocated"})
	r.memory.record(torchtelReserved, attr{"kind", "reserved"})
}

// operation records a span that takes a share of the window.
func (r *torchRank) operation(from time.Time, window time.Duration, share float64, name string) time.Time {
	end := from.Add(time.Duration(float64(window) * share))
	r.end(spanSpec{ref: r.child(r.train), parent: r.train.span, scope: torchtelScope, name: name, start: from, end: end})
	return end
}

// optimizer records a step of AdamW where it inherits from Adam, as in recent
// PyTorch, and TorchTel has met Adam first: both steps are wrapped, so there are
// two spans and two counts for one step. Where AdamW has a step of its own, as in
// PyTorch 1.13, there is one of each.
func (r *torchRank) optimizer(from time.Time, window time.Duration, share float64) time.Time {
	end := from.Add(time.Duration(float64(window) * share))
	outer := r.child(r.train)
	inner := r.child(r.train)
	// The inner step is a little shorter, however short the outer one is: a
	// step that was late has next to no time.
	inset := end.Sub(from) / 50
	r.end(spanSpec{
		ref: inner, parent: outer.span, scope: torchtelScope, name: "Adam.step",
		start: from.Add(inset), end: end.Add(-inset),
	})
	r.end(spanSpec{ref: outer, parent: r.train.span, scope: torchtelScope, name: "AdamW.step", start: from, end: end})
	r.steps.record(2)
	sentlog.Count(&r.truth.Steps, r.label, 1)
	return end
}

// epochEnd records the exhausted training loader and a validation pass, whose
// spans have the same names as the training's.
func (r *torchRank) epochEnd(from, until time.Time, window time.Duration) {
	clock := r.exhausted(from)
	// A step that was late can be over before the loader is.
	left := max(0, until.Sub(clock))
	share := 0.9 * float64(left) / float64(max(window, 1)) / torchtelValidation
	for range torchtelValidation {
		clock = r.operation(clock, window, share*0.15, "dataloader.next")
		clock = r.operation(clock, window, share*0.8, "GPT.forward")
	}
	r.exhausted(clock)
	sentlog.Count(&r.truth.Epochs, r.label, 1)
	sentlog.Count(&r.truth.Validations, r.label, 1)
}

// exhausted records the loader's end: StopIteration leaves the span, which so
// becomes an error although nothing went wrong.
func (r *torchRank) exhausted(from time.Time) time.Time {
	end := from.Add(r.rand.duration(50e-6, 200e-6))
	span := r.end(spanSpec{
		ref: r.child(r.train), parent: r.train.span, scope: torchtelScope,
		name: "dataloader.next", start: from, end: end,
	})
	fail(span, end, exception{
		kind: "StopIteration",
		trace: "Traceback (most recent call last):\n" +
			"  File \"/opt/venv/lib/python3.11/site-packages/opentelemetry/trace/__init__.py\", line 589, in use_span\n" +
			"    yield span\n" +
			"  File \"/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py\", line 733, in __next__\n" +
			"    data = self._next_data()\n" +
			"  File \"/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py\", line 788, in _next_data\n" +
			"    index = self._next_index()\n" +
			"  File \"/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py\", line 723, in _next_index\n" +
			"    return next(self._sampler_iter)\n" +
			"StopIteration\n",
	})
	return end
}
