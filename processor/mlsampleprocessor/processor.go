package mlsampleprocessor

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// decideEvery is how often it is decided what has waited long enough.
const decideEvery = 250 * time.Millisecond

// sampling is a traces instance.
type sampling struct {
	cfg       *Config
	id        component.ID
	sampler   *sample.Sampler
	next      consumer.Traces
	logger    *zap.Logger
	now       func() time.Time
	telemetry *metadata.TelemetryBuilder
	// self is the attribute of the instance's own metrics, left counts what notices say.
	self     attribute.KeyValue
	left     shared.Tally
	withdraw func()

	of instancesOfID

	// refused reports whether the next component refused the last spans for now. Only
	// the sending goroutine uses it.
	refused bool
	sending shared.Loop
	// requests has memory of requests.
	requests sync.Pool
}

func newSampling(set processor.Settings, cfg *Config, next consumer.Traces, of instancesOfID) (*sampling, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	s := &sampling{
		cfg: cfg, id: set.ID, sampler: sample.New(cfg.Config),
		next: next, logger: set.Logger, now: time.Now, of: of,
		telemetry: telemetry, self: attribute.String("processor", set.ID.String()), withdraw: func() {},
	}
	s.requests.New = func() any { return &request{reader: reader{vocabulary: vocabulary.Default()}} }
	return s, telemetry.RegisterProcessorMlSampleBytesWaitingCallback(shared.Gauge(s.sampler.Bytes, s.with()))
}

// Capabilities reports that the processor does not change what it gets: it sends
// copies.
func (*sampling) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start begins to decide.
func (s *sampling) Start(ctx context.Context, host component.Host) error {
	if err := s.of.Start(ctx, host); err != nil {
		return err
	}
	s.of.Shared.samplers.Store(s.sampler, nil)
	s.withdraw = shared.StateOf(host).PublishNotices(s.id.String(), s.notices)
	s.sending.Start(decideEvery, decideEvery, func(ctx context.Context) {
		if s.sampler.Tick(s.now()) {
			s.send(ctx, false)
		}
		s.count(ctx)
	})
	return nil
}

// Shutdown decides everything that waits and sends what is kept. If ctx ends first,
// what is being sent is lost and counted.
func (s *sampling) Shutdown(ctx context.Context) error {
	defer s.telemetry.Shutdown()
	defer s.withdraw()
	if s.of.Shared == nil {
		return nil
	}
	s.sending.Finish(ctx)
	s.of.Shared.samplers.Delete(s.sampler)
	s.sampler.DecideAll(s.now())
	s.send(ctx, true)
	s.count(ctx)
	return s.of.Shutdown(ctx)
}

// ConsumeTraces lets spans wait for the decision about their step or call. With
// dry_run it also passes them on. It changes nothing and keeps only copies.
func (s *sampling) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	r := s.requests.Get().(*request)
	defer r.free(&s.requests)
	r.assign(s.sampler, td, s.now())
	if s.cfg.DryRun {
		r.addCounts(s.sampler)
		return s.next.ConsumeTraces(ctx, td)
	}
	return r.addEncoded(s.sampler, td)
}

const (
	// maxSpans is how many spans are sent together, unless a unit has more.
	maxSpans = 2048
	// maxCount limits what a span can stand for.
	maxCount = maxOneIn * maxOneIn
)

// send sends the spans that are kept. What the next component refuses for now
// remains and is sent again, within max_bytes, unless it is the last time.
func (s *sampling) send(ctx context.Context, last bool) {
	all := s.sampler.Out()
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
				if !last && !consumererror.IsPermanent(err) {
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
		s.sampler.Sent(n)
		all = all[n:]
	}
}

// lose counts spans that were lost.
func (s *sampling) lose(ctx context.Context, spans int64, err error) {
	s.lost(ctx, lostRefused, spans)
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
	present, above := make(map[sample.SpanID]bool, kept.Spans), make(map[sample.SpanID]bool)
	for _, rs := range own.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				present[sample.SpanID(span.SpanID())] = true
				above[sample.SpanID(span.ParentSpanID())] = true
				putCount(span.Attributes(), kept.Count)
				for _, link := range span.Links().All() {
					links = append(links, sample.TraceID(link.TraceID()))
				}
			}
		}
	}
	missing := mlattr.Where(maps.Keys(above), func(id sample.SpanID) bool { return id != sample.SpanID{} && !present[id] })
	s.sampler.Follow(kept.Trace, missing, links)
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

// Values of reason in the metric of lost spans.
const (
	lostOverflow = "overflow"
	lostRefused  = "refused"
)

// early is the reason for units that were decided early, for notices.
const early = "early"

func (s *sampling) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(attributes, s.self)...))
}

// count adds what was decided since the previous call.
func (s *sampling) count(ctx context.Context) {
	counts := s.sampler.Counts()
	for kind := range sample.Kinds {
		for reason := range sample.Reasons {
			if n := counts.Units[kind][reason]; n > 0 {
				s.telemetry.ProcessorMlSampleUnits.Add(ctx, n,
					s.with(attribute.String("kind", kind.String()), attribute.String("reason", reason.String())))
			}
		}
	}
	for outcome, n := range map[string]int64{"kept": counts.Kept, "dropped": counts.Dropped} {
		if n > 0 {
			s.telemetry.ProcessorMlSampleSpans.Add(ctx, n, s.with(attribute.String("outcome", outcome)))
		}
	}
	if counts.Early > 0 {
		s.telemetry.ProcessorMlSampleUnitsEarly.Add(ctx, counts.Early, s.with())
		s.left.Add(early, counts.Early)
	}
	if counts.Overflow > 0 {
		s.lost(ctx, lostOverflow, counts.Overflow)
	}
}

// lost counts lost spans.
func (s *sampling) lost(ctx context.Context, reason string, spans int64) {
	s.telemetry.ProcessorMlSampleSpansLost.Add(ctx, spans, s.with(attribute.String("reason", reason)))
	s.left.Add(reason, spans)
}

// notices returns how many spans were lost, and how many units did not wait.
func (s *sampling) notices() []shared.Notice {
	return s.left.Notices(func(reason string) (shared.Notice, bool) {
		n := shared.Notice{Kind: "limit", Fix: fmt.Sprintf("%s: {max_bytes: %d}", s.id.String(), 2*s.cfg.MaxBytes)}
		switch reason {
		case lostRefused:
			n.What, n.Why = "Spans that were to be stored", "The next component refused them; the log says why."
			n.Fix = "Give its exporter a longer sending_queue."
		case lostOverflow:
			n.What = "Spans of steps and calls"
			n.Why = fmt.Sprintf("The next component refused spans, or was slow, until max_bytes (%d) was reached.", s.cfg.MaxBytes)
		default:
			n.What = "Late spans of steps and calls"
			n.Why = fmt.Sprintf("The steps and calls were decided before wait was over, because max_bytes (%d) was reached.", s.cfg.MaxBytes)
		}
		return n, true
	})
}
