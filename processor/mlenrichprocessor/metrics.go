package mlenrichprocessor

import (
	"context"
	"slices"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatautil"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/gpujoin"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/label"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
)

// maxIndexes is how many GPUs of its host a client may name.
const maxIndexes = 64

// processMetrics adds labels to points, and metrics of its own. Values, names
// and metrics that were sent stay.
func (e *enricher) processMetrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	b := batches.Get().(*batch)
	defer b.free()

	now := e.store.now()
	for i, rm := range md.ResourceMetrics().All() {
		e.readMetrics(rm, i, b)
	}
	gpus := false
	for i, rm := range md.ResourceMetrics().All() {
		r := &b.resources[i]
		e.settleRun(rm.Resource().Attributes(), r)
		gpus = e.writePoints(rm, r, b, now) || gpus
		e.store.gpus.SeeGPUs(&r.located, r.indexes)
	}
	if gpus {
		hosts := func(resource int) string { return b.resources[resource].process.Host }
		if skipped := e.store.gpus.Join(md, hosts); skipped > 0 {
			e.store.telemetry.ProcessorMlEnrichBreakdownsSkipped.Add(ctx, int64(skipped),
				metric.WithAttributes(e.store.processor))
		}
	}
	b.points.AddTo(md, e.store.streams, b.skipped)
	e.store.count(ctx, b)
	return md, nil
}

// readMetrics reads a resource and what its metrics mean. It comes before
// anything is added to the points.
func (e *enricher) readMetrics(rm pmetric.ResourceMetrics, resource int, b *batch) {
	from := rate.Source{Instance: e.instance, Resource: resource, Attributes: pdatautil.MapHash(rm.Resource().Attributes())}
	r := e.readResource(rm.Resource().Attributes(), b)
	found, rated := r.facts.Systems, rate.HasThroughput(rm)
	for _, sm := range rm.ScopeMetrics().All() {
		ofScope := r.facts.Systems | e.reader.Scope(sm.Scope().Name())
		from.Scope = sm.Scope()
		for _, m := range sm.Metrics().All() {
			known := ofScope | e.reader.Metric(m.Name())
			found |= known
			meaning, ok := e.reader.MetricMeaning(known, m.Name(), m.Unit())
			r.trains = r.trains || ok && (meaning.Measure == table.MeasureLoss || meaning.Measure == table.MeasureSteps)
			switch {
			case !ok:
			case meaning.Measure == table.MeasureGPUMemory:
				r.memory.Read(m, &meaning)
			case !rated && rate.Usable(&meaning):
				b.points.Read(&from, m, &meaning)
			}
		}
		found |= ofScope
	}
	e.store.clients.Recognise(r.key, found)
}

// writePoints adds to the points of a resource what they and the resource
// report. It reports whether there are points that can be joined to a run.
func (e *enricher) writePoints(rm pmetric.ResourceMetrics, r *resource, b *batch, now time.Time) (gpus bool) {
	attrs := rm.Resource().Attributes()
	valid, labels := label.ValidText(attrs), e.labelsOf(attrs, r)
	for _, sm := range rm.ScopeMetrics().All() {
		ofScope := r.facts.Systems | e.reader.Scope(sm.Scope().Name())
		for _, m := range sm.Metrics().All() {
			known := ofScope | e.reader.Metric(m.Name())
			gpus = gpus || gpujoin.Joinable(m.Name())
			for sent := range mlattr.Points(m) {
				point := sent.Attributes
				conflict := b.problems.Check(&sent, valid, now)
				e.reader.Point(known, point, &b.facts)
				b.rejected += b.facts.Rejected
				// A fact whose label the client itself uses is left out.
				b.added = slices.DeleteFunc(e.appendWritten(b.added[:0], &b.facts), func(f vocabulary.Fact) bool { return label.Taken(point, f.Key) })
				putAll(point, b.added, len(labels))
				if index, ok := b.facts.IntAt(vocabulary.SlotGPUIndex); ok && len(r.indexes) < maxIndexes && !slices.Contains(r.indexes, index) {
					r.indexes = append(r.indexes, index)
				}
				for _, l := range labels {
					if !label.Taken(point, l.key) {
						l.value.CopyTo(point.PutEmpty(l.key))
					}
				}
				if conflict && !label.Taken(point, mlattr.LabelConflict) {
					point.PutBool(mlattr.LabelConflict, true)
				}
			}
		}
	}
	return gpus
}

// resourceLabel is an attribute of a resource that its points get too.
type resourceLabel struct {
	key   string
	value pcommon.Value
}

// labelsOf lists the labels of a resource that has been enriched: what tells
// one run, rank and host from another, because an exporter that drops the
// resource would merge them, and what the user asks for. A value that would
// cost the series, such as text that is not UTF-8, is left out.
func (e *enricher) labelsOf(attrs pcommon.Map, r *resource) []resourceLabel {
	labels := make([]resourceLabel, 0, 4+len(e.config.ResourceLabels))
	addID := func(key, id string) {
		if mlattr.ValidID(id) {
			labels = append(labels, resourceLabel{key, pcommon.NewValueStr(id)})
		}
	}
	addID(mlattr.RunID, r.run.ID)
	addID(mlattr.JobID, r.facts.TextAt(vocabulary.SlotJobID))
	addID(mlattr.HostName, r.process.Host)
	if rank, ok := r.facts.IntAt(vocabulary.SlotRankGlobal); ok {
		labels = append(labels, resourceLabel{mlattr.RankGlobal, pcommon.NewValueInt(rank)})
	}
	for _, key := range e.config.ResourceLabels {
		v, ok := attrs.Get(key)
		if !ok {
			continue
		}
		switch v.Type() {
		case pcommon.ValueTypeStr:
			if text, ok := mlattr.ReadText(v); ok {
				labels = append(labels, resourceLabel{key, pcommon.NewValueStr(text)})
			}
		case pcommon.ValueTypeDouble:
			if _, finite, _ := mlattr.ReadDouble(v); finite {
				labels = append(labels, resourceLabel{key, v})
			}
		case pcommon.ValueTypeInt, pcommon.ValueTypeBool:
			labels = append(labels, resourceLabel{key, v})
		}
	}
	return labels
}
