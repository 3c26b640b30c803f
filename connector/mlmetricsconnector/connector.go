package mlmetricsconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/spans"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/admission"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// firstInterval is the time between two emissions during the first
// flush_interval.
const firstInterval = time.Second

// metricsConnector aggregates spans and emits metrics by a timer. ConsumeTraces
// never waits for an emission.
type metricsConnector struct {
	*conclusions
	next consumer.Metrics
	// withdraw ends the publication of notices.
	withdraw func()
	// unguarded reports whether spans came while nothing admitted their identities, though
	// the configuration names what does.
	unguarded atomic.Bool

	readers sync.Pool
	counts  counting
	prices  *price.File
	looks   shared.Loop
	flusher streams.Flusher

	// cancel ends an emission that exceeds the time of Shutdown.
	cancel   context.CancelFunc
	stop     chan struct{}
	emitting sync.WaitGroup
	shutdown sync.Once
}

func newMetricsConnector(set connector.Settings, cfg *Config, registry *instancesByID, next consumer.Metrics) (*metricsConnector, error) {
	tel, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	c := &metricsConnector{
		conclusions: newConclusions(newMember(set, cfg, registry), tel),
		next:        next,
		prices:      price.NewFile(cfg.Prices.File, set.Logger),
	}
	c.Shared = newInstances(set, cfg)
	c.counts.of, c.counts.tally = c.conclusions, spans.NewTally()
	c.readers.New = func() any {
		return spans.New(spans.Options{GenAI: cfg.GenAIMetrics, SpanMetrics: cfg.SpanMetrics, Seed: c.counts.tally.Seed})
	}
	c.flusher = streams.Flusher{Store: c.store, InitialZero: cfg.InitialZero, Prepare: func(scope pcommon.InstrumentationScope) {
		scope.SetName(metadata.ScopeName)
		scope.SetVersion(set.BuildInfo.Version)
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
	c.writer, c.flusher.Writer = writer, writer
	if err := c.telemetry.observe(c.store); err != nil {
		return fmt.Errorf("register the connector's telemetry: %w", err)
	}
	if err := c.member.Start(ctx, host); err != nil {
		return err
	}
	if err := c.counts.start(ctx, host, &c.flusher); err != nil {
		return errors.Join(err, c.member.Shutdown(ctx))
	}
	c.state = shared.StateOf(host)
	c.withdraw = c.state.PublishNotices(c.set.ID.String(), c.notices)
	c.store.Exclude(&c.Shared.seen.Silences)
	// The context of Start ends with Start, that of emissions with Shutdown.
	ctx, c.cancel = context.WithCancel(context.Background())
	c.stop = make(chan struct{})
	c.prices.Look()
	c.looks.Start(price.CheckPrices, price.CheckPrices, func(context.Context) { c.prices.Look() })
	c.emitting.Go(func() { c.emitByTimer(ctx) })
	return nil
}

// Shutdown stops the timer, waits for it and emits once more. It does nothing
// when called again or without Start.
func (c *metricsConnector) Shutdown(ctx context.Context) (err error) {
	c.shutdown.Do(func() { err = c.end(ctx) })
	return err
}

func (c *metricsConnector) end(ctx context.Context) (err error) {
	defer c.telemetry.builder.Shutdown()
	if c.stop == nil {
		return nil
	}
	defer c.withdraw()
	defer func() {
		c.counts.ending.Store(true)
		c.counts.changes.Add(1)
		err = errors.Join(err, c.counts.close(ctx), c.member.Shutdown(ctx))
	}()
	defer c.cancel()
	defer c.looks.Finish(ctx)
	close(c.stop)
	if err := shared.Await(ctx, c.emitting.Wait); err != nil {
		// The goroutine ends as soon as the next component returns.
		return fmt.Errorf("an emission exceeded the time of the shutdown, so the last one is missing: %w", err)
	}
	if err := c.emit(ctx, true); err != nil {
		return fmt.Errorf("send the last emission: %w", err)
	}
	return nil
}

// ConsumeTraces adds the spans of td and keeps no reference to it.
func (c *metricsConnector) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	now := c.now()
	replaced := c.admit(ctx, td)
	r := c.readers.Get().(*spans.Reader)
	defer func() {
		if r.Reset() { // unless a large request has made it too big
			c.readers.Put(r)
		}
	}()
	r.Read(ctx, td, spans.Request{
		Now: now, From: share.SenderOf(sender.From(ctx)), Replaced: &replaced,
		Live: c.store.Live, Loads: c.Shared.seen.Loads.Load(), Prices: c.prices.Table(), History: c.Shared.recording(),
	})
	c.Shared.seen.Hosts.See(now, r.Hosts()...)
	duplicates := c.counts.tally.Settle(r)
	c.services.Observe(r.Served(), now)
	c.losses.Observe(r.Updates(), now)
	c.store.Apply(r.Updates(), now)
	c.store.Apply(r.Durations(), now)
	c.clocks.Observe(c.store, r.Spans(), now)
	c.telemetry.record(ctx, duplicates, r.Skipped, &c.store.Overflowed)
	c.counts.changes.Add(1)
	return nil
}

// admit returns what stands for spans with identities that are not admitted.
func (c *metricsConnector) admit(ctx context.Context, td ptrace.Traces) (none admission.Replaced) {
	if c.cfg.Identities == nil {
		return none
	}
	if of := c.state.IdentitiesOf(*c.cfg.Identities); of != nil {
		return of.Admit(ctx, td)
	}
	if !c.unguarded.Swap(true) {
		c.set.Logger.Error("Every identity becomes a label: " + c.unguardedWhy())
	}
	return none
}

func (c *metricsConnector) unguardedWhy() string {
	return fmt.Sprintf(`"identities" is %q, must be the id of an ml_guard with the section identities that is in a pipeline, and service::extensions must have ml_state or ml_guard.`, c.cfg.Identities)
}

// emitByTimer emits every flush_interval. During the first interval it emits
// new series every second, so that after a restart series are missing, and new
// ones are zero, no longer than necessary.
func (c *metricsConnector) emitByTimer(ctx context.Context) {
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
		case early && c.Shared.restores():
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
			c.set.Logger.Warn("The metrics could not be sent. The next emission includes them.", zap.Error(err))
		}
	}
}

// emit sends all live series and what is concluded about runs, services and GPUs. The last emission also
// includes what a later one would have. It is not safe for concurrent use.
func (c *metricsConnector) emit(ctx context.Context, last bool) error {
	now := c.now()
	c.counts.concluding.Lock()
	evicted := c.conclude(ctx, now, last)
	c.counts.concluding.Unlock()
	c.flusher.Last = last
	return c.flush(ctx, now, evicted)
}

// flush sends all live series.
func (c *metricsConnector) flush(ctx context.Context, now time.Time, evicted streams.Evicted) error {
	c.flusher.Pass = func(md pmetric.Metrics) error { return c.next.ConsumeMetrics(ctx, md) }
	expired, err := c.flusher.Flush(now, evicted)
	c.telemetry.count(ctx, c.telemetry.builder.ConnectorMlMetricsStreamsExpired, expired)
	return err
}

// notices returns how often a limit was reached, whether prices are missing, and what
// is withheld.
func (c *metricsConnector) notices() []shared.Notice {
	var unguarded []shared.Notice
	if c.unguarded.Load() {
		unguarded = []shared.Notice{{Key: "identities", Kind: "limit", What: "The limits of identities", Why: c.unguardedWhy(), Fix: "service: {extensions: [ml_state]}"}}
	}
	return slices.Concat(unguarded, c.withheld.Notices(c.now(), c.state.LastRefusal()), c.prices.Notices(c.set.ID.String()), c.telemetry.notices(c.cfg, c.set.ID.String()))
}
