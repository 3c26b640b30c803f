package mlmetricsconnector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/spans"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// firstInterval is the time between two emissions during the first
// flush_interval.
const firstInterval = time.Second

// maxKeptUpdates limits the updates and sources whose memory a reader keeps
// between requests.
const maxKeptUpdates = 8192

// metricsConnector aggregates spans and emits metrics by a timer. ConsumeTraces
// never waits for an emission.
type metricsConnector struct {
	cfg       *Config
	next      consumer.Metrics
	logger    *zap.Logger
	version   string
	telemetry *telemetry
	id        component.ID
	set       connector.Settings

	// registry connects this instance with the one that receives the clients'
	// metrics, and with the one that sends records.
	registry *instancesByID
	shared   *instances
	release  shared.Release
	// withdraw ends the publication of notices.
	withdraw func()

	// now returns the time.
	now func() time.Time

	readers  sync.Pool
	tally    *spans.Tally
	clocks   *runs.Clocks
	losses   *runs.Losses
	services *serving.Fleet
	// detectors find problems, which problems has until they end.
	detectors detect.All
	problems  *problem.Board
	// withheld is since when nothing is concluded from silence.
	withheld problem.Withheld
	prices   *price.Watched
	store    *streams.Store
	flusher  streams.Flusher

	// cancel ends an emission that exceeds the time of Shutdown.
	cancel  context.CancelFunc
	stop    chan struct{}
	stopped chan struct{}
	// watched is closed when the file of prices is no longer watched.
	watched  <-chan struct{}
	shutdown sync.Once
}

var _ connector.Traces = (*metricsConnector)(nil)

func newMetricsConnector(set connector.Settings, cfg *Config, registry *instancesByID, next consumer.Metrics) (*metricsConnector, error) {
	tel, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	c := &metricsConnector{
		cfg:       cfg,
		next:      next,
		logger:    set.Logger,
		version:   set.BuildInfo.Version,
		id:        set.ID,
		set:       set,
		registry:  registry,
		now:       time.Now,
		telemetry: tel,
		shared:    newInstances(set, cfg),
		tally:     spans.NewTally(),
		clocks:    runs.NewClocks(cfg.timeouts()),
		services:  serving.NewFleet(),
		losses:    runs.NewLosses(),
		detectors: detect.New(),
		problems:  problem.NewBoard(cfg.Shadow, detect.Causes()),
		prices:    price.NewWatched(cfg.Prices.File, set.Logger),
		readers: sync.Pool{New: func() any {
			return &spans.Reader{
				Vocabulary: mlattr.Default(), LastOfTrace: make(map[nesting.Trace]int32), Slow: cfg.SlowThreshold.Seconds(),
				GenAI: cfg.GenAIMetrics,
			}
		}},
		store: streams.NewStore(streams.Limits{
			Series:     cfg.MaxSeries,
			Runs:       cfg.MaxRuns,
			Expiration: cfg.MetricsExpiration,
		}),
	}
	c.flusher = streams.Flusher{Store: c.store, InitialZero: cfg.InitialZero, Prepare: func(scope pcommon.InstrumentationScope) {
		scope.SetName(metadata.ScopeName)
		scope.SetVersion(c.version)
	}}
	return c, nil
}

// Start starts the emissions.
func (c *metricsConnector) Start(ctx context.Context, host component.Host) error {
	// Not before: the command validate makes components without the collector's id.
	writer, err := writerOf(c.set.TelemetrySettings, c.cfg)
	if err != nil {
		return err
	}
	c.flusher.Writer = writer
	if err := c.telemetry.observe(c.store); err != nil {
		return fmt.Errorf("register the connector's telemetry: %w", err)
	}
	instances, release, err := acquire(ctx, c.registry, host, c.set, c.cfg)
	if err != nil {
		return err
	}
	c.shared, c.release = instances, release
	c.withdraw = shared.PublishNotices(c.id.String(), c.notices)
	c.store.Exclude(&c.shared.seen.Silences)
	// The context of Start ends with Start, that of emissions with Shutdown.
	ctx, c.cancel = context.WithCancel(context.Background())
	c.stop, c.stopped = make(chan struct{}), make(chan struct{})
	c.watched = c.prices.Start(c.stop)
	go c.emitByTimer(ctx)
	return nil
}

// Shutdown stops the timer, waits for it and emits once more. It does nothing
// when called again or without Start.
func (c *metricsConnector) Shutdown(ctx context.Context) (err error) {
	c.shutdown.Do(func() { err = c.end(ctx) })
	return err
}

func (c *metricsConnector) end(ctx context.Context) (err error) {
	defer c.telemetry.shutdown()
	if c.stop == nil {
		return nil
	}
	defer c.withdraw()
	defer func() { err = errors.Join(err, c.release(ctx)) }()
	defer c.cancel()
	close(c.stop)
	select {
	case <-c.stopped:
	case <-ctx.Done():
		// The goroutine ends as soon as the next component returns.
		return fmt.Errorf("an emission exceeded the time of the shutdown, so the last one is missing: %w", ctx.Err())
	}
	if err := c.emit(ctx, true); err != nil {
		return fmt.Errorf("send the last emission: %w", err)
	}
	select {
	case <-c.watched:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the file of prices did not answer in time: %w", ctx.Err())
	}
}

// Capabilities reports that the connector does not mutate traces.
func (*metricsConnector) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeTraces adds the spans of td and keeps no reference to it.
func (c *metricsConnector) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	now := c.now()
	r := c.readers.Get().(*spans.Reader)
	defer c.putBack(r)
	r.Now, r.Enriched = now.UnixNano(), mlattr.IsEnriched(ctx)
	r.Sources.From = share.SenderOf(sender.From(ctx))
	r.Loads, r.Prices = c.shared.seen.Loads.Load(), c.prices.Table()
	r.Changes.History = c.shared.recording()
	r.Read(td)
	c.shared.seen.Hosts.See(now, r.Sources.Hosts()...)
	if r.Changes.History != nil {
		r.Changes.History.See(r.Changes.Seen, now)
	}
	duplicates := c.tally.Settle(r)
	c.services.Observe(r.Served(), now)
	c.losses.Observe(r.Updates, now)
	overflowed := c.store.Apply(r.Updates, now)
	overflowed.Add(c.clocks.Observe(c.store, r.Spans(), now))
	c.telemetry.record(ctx, duplicates, r.OutOfRange, overflowed)
	c.telemetry.clamped(ctx, r.Clamped)
	c.telemetry.repaired(ctx, r.Repaired)
	return nil
}

// putBack keeps a reader's memory for the next request, unless a large request
// has made it too big.
func (c *metricsConnector) putBack(r *spans.Reader) {
	if cap(r.Updates) <= maxKeptUpdates && cap(r.Units) <= maxKeptUpdates && len(r.Sources.All) <= maxKeptUpdates {
		r.Reset()
		c.readers.Put(r)
	}
}

// emitByTimer emits every flush_interval. During the first interval it emits
// new series every second, so that after a restart series are missing, and new
// ones are zero, no longer than necessary.
func (c *metricsConnector) emitByTimer(ctx context.Context) {
	defer close(c.stopped)
	begun, first := time.Now(), true
	ticker := time.NewTicker(min(firstInterval, c.cfg.FlushInterval))
	defer ticker.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-ticker.C:
		}
		var err error
		switch early := first && time.Since(begun) < c.cfg.FlushInterval; {
		case early && c.shared.restores():
			err = c.emit(ctx, false) // the page must not say that nothing needs someone
		case early:
			err = c.flush(ctx, c.now(), nil)
		default:
			if first {
				first = false
				ticker.Reset(c.cfg.FlushInterval)
			}
			err = c.emit(ctx, false)
		}
		if err != nil {
			// Nothing is lost: the next emission includes these counts.
			c.logger.Warn("The metrics could not be sent. The next emission includes them.", zap.Error(err))
		}
	}
}

// emit sends all live series and what is concluded about runs, services and GPUs. The last emission also
// includes what a later one would have. It is not safe for concurrent use.
func (c *metricsConnector) emit(ctx context.Context, last bool) error {
	now := c.now()
	evicted := c.store.Evicted()
	c.telemetry.evicted(ctx, int64(len(evicted)))
	c.clocks.Forget(evicted)
	seen, expiration := c.shared.seen, c.cfg.MetricsExpiration
	c.clocks.Expect(seen.Ranks, seen.Holders(), now)
	facts, stuck := seen.Settle(c.clocks.Services(c.store.Owners()), now)
	over := c.clocks.Train(seen.Ranks, c.losses, c.store, expiration, now)
	e := runs.Emission{Now: now, Last: last, Withheld: c.withheld.Settle(now), Expiration: expiration, GPUs: facts, Stuck: stuck}
	all, owners, more := c.clocks.Advance(c.store, &e)
	over.Add(more)
	over.Add(facts.Write(c.store, now))
	c.seeAttempts(all, now)
	over.Add(c.services.Settle(c.store, expiration, now))
	c.problems.Withhold(e.Withheld)
	c.detectors.Detect(&detect.State{
		Now: now, Limits: c.cfg.timeouts(), Runs: all, Losses: c.losses.Settle(c.clocks.Run, expiration, now),
		GPUs: facts, Owners: owners, Services: c.services,
	}, c.problems.Report)
	over.Add(c.settleProblems(ctx, facts, now))
	c.telemetry.record(ctx, 0, 0, over)
	c.flusher.Last = last
	return c.flush(ctx, now, evicted)
}

// flush sends all live series.
func (c *metricsConnector) flush(ctx context.Context, now time.Time, evicted streams.Evicted) error {
	c.flusher.Pass = func(md pmetric.Metrics) error { return c.next.ConsumeMetrics(ctx, md) }
	expired, err := c.flusher.Flush(now, evicted)
	c.telemetry.expired(ctx, expired)
	return err
}
