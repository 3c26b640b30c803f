package scenario

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	fxScope   = "fx_forecasting"
	fxBatches = 10
	fxEpochs  = 3
	// fxMicroSteps is how many losses the multi-task loop logs in a batch: with
	// ten batches an epoch logs more than the SDK's limit of attributes.
	fxMicroSteps = 14
	// fxAttributeLimit is the SDK's limit of attributes of a span.
	fxAttributeLimit = 128
)

var (
	fxPairs = []string{"EURUSD", "GBPUSD", "USDJPY", "AUDUSD"}
	fxTasks = []string{"direction", "volatility"}
)

// fx imitates two programs of the forecasting toolkit: one that names its
// service and follows the toolkit's documents, and the multi-task loop in a
// process that left service.name unset. Every span is the root of its own trace.
type fx struct {
	programs []*fxProgram
}

func newFX(settings Settings) Scenario {
	program := func(label, service string, multiTask bool) *fxProgram {
		return &fxProgram{
			label:     label,
			multiTask: multiTask,
			process:   newProcess("fx", label, settings, append(pythonSDK(), attr{"service.name", service})),
		}
	}
	return &fx{programs: []*fxProgram{
		program("fx-forecasting", "fx-forecasting", false),
		program("unknown_service", "unknown_service", true),
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

// Finish sends what the programs hold. An epoch that is not over is never sent.
func (f *fx) Finish(at time.Time) []Batch {
	var out []Batch
	for _, p := range f.programs {
		out = append(out, p.flush(at, true)...)
	}
	return out
}

// fxProgram is one training program. It does a batch a step, and between
// epochs what the toolkit does between epochs.
type fxProgram struct {
	*process
	label     string
	multiTask bool
	last      time.Time
	epoch     int
	index     int
	global    int
	began     time.Time
	losses    []float64
}

// root records a span that is a trace of its own.
func (p *fxProgram) root(name string, start, end time.Time, attrs ...attr) ptrace.Span {
	return p.end(spanSpec{ref: p.newTrace(), scope: fxScope, name: name, start: start, end: end, attrs: attrs})
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
		if p.epoch == 1 {
			clock = p.load(clock, part(0.3))
		}
	}
	final := p.index == fxBatches-1
	end := at.Add(-part(0.03))
	if final {
		// The rest of the window is the evaluation, which no span covers.
		end = clock.Add(time.Duration(0.5 * float64(at.Sub(clock))))
	}
	p.train(clock, end)
	p.index++
	if final {
		p.endEpoch(at)
	}
}

func (p *fxProgram) startEpoch(from time.Time) {
	p.epoch++
	if p.epoch > fxEpochs {
		// The program is run again. The named one tries the other loop.
		p.epoch, p.global = 1, 0
		if p.label == "fx-forecasting" {
			p.multiTask = !p.multiTask
		}
	}
	if p.epoch == 1 {
		sentlog.Count(&p.truth.Runs, p.label, 1)
	}
	p.began = from
	p.losses = p.losses[:0]
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

// loss falls over a run and jitters.
func (p *fxProgram) loss() float64 {
	progress := float64(p.global)
	p.global++
	return round(p.rand.near(0.08+0.85*math.Exp(-progress/20), 0.04), 6)
}

func (p *fxProgram) train(start, end time.Time) {
	var loss float64
	if p.multiTask {
		for range fxMicroSteps {
			loss = p.loss()
			p.losses = append(p.losses, loss)
		}
		p.global -= fxMicroSteps - 1
	} else {
		loss = p.loss()
		p.losses = append(p.losses, loss)
	}
	var span ptrace.Span
	if p.multiTask {
		step := (p.epoch-1)*fxBatches + p.index
		span = p.root(fmt.Sprintf("batch_%d", p.index), start, end,
			attr{"step", step},
			attr{"loss", loss},
			attr{"task." + fxTasks[0], round(0.6*loss, 6)},
			attr{"task." + fxTasks[1], round(0.4*loss, 6)},
		)
	} else {
		span = p.root("batch_processing", start, end,
			attr{"batch_index", p.index},
			attr{"batch_size", 256},
			attr{"loss", loss},
			attr{"task." + fxTasks[0], round(0.6*loss, 6)},
			attr{"task." + fxTasks[1], round(0.4*loss, 6)},
		)
	}
	sentlog.Count(&p.truth.Batches, p.label, 1)
	if p.rand.IntN(25) == 0 {
		p.fail(span)
	}
}

// fail marks a span as the toolkit does: two attributes and a status, no event.
func (p *fxProgram) fail(span ptrace.Span) {
	kind, message := "ValueError", "Input contains NaN"
	if p.rand.IntN(2) == 0 {
		kind, message = "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (256x42 and 40x128)"
	}
	put(span.Attributes(), []attr{{"error.type", kind}, {"error.message", message}})
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage(message)
	p.truth.Fail(sentlog.Failure{
		TraceID: span.TraceID().String(), SpanID: span.SpanID().String(), Name: span.Name(),
		ExceptionType: kind, ExceptionMessage: message,
	})
}

// endEpoch records the validation, which starts when the evaluation is over and
// takes no time, and then the epoch, which ends last.
func (p *fxProgram) endEpoch(at time.Time) {
	p.index = 0
	mean := 0.0
	for _, loss := range p.losses {
		mean += loss / float64(len(p.losses))
	}
	mean = round(mean, 6)
	valLoss := round(mean*p.rand.between(1.05, 1.15), 6)
	accuracy := round(0.5+0.3*(1-valLoss), 4)
	start := at.Add(-120 * time.Microsecond)
	end := start.Add(18 * time.Microsecond)
	if p.multiTask {
		p.root(fmt.Sprintf("validation_%d", p.epoch), start, end,
			attr{"epoch", p.epoch},
			attr{"val.loss", valLoss},
			attr{"val." + fxTasks[0], accuracy},
			attr{"val." + fxTasks[1], round(0.9*accuracy, 4)},
		)
		p.endWide(at)
	} else {
		p.root("validation", start, end,
			attr{"epoch", p.epoch},
			attr{"val_loss", valLoss},
			attr{"val_metric", accuracy},
			attr{"val.mae", round(valLoss*0.7, 6)},
		)
		attrs := []attr{{"epoch", p.epoch}, {"total_epochs", fxEpochs}}
		for i, loss := range p.losses {
			attrs = append(attrs, attr{fmt.Sprintf("loss_at_step_%d", i), loss})
		}
		attrs = append(attrs, attr{"train_loss", mean}, attr{"val_loss", valLoss}, attr{"val_metric", accuracy})
		p.root("training_epoch", p.began, at, attrs...)
	}
	sentlog.Count(&p.truth.Validations, p.label, 1)
	sentlog.Count(&p.truth.Epochs, p.label, 1)
}

// endWide records an epoch with more attributes than the SDK keeps: the oldest
// ones go first, and `epoch` is the oldest.
func (p *fxProgram) endWide(at time.Time) {
	attrs := []attr{{"epoch", p.epoch}}
	for i, loss := range p.losses {
		attrs = append(attrs, attr{fmt.Sprintf("loss_at_step_%d", i), loss})
	}
	dropped := max(0, len(attrs)-fxAttributeLimit)
	span := p.root(fmt.Sprintf("epoch_%d", p.epoch), p.began, at, attrs[dropped:]...)
	span.SetDroppedAttributesCount(uint32(dropped))
}
