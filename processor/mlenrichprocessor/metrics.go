package mlenrichprocessor

import (
	"context"
	"iter"
	"slices"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatautil"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxIndexes is how many GPUs of its host a client may name.
const maxIndexes = 64

// processMetrics adds labels to points. Values, names and metrics stay.
func (e *enricher) processMetrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	b := batches.Get().(*batch)
	defer b.free()

	now := e.store.now()
	gpus := false
	for i, rm := range md.ResourceMetrics().All() {
		r := b.addResource()
		from := source{instance: e.instance, resource: int32(i), attrs: pdatautil.MapHash(rm.Resource().Attributes())}
		e.readResource(rm.Resource().Attributes(), r)
		b.rejected += r.facts.Rejected
		found, rated := r.facts.Systems, hasThroughput(rm)
		for _, sm := range rm.ScopeMetrics().All() {
			known := r.facts.Systems | e.reader.Scope(sm.Scope().Name())
			found |= known
			from.scope = sm.Scope()
			for _, m := range sm.Metrics().All() {
				known := known | e.reader.Metric(m.Name())
				found |= known
				// Before anything is added to the points: what is added may
				// change while the stream stays the same.
				meaning, ok := e.reader.MetricMeaning(known, m.Name(), m.Unit())
				switch {
				case !ok:
				case meaning.Measure == mlattr.MeasureGPUMemory:
					r.memory.read(m, &meaning)
				case !rated && rates(&meaning):
					b.readTokens(from, m, &meaning)
				}
			}
		}
		e.store.recognise(r.key, found)
	}
	for i, rm := range md.ResourceMetrics().All() {
		r := &b.resources[i]
		attrs := rm.Resource().Attributes()
		valid := validTexts(attrs)
		e.settleRun(attrs, r, e.store.recognise(r.key, 0))
		labels := e.labelsOf(attrs, r)
		for _, sm := range rm.ScopeMetrics().All() {
			known := r.facts.Systems | e.reader.Scope(sm.Scope().Name())
			for _, m := range sm.Metrics().All() {
				known := known | e.reader.Metric(m.Name())
				gpus = gpus || joinable(m.Name())
				for point, at := range points(m) {
					conflict := b.unsafe.look(point, at, valid, now)
					e.reader.Point(known, point, &b.facts)
					b.rejected += b.facts.Rejected
					e.writePoint(point, &b.facts, len(labels))
					if index, ok := b.facts.Int(mlattr.GPUIndex); ok && len(r.indexes) < maxIndexes && !slices.Contains(r.indexes, index) {
						r.indexes = append(r.indexes, index)
					}
					for _, l := range labels {
						if !labelTaken(point, l.key) {
							l.value.CopyTo(point.PutEmpty(l.key))
						}
					}
					if conflict {
						markConflict(point)
					}
				}
				b.readExemplars(m)
			}
		}
		e.seeIndexes(r)
	}
	e.correlateExemplars(b.exemplars)
	if gpus {
		e.joinGPUs(ctx, md, b)
	}
	e.addThroughput(md, b)
	e.count(ctx, b.left, b.rejected)
	e.countUnsafe(ctx, b.unsafe)
	return md, nil
}

// label is an attribute of a resource that its points carry too.
type label struct {
	key   string
	value pcommon.Value
}

// labelsOf lists the labels of a resource that has been enriched: what tells
// one run, rank and host from another, because an exporter that drops the
// resource would merge them, and what the user asks for. A value that would
// cost the series, such as text that is not UTF-8, is left out.
func (e *enricher) labelsOf(attrs pcommon.Map, r *resource) []label {
	labels := make([]label, 0, 4+len(e.labels))
	add := func(key, text string) { labels = append(labels, label{key, pcommon.NewValueStr(text)}) }
	for _, l := range [...]struct{ key, text string }{
		{mlattr.RunID, r.run.id},
		{mlattr.JobID, r.facts.Text(mlattr.JobID)},
		{mlattr.HostName, r.facts.Text(mlattr.HostName)},
	} {
		if mlattr.ValidID(l.text) {
			add(l.key, l.text)
		}
	}
	if rank, ok := r.facts.Int(mlattr.RankGlobal); ok {
		labels = append(labels, label{mlattr.RankGlobal, pcommon.NewValueInt(rank)})
	}
	for _, key := range e.labels {
		v, ok := attrs.Get(key)
		if !ok {
			continue
		}
		switch v.Type() {
		case pcommon.ValueTypeStr:
			if text, ok := mlattr.ReadText(v); ok {
				add(key, text)
			}
		case pcommon.ValueTypeDouble:
			if _, finite, _ := mlattr.ReadDouble(v); finite {
				labels = append(labels, label{key, v})
			}
		case pcommon.ValueTypeInt, pcommon.ValueTypeBool:
			labels = append(labels, label{key, v})
		}
	}
	return labels
}

// eachPoint visits the attributes of a metric's points, whatever its type.
func eachPoint(m pmetric.Metric, visit func(pcommon.Map)) {
	for attrs := range points(m) {
		visit(attrs)
	}
}

// points are the attributes and times of a metric's points, whatever its type.
func points(m pmetric.Metric) iter.Seq2[pcommon.Map, pcommon.Timestamp] {
	return func(yield func(pcommon.Map, pcommon.Timestamp) bool) {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			visit(m.Gauge().DataPoints().All(), yield)
		case pmetric.MetricTypeSum:
			visit(m.Sum().DataPoints().All(), yield)
		case pmetric.MetricTypeHistogram:
			visit(m.Histogram().DataPoints().All(), yield)
		case pmetric.MetricTypeExponentialHistogram:
			visit(m.ExponentialHistogram().DataPoints().All(), yield)
		case pmetric.MetricTypeSummary:
			visit(m.Summary().DataPoints().All(), yield)
		case pmetric.MetricTypeEmpty: // it has none
		}
	}
}

// point is what points of all types have.
type point interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
}

func visit[P point](all iter.Seq2[int, P], yield func(pcommon.Map, pcommon.Timestamp) bool) {
	for _, p := range all {
		if !yield(p.Attributes(), p.Timestamp()) {
			return
		}
	}
}
