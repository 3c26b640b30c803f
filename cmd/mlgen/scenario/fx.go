package scenario

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	fxScope   = "train.core.agent_train_multitask"
	fxBatches = 10
	fxEpochs  = 3
	// fxMicroSteps is the number of losses that an epoch of the multi-task loop
	// logs for each batch. The toolkit logs one for some of them; with ten
	// batches, more are needed to reach the SDK's limit of attributes.
	fxMicroSteps = 14
	// fxAttributeLimit is the SDK's limit of attributes of a span.
	fxAttributeLimit = 128
)

var (
	fxPairs = []string{"eurusd", "gbpusd", "usdjpy", "audusd"}
	fxTasks = []string{"direction", "volatility", "return"}
	// fxShares are the tasks' parts of a loss.
	fxShares = []float64{0.55, 0.35, 0.1}
)

// fxWay is a way in which the toolkit traces a run.
type fxWay int

const (
	// fxMultiTask is that of the multi-task loop, the only one that the
	// toolkit's programs use: numbered names, each span the root of a trace.
	fxMultiTask fxWay = iota
	// fxDocumented uses the names of the toolkit's documentation, each span a
	// root. It is only documented: the helpers for these spans fail when they
	// are called.
	fxDocumented
	// fxNested uses the same names with current spans, as the documentation
	// shows, so batches and the validation are children of their epoch.
	fxNested
)

// fx imitates two programs of the forecasting toolkit: one that names its
// service and traces each of its runs in another way, and the original
// multi-task loop, which does not set service.name.
type fx struct {
	programs []*fxProgram
}

func newFX(settings Settings) Scenario {
	program := func(service string, ways ...fxWay) *fxProgram {
		resource := pythonSDK(settings.Seed, "fx/"+service, service)
		return &fxProgram{service: service, ways: ways, process: newProcess("fx", service, settings, resource)}
	}
	return &fx{programs: []*fxProgram{
		program("fx-forecasting", fxDocumented, fxMultiTask, fxNested),
		program("unknown_service:python", fxMultiTask),
	}}
}

// Step performs one batch of each program.
func (f *fx) Step(at time.Time) []Batch {
	var out []Batch
	for _, p := range f.programs {
		p.batch(at)
		out = append(out, p.flush(at, false)...)
	}
	return out
}

// Pause implements Pauser.
func (f *fx) Pause(until time.Time) {
	for _, p := range f.programs {
		p.last = until
	}
}

// Finish sends the remaining data of the programs. An unfinished epoch is never
// sent, unless it is the current span, which ends with the program.
func (f *fx) Finish(at time.Time) []Batch {
	var out []Batch
	for _, p := range f.programs {
		if p.index > 0 && p.way() == fxNested {
			p.namedEpoch(at)
			sentlog.Count(&p.truth.Epochs, p.service, 1)
		}
		out = append(out, p.flush(at, true)...)
	}
	return out
}

// fxProgram is one training program. It does a batch a step, and between
// epochs what the toolkit does between epochs.
type fxProgram struct {
	*process
	service string
	// ways are the ways of tracing its runs, used in rotation.
	ways  []fxWay
	runs  int
	last  time.Time
	epoch int
	// index counts the batches of the epoch, from 0.
	index  int
	global int
	began  time.Time
	// current is the epoch's span where it is the current one.
	current ref
	losses  []float64
	// over reports whether the program has ended before its last epoch.
	over bool
}

func (p *fxProgram) way() fxWay { return p.ways[(p.runs-1)%len(p.ways)] }

// root records a span that is a trace of its own.
func (p *fxProgram) root(name string, start, end time.Time, attrs ...attr) ptrace.Span {
	return p.end(spanSpec{ref: p.newTrace(), scope: fxScope, name: name, start: start, end: end, attrs: attrs})
}

// inEpoch records a span with a documented name: a child of its epoch if that
// is current, else a root.
func (p *fxProgram) inEpoch(name string, start, end time.Time, attrs ...attr) ptrace.Span {
	if p.way() != fxNested {
		return p.root(name, start, end, attrs...)
	}
	return p.end(spanSpec{
		ref: p.child(p.current), parent: p.current.span, scope: fxScope, name: name, start: start, end: end, attrs: attrs,
	})
}

func (p *fxProgram) batch(at time.Time) {
	from := at.Add(-p.settings.interval())
	if from.Before(p.last) {
		from = p.last
	}
	p.last = at
	p.begin(from)
	window := at.Sub(from)
	part := func(share float64) time.Duration { return time.Duration(float64(window) * share) }

	clock := from
	if p.index == 0 {
		p.startEpoch(from)
		if p.epoch == 1 && p.way() != fxMultiTask {
			clock = p.load(clock, part(0.3))
		}
	}
	final := p.index == fxBatches-1
	end := at.Add(-part(0.03))
	if final {
		// The rest of the window is the evaluation, which no span covers.
		end = clock.Add(time.Duration(0.5 * float64(at.Sub(clock))))
	}
	sentlog.Count(&p.truth.Batches, p.service, 1)
	if p.way() == fxMultiTask {
		if !p.numbered(clock, end) {
			p.endEarly(end)
			return
		}
	} else {
		p.named(clock, end)
	}
	p.index++
	if final {
		p.endEpoch(at)
	}
}

func (p *fxProgram) startEpoch(from time.Time) {
	p.epoch++
	if p.over || p.epoch > fxEpochs || p.runs == 0 {
		// The program starts, for the first time or again.
		p.runs++
		p.over, p.epoch, p.global = false, 1, 0
		sentlog.Count(&p.truth.Runs, p.service, 1)
	}
	p.began = from
	p.losses = p.losses[:0]
	if p.way() == fxNested {
		p.current = p.newTrace()
	}
}

// load records the preparation of the data at the start of a run.
func (p *fxProgram) load(clock time.Time, length time.Duration) time.Time {
	share := length / time.Duration(len(fxPairs))
	for _, pair := range fxPairs {
		mid := clock.Add(share * 6 / 10)
		p.root("data_loading", clock, mid, attr{"pair", pair}, attr{"num_samples", p.rand.count(18_000, 24_000)})
		p.root("feature_engineering", mid, clock.Add(share), attr{"pair", pair}, attr{"feature_count", 42})
		clock = clock.Add(share)
	}
	return clock
}

// loss falls over a run, with noise.
func (p *fxProgram) loss() float64 {
	progress := float64(p.global)
	p.global++
	return round(p.rand.near(0.08+0.85*math.Exp(-progress/20), 0.04), 6)
}

// numbered records a batch of the multi-task loop, and reports whether it
// succeeded. The number restarts in each epoch, so it is no step of the run. A
// failing batch just ends, without loss, status and event.
func (p *fxProgram) numbered(start, end time.Time) bool {
	number := p.index + 1
	attrs := []attr{{"step", number}}
	failed := p.settings.fails(end, p.rand, p.rand.IntN(40) == 0)
	if !failed {
		var loss float64
		for range fxMicroSteps {
			loss = p.loss()
			p.losses = append(p.losses, loss)
		}
		p.global -= fxMicroSteps - 1
		attrs = append(attrs, taskLosses(loss)...)
	}
	p.root(fmt.Sprintf("batch_%d", number), start, end, attrs...)
	return !failed
}

// endEarly ends the program: nothing catches the exception of a batch of the
// multi-task loop. The epoch's span ends with the attributes that it has.
func (p *fxProgram) endEarly(at time.Time) {
	p.epochSpan(at)
	p.index, p.over = 0, true
	sentlog.Count(&p.truth.Epochs, p.service, 1)
}

// named records a batch with the documented name. A failing batch is skipped,
// and the epoch continues.
func (p *fxProgram) named(start, end time.Time) {
	attrs := []attr{{"batch_index", p.index}, {"batch_size", 256}}
	failed := p.settings.fails(end, p.rand, p.rand.IntN(20) == 0)
	if !failed {
		loss := p.loss()
		p.losses = append(p.losses, loss)
		attrs = append(attrs, taskLosses(loss)...)
	}
	span := p.inEpoch("batch_processing", start, end, attrs...)
	if failed {
		p.fail(span, end)
	}
}

func taskLosses(loss float64) []attr {
	attrs := []attr{{"loss", loss}}
	for i, task := range fxTasks {
		attrs = append(attrs, attr{"task." + task, round(fxShares[i]*loss, 6)})
	}
	return attrs
}

// fail marks a span as the toolkit does. If the span is current, the SDK adds
// its exception event and status.
func (p *fxProgram) fail(span ptrace.Span, at time.Time) {
	e := exception{kind: "ValueError", message: "Input contains NaN"}
	if p.rand.IntN(2) == 0 {
		e = exception{kind: "RuntimeError", message: "mat1 and mat2 shapes cannot be multiplied (256x42 and 40x128)"}
	}
	e.trace = "Traceback (most recent call last):\n" +
		"  File \"/app/train/core/agent_train_multitask.py\", line 214, in train_batch\n" +
		"    outputs = model(windows)\n" + e.kind + ": " + e.message + "\n"
	put(span.Attributes(), []attr{{"error.type", e.kind}, {"error.message", e.message}})
	if p.way() == fxNested {
		fail(span, at, e)
	} else {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(e.message)
	}
	p.truth.Fail(sentlog.Failure{
		TraceID: span.TraceID().String(), SpanID: span.SpanID().String(), Name: span.Name(),
		ExceptionType: e.kind, ExceptionMessage: e.message,
	})
}

// mean is the mean of the epoch's losses so far.
func (p *fxProgram) mean() float64 {
	sum := 0.0
	for _, loss := range p.losses {
		sum += loss
	}
	return round(sum/float64(max(1, len(p.losses))), 6)
}

// endEpoch records the validation, which starts after the evaluation and has no
// duration, and then the epoch, which ends last.
func (p *fxProgram) endEpoch(at time.Time) {
	valLoss := round(p.mean()*p.rand.between(1.05, 1.15), 6)
	accuracy := round(0.5+0.3*(1-valLoss), 4)
	start := at.Add(-120 * time.Microsecond)
	end := start.Add(18 * time.Microsecond)
	epoch := attr{"epoch", p.epoch}
	if p.way() == fxMultiTask {
		values := []attr{
			{"val.loss", valLoss},
			{"val.dir_acc", accuracy},
			{"val.vol_acc", round(0.9*accuracy, 4)},
			{"val.ret_rmse", round(valLoss*0.05, 6)},
		}
		p.root(fmt.Sprintf("validation_%d", p.epoch), start, end, append([]attr{epoch}, values...)...)
		p.epochSpan(at, append([]attr{{"train_loss", p.mean()}, {"val_loss", valLoss}}, values...)...)
	} else {
		p.inEpoch("validation", start, end,
			epoch,
			attr{"val_loss", valLoss},
			attr{"val_metric", accuracy},
			attr{"val.ret_rmse", round(valLoss*0.05, 6)},
		)
		p.namedEpoch(at, attr{"train_loss", p.mean()}, attr{"val_loss", valLoss}, attr{"val_metric", accuracy})
	}
	p.index = 0
	sentlog.Count(&p.truth.Validations, p.service, 1)
	sentlog.Count(&p.truth.Epochs, p.service, 1)
}

func (p *fxProgram) namedEpoch(at time.Time, results ...attr) {
	attrs := []attr{{"epoch", p.epoch}, {"total_epochs", fxEpochs}}
	for i, loss := range p.losses {
		attrs = append(attrs, attr{fmt.Sprintf("loss_at_step_%d", i), loss})
	}
	self := p.current
	if p.way() != fxNested {
		self = p.newTrace()
	}
	p.end(spanSpec{
		ref: self, scope: fxScope, name: "training_epoch", start: p.began, end: at, attrs: append(attrs, results...),
	})
}

// epochSpan records an epoch of the multi-task loop. It can have more
// attributes than the SDK keeps: the oldest ones are dropped first, and `epoch`
// is the oldest.
func (p *fxProgram) epochSpan(at time.Time, results ...attr) {
	attrs := []attr{{"epoch", p.epoch}}
	running := 0.0
	for i, loss := range p.losses {
		running += loss
		attrs = append(attrs, attr{fmt.Sprintf("loss_at_step_%d", i+1), round(running/float64(i+1), 6)})
	}
	attrs = append(attrs, results...)
	dropped := max(0, len(attrs)-fxAttributeLimit)
	span := p.root(fmt.Sprintf("epoch_%d", p.epoch), p.began, at, attrs[dropped:]...)
	span.SetDroppedAttributesCount(uint32(dropped))
}
