package mlsampleprocessor

import (
	"context"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

const (
	// maxSpans is how many spans are sent together, unless a unit has more.
	maxSpans = 2048
	// maxCount limits what a span can stand for.
	maxCount = maxOneIn * maxOneIn
)

// send sends the spans that are kept. What the next component refuses for now
// remains and is sent again, within max_bytes.
func (s *sampling) send(ctx context.Context) {
	all := s.sampler.Take()
	for len(all) > 0 {
		n, spans := 0, int64(0)
		td := ptrace.NewTraces()
		for n < len(all) && (n == 0 || spans+all[n].Spans <= maxSpans) {
			spans += all[n].Spans
			if !s.cfg.DryRun {
				s.decode(&all[n], td)
			}
			n++
		}
		if td.SpanCount() > 0 {
			if err := s.next.ConsumeTraces(ctx, td); err != nil {
				if !consumererror.IsPermanent(err) {
					s.sampler.PutBack(all)
					if !s.refused {
						s.logger.Warn("The next component refuses spans. They are sent again until it accepts them.", zap.Error(err))
					}
					s.refused = true
					return
				}
				s.lose(ctx, spans, err)
			}
			s.refused = false
		}
		s.sampler.Sent(all[:n])
		all = all[n:]
	}
}

// giveUp drops what could not be sent.
func (s *sampling) giveUp() {
	rest := s.sampler.Take()
	spans := int64(0)
	for i := range rest {
		spans += rest[i].Spans
	}
	if spans > 0 && !s.cfg.DryRun {
		s.lose(context.Background(), spans, context.Canceled)
	}
	s.sampler.Sent(rest)
}

// lose counts spans that were lost.
func (s *sampling) lose(ctx context.Context, spans int64, err error) {
	s.telemetry.lost(ctx, lostRefused, spans)
	s.logger.Error("The next component refused spans; they are lost.", zap.Int64("spans", spans), zap.Error(err))
}

// decode appends the spans of a unit to td and writes how many each stands for. The
// spans above it and those that it links to are kept, too, if they are still to come.
func (s *sampling) decode(kept *sample.Kept, td ptrace.Traces) {
	own, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(kept.Encoding())
	if err != nil { // the Collector has written it itself
		s.lose(context.Background(), kept.Spans, err)
		return
	}
	var links []sample.TraceID
	present := make(map[sample.SpanID]struct{}, kept.Spans)
	parents := make(map[sample.SpanID]struct{})
	for _, rs := range own.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				present[sample.SpanID(span.SpanID())] = struct{}{}
				if !span.ParentSpanID().IsEmpty() {
					parents[sample.SpanID(span.ParentSpanID())] = struct{}{}
				}
				putCount(span.Attributes(), kept.Count)
				for _, link := range span.Links().All() {
					links = append(links, sample.TraceID(link.TraceID()))
				}
			}
		}
	}
	var above []sample.SpanID
	for parent := range parents {
		if _, ok := present[parent]; !ok {
			above = append(above, parent)
		}
	}
	s.sampler.Follow(kept.Trace, above, links)
	own.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
}

// putCount multiplies the ml.sample.count of a span, which an earlier sampler may have
// written.
func putCount(attributes pcommon.Map, count int64) {
	v, ok := attributes.GetOrPutEmpty(mlattr.SampleCount)
	if earlier, isNumber := mlattr.ReadInt(v); ok && isNumber && earlier >= 0 && earlier <= maxOneIn {
		count *= earlier
	}
	v.SetInt(min(count, maxCount))
}
