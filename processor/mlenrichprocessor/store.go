package mlenrichprocessor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// How much the store remembers. Full of ids of 36 bytes it takes about 70 MB.
const (
	maxTraces    = 32768
	maxSpans     = 65536
	maxJoins     = 32768
	maxResources = 4096
	maxRuns      = 8192

	// keyAge is how long the keys of a trace or request outlive their last
	// use.
	keyAge = 15 * time.Minute
	// resourceAge is how long it is remembered which client a resource is.
	resourceAge = time.Hour
	// liveAge is how long a run counts as alive after its last telemetry. A
	// GPU is only joined to a run that is.
	liveAge = 5 * time.Minute
)

// store is what the traces, metrics and logs instances of one component id
// know together. It holds no pdata, and its lock is never held while any is
// touched.
type store struct {
	now func() time.Time

	mu        sync.Mutex
	traces    *bounded[[16]byte, agreement]
	spans     *bounded[spanKey, keySet]
	joins     *bounded[joinKey, agreement]
	resources *bounded[string, mlattr.System]
	runs      *bounded[place, liveRuns]

	telemetry *metadata.TelemetryBuilder
	processor attribute.KeyValue
}

func newStore(set component.TelemetrySettings, id component.ID) (*store, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	s := &store{now: time.Now, telemetry: telemetry, processor: attribute.String("processor", id.String())}
	var errs [5]error
	s.traces, errs[0] = newBounded[[16]byte, agreement](maxTraces, keyAge)
	s.spans, errs[1] = newBounded[spanKey, keySet](maxSpans, keyAge)
	s.joins, errs[2] = newBounded[joinKey, agreement](maxJoins, keyAge)
	s.resources, errs[3] = newBounded[string, mlattr.System](maxResources, resourceAge)
	s.runs, errs[4] = newBounded[place, liveRuns](maxRuns, liveAge)
	return s, errors.Join(errs[:]...)
}

// Start begins to report the store's size.
func (s *store) Start(context.Context, component.Host) error {
	return errors.Join(
		s.telemetry.RegisterProcessorMlEnrichStoreEntriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			s.report(o, func(size int, _ int64) int64 { return int64(size) })
			return nil
		}),
		s.telemetry.RegisterProcessorMlEnrichStoreEvictionsCallback(func(_ context.Context, o metric.Int64Observer) error {
			s.report(o, func(_ int, evicted int64) int64 { return evicted })
			return nil
		}),
	)
}

// Shutdown ends the reporting.
func (s *store) Shutdown(context.Context) error {
	s.telemetry.Shutdown()
	return nil
}

func (s *store) report(o metric.Int64Observer, value func(size int, evicted int64) int64) {
	type part struct {
		name    string
		size    int
		evicted int64
	}
	s.mu.Lock()
	parts := [...]part{
		{"joins", s.joins.len(), s.joins.evicted},
		{"resources", s.resources.len(), s.resources.evicted},
		{"runs", s.runs.len(), s.runs.evicted},
		{"spans", s.spans.len(), s.spans.evicted},
		{"traces", s.traces.len(), s.traces.evicted},
	}
	s.mu.Unlock()
	for _, p := range parts {
		o.Observe(value(p.size, p.evicted), metric.WithAttributes(s.processor, attribute.String("index", p.name)))
	}
}

func (s *store) join(agreements map[joinKey]*agreement) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, batch := range agreements {
		known := s.joins.find(key, now)
		if known == nil {
			key.id = strings.Clone(key.id)
			known = s.joins.ensure(key, now)
		}
		known.merge(batch)
		*batch = *known
	}
}

func (s *store) joinTraces(traces map[[16]byte]*traceState) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, batch := range traces {
		known := s.traces.find(id, now)
		if known == nil {
			if batch.empty() {
				continue
			}
			known = s.traces.ensure(id, now)
		}
		known.merge(&batch.agreement)
		batch.agreement = *known
	}
}

func (s *store) ancestors(wanted map[spanKey]*keySet) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range wanted {
		if known := s.spans.find(key, now); known != nil {
			found := *known
			wanted[key] = &found
		}
	}
}

func (s *store) remember(spans map[spanKey]keySet) {
	// The strings are not cloned: a decoded request has each on its own, so
	// that keeping one keeps nothing else, and this is once per span.
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, keys := range spans {
		*s.spans.ensure(key, now) = keys
	}
}

// lookup is what a log record can learn: what its span hands down, and what
// its trace agrees about.
func (s *store) lookup(spans map[spanKey]*keySet, traces map[[16]byte]*agreement) {
	s.ancestors(spans)
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range traces {
		if known := s.traces.find(id, now); known != nil {
			found := *known
			traces[id] = &found
		}
	}
}

// recognise remembers which clients a process was found to be, and returns
// all that were found so far: what a trace's spans gave away holds for the
// metrics and logs of the same process.
func (s *store) recognise(process string, found mlattr.System) mlattr.System {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.resources.find(process, now)
	if known == nil {
		if found == 0 {
			return 0
		}
		known = s.resources.ensure(process, now)
	}
	*known |= found
	return *known
}
