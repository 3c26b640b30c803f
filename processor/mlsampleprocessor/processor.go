package mlsampleprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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
	telemetry *telemetry
	now       func() time.Time

	registry *shared.Registry[*instances]
	joined   *instances
	release  shared.Release

	// refused reports whether the next component refused the last spans for now. Only
	// the sending goroutine uses it.
	refused bool
	cancel  context.CancelFunc
	// stop ends the sending goroutine, done is closed when it has ended. Both are nil
	// before Start.
	stop, done chan struct{}
	// requests has memory of requests.
	requests sync.Pool
}

func newSampling(set processor.Settings, cfg *Config, next consumer.Traces, registry *shared.Registry[*instances]) (*sampling, error) {
	s := &sampling{
		cfg: cfg, id: set.ID, sampler: sample.New(cfg.Config),
		next: next, logger: set.Logger, now: time.Now, registry: registry,
	}
	s.requests.New = func() any { return newRequest() }
	var err error
	s.telemetry, err = newTelemetry(set, cfg.MaxBytes, s.sampler)
	return s, err
}

// Capabilities reports that the processor does not change what it gets: it sends
// copies.
func (*sampling) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start begins to decide.
func (s *sampling) Start(ctx context.Context, host component.Host) (err error) {
	if s.joined, s.release, err = s.registry.Acquire(ctx, host, s.id, newInstances); err != nil {
		return err
	}
	s.joined.add(s.sampler)
	s.telemetry.start(host)
	background, cancel := context.WithCancel(context.Background())
	s.cancel, s.stop, s.done = cancel, make(chan struct{}), make(chan struct{})
	go s.run(background)
	return nil
}

// run decides and sends until Shutdown.
func (s *sampling) run(ctx context.Context) {
	defer close(s.done)
	ticker := time.NewTicker(decideEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			if s.sampler.Tick(s.now()) {
				s.send(ctx)
			}
			s.telemetry.count(ctx, s.sampler)
		}
	}
}

// Shutdown decides everything that waits and sends what is kept. If ctx ends first,
// what is being sent is lost and counted.
func (s *sampling) Shutdown(ctx context.Context) error {
	defer s.telemetry.shutdown()
	if s.stop == nil {
		return nil
	}
	close(s.stop)
	defer context.AfterFunc(ctx, s.cancel)()
	<-s.done
	s.joined.remove(s.sampler)
	s.sampler.DecideAll(s.now())
	s.send(ctx)
	s.giveUp()
	s.telemetry.count(ctx, s.sampler)
	s.cancel()
	return s.release(ctx)
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
