package mlenrichprocessor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/gpujoin"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/route"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/run"
)

// store is what the traces, metrics and logs instances of one component id
// know together. Each part locks itself.
type store struct {
	now func() time.Time

	clients  *run.Clients
	trainers *run.Trainers
	keys     *correlate.Store
	gpus     *gpujoin.Index
	routes   *route.GPUs
	streams  *rate.Streams

	telemetry *metadata.TelemetryBuilder
	processor attribute.KeyValue
	// withdraw ends the publication of notices.
	withdraw func()
}

func newStore(set component.TelemetrySettings, id component.ID) (*store, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	s := &store{now: time.Now, telemetry: telemetry, processor: attribute.String("processor", id.String())}
	now := func() time.Time { return s.now() }
	s.clients = run.NewClients(now)
	s.trainers = run.NewTrainers(now)
	s.keys = correlate.NewStore(now, correlate.DefaultLimits())
	s.gpus = gpujoin.NewIndex(now)
	s.routes = route.NewGPUs(now)
	s.streams = rate.NewStreams(now)
	return s, nil
}

// Start begins to report the store's size.
func (s *store) Start(_ context.Context, host component.Host) error {
	s.withdraw = shared.StateOf(host).PublishNotices(s.processor.Value.AsString(), s.notices)
	return errors.Join(
		s.telemetry.RegisterProcessorMlEnrichStoreEntriesCallback(s.observing(func(size cache.Size) int64 { return int64(size.Entries) })),
		s.telemetry.RegisterProcessorMlEnrichStoreEvictionsCallback(s.observing(func(size cache.Size) int64 { return size.Evicted })),
		s.telemetry.RegisterProcessorMlEnrichRequestsJoinedCallback(func(_ context.Context, o metric.Int64Observer) error {
			judged, _ := s.keys.Judged()
			o.Observe(judged[correlate.RepeatedID], metric.WithAttributes(s.processor, attribute.String("reason", mlattr.EvidenceResponseID)))
			o.Observe(judged[correlate.RepeatedTimes], metric.WithAttributes(s.processor, attribute.String("reason", mlattr.EvidenceTimes)))
			return nil
		}),
	)
}

// Shutdown ends the reporting.
func (s *store) Shutdown(context.Context) error {
	s.withdraw()
	s.telemetry.Shutdown()
	return nil
}

// observing observes a value of each index.
func (s *store) observing(value func(cache.Size) int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		for _, size := range s.sizes() {
			o.Observe(value(size), metric.WithAttributes(s.processor, attribute.String("index", size.Index)))
		}
		return nil
	}
}

func (s *store) sizes() []cache.Size {
	return append(s.keys.Sizes(), s.clients.Size(), s.trainers.Size(), s.gpus.Size(), s.routes.Size(), s.streams.Size())
}

// uncounted says why spans do not count, by the verdict.
var uncounted = [...]struct{ key, what, why, fix string }{
	correlate.RepeatedID:    {"joined by id", reportedTwice, "Another instrumentation of the service reports the same response id at the same time.", fixTwice},
	correlate.RepeatedTimes: {"joined by times", reportedTwice, "Another instrumentation of the process reports the same model and usage at the same time.", fixTwice},
	correlate.InChain:       {"in a chain", alike, "Spans above or below them report the same requests.", ""},
	correlate.Unstated:      {"unstated", alike, "They name a model, and state neither an operation (gen_ai.operation.name) nor tokens.", ""},
}

const (
	reportedTwice = "Requests to models that were reported twice, and count once: "
	alike         = "Spans that look like requests to models, and do not count: "
	fixTwice      = "Set ml.usage.counted to true on the spans of an instrumentation that has requests of its own, before ml_enrich."
)

// notices returns of which scopes requests were reported twice, or no span counts that looks
// like one, and how many entries of each index were removed because it was full.
func (s *store) notices() (all []shared.Notice) {
	_, scopes := s.keys.Judged()
	for scope, judged := range scopes {
		for verdict, of := range uncounted {
			if n := judged[verdict]; n > 0 && (of.what == reportedTwice || judged[correlate.Counts] == 0) {
				all = append(all, shared.Notice{Key: of.key + " " + scope, Kind: "uncounted", Count: n, What: of.what + cmp.Or(scope, "no scope"), Why: of.why, Fix: of.fix})
			}
		}
	}
	for _, size := range s.sizes() {
		if size.Evicted > 0 {
			all = append(all, shared.Notice{
				Key: "evicted " + size.Index, Kind: "limit", Count: size.Evicted,
				What: "What telemetry has in common: the index of " + size.Index,
				Why:  "The index is full, so its oldest entries were removed early.",
				Fix:  "Send a part of the clients to another collector.",
			})
		}
	}
	return all
}
