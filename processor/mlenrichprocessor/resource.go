package mlenrichprocessor

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/gpujoin"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/run"
)

// resource is a resource of a batch and what is known about it.
type resource struct {
	facts   vocabulary.Facts
	process run.Process
	key     string // of process
	run     run.Run
	// located is where the process is.
	located gpujoin.Process
	// indexes are the GPUs that the process's metrics name, and memory is what
	// they report about its allocator.
	indexes []int64
	memory  gpujoin.Allocator
	// trains is true if there is telemetry of its training, with steps if there are spans
	// of these, and printed if all is made of what it prints.
	trains, steps, printed bool
}

// readResource adds canonical names to the next resource of a batch, and reads
// what tells its process from others.
func (e *enricher) readResource(attrs pcommon.Map, b *batch) *resource {
	b.resources = slices.Grow(b.resources, 1)[:len(b.resources)+1] // with the memory of an earlier one
	r := &b.resources[len(b.resources)-1]
	e.reader.Resource(attrs, &r.facts)
	e.config.Training.AddTraining(&r.facts)
	rate.AddJobTokens(&r.facts)
	// A run id under another name gives way to a training run: an ml_enrich after
	// this one would otherwise find another run than this one.
	if id, _ := r.facts.NamedRun(); id != "" {
		if named := r.facts.At(vocabulary.SlotRunID); named != nil && !named.Own {
			named.Text = id
		}
	}
	e.write(attrs, &r.facts, b)
	b.rejected += r.facts.Rejected
	r.process = run.Read(attrs, &r.facts)
	r.key = r.process.Key()
	return r
}

// settleRun finds the resource's run, given every client that its process was
// recognised as, adds it to the resource, and remembers where the process is.
// It is called when all resources of a request have been read: one process may
// occur in several.
func (e *enricher) settleRun(attrs pcommon.Map, r *resource) {
	r.run = run.Of(&r.facts, &r.process, r.key, e.store.clients.Recognise(r.key, 0))
	before := r.run.ID
	if r.printed {
		e.findSender(attrs, r)
	} else if r.trains {
		e.store.trainers.See(r.run, &r.process, attrs, r.steps)
	}
	if r.run.ID != "" && r.facts.At(vocabulary.SlotRunID) == nil {
		attrs.PutStr(mlattr.RunID, r.run.ID)
		if r.run.Inferred {
			attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	e.store.gpus.Describe(&r.located, attrs, &r.facts, r.run.ID, r.run.Inferred, r.key, &r.memory)
	if before != r.run.ID {
		e.store.gpus.Forget(&r.located, before)
	}
	e.store.gpus.See(&r.located)
}

// findSender gives a resource of printed lines the run that its program sends, if it is known
// to send any.
func (e *enricher) findSender(attrs pcommon.Map, r *resource) {
	sent, ok := e.store.trainers.At(&r.process, attrs)
	if !ok || !r.run.Inferred || sent.ID == r.run.ID {
		return
	}
	r.run = sent
	attrs.PutStr(mlattr.RunID, sent.ID)
	attrs.PutBool(mlattr.RunInferred, sent.Inferred)
}
