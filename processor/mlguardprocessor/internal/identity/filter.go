package identity

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// warnInterval is the least time between two warnings about one kind.
const warnInterval = 10 * time.Minute

// Filter applies one Config. It is what the instances of a component id share;
// any number of goroutines may use it.
type Filter struct {
	cfg    Config
	hasher hasher
	tables [kindCount]*table
	// age is for how many seconds what a combination is made of need not be
	// looked up again.
	age uint32

	now       func() time.Time
	start     time.Time
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue
	kinds     [kindCount]metric.MeasurementOption
	// warned is when the log last had a warning about a kind.
	warned [kindCount]atomic.Int64
}

// New returns a Filter of the component with an id. Start begins to report
// about it.
func New(cfg *Config, set component.TelemetrySettings, id component.ID) (*Filter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	seconds := uint32(cfg.Expiration / time.Second)
	f := &Filter{
		cfg: *cfg, hasher: hasher{maphash.MakeSeed()}, age: seconds / 4,
		now: time.Now, start: time.Now(), logger: set.Logger, telemetry: telemetry,
		id: attribute.String("processor", id.String()),
	}
	for k, limit := range cfg.Limits.of() {
		groups, allowance := groupsOfTable, 0
		// What a combination is made of is seen as late as it is checked again.
		expiration := seconds + f.age
		switch kind(k) {
		case kindCombination:
			groups, allowance, expiration = 1, combinationsAtOnce, seconds
		case kindStream:
			groups, allowance, expiration = 1, streamsAtOnce, seconds
		case kindService, kindInstance, kindRank:
			groups = 1
		}
		f.tables[k] = newTable(limit, groups, allowance, expiration)
		f.kinds[k] = metric.WithAttributeSet(attribute.NewSet(f.id, attribute.String("kind", kindNames[k])))
	}
	return f, nil
}

// Start begins to report how many identities are admitted.
func (f *Filter) Start(context.Context, component.Host) error {
	return errors.Join(
		f.telemetry.RegisterProcessorMlGuardIdentitiesCallback(func(_ context.Context, o metric.Int64Observer) error {
			f.observe(o, func(admitted, _ int64) int64 { return admitted })
			return nil
		}),
		f.telemetry.RegisterProcessorMlGuardIdentitiesEvictedCallback(func(_ context.Context, o metric.Int64Observer) error {
			f.observe(o, func(_, evicted int64) int64 { return evicted })
			return nil
		}),
	)
}

// Shutdown ends the reporting.
func (f *Filter) Shutdown(context.Context) error {
	f.telemetry.Shutdown()
	return nil
}

func (f *Filter) observe(o metric.Int64Observer, value func(admitted, evicted int64) int64) {
	for k, t := range f.tables {
		o.Observe(value(t.size()), f.kinds[k])
	}
}

// seconds is the time by which identities expire, always above 0.
func (f *Filter) seconds() uint32 { return uint32(f.now().Sub(f.start)/time.Second) + 1 }

// overflow counts, by kind, what lacks a label of its own.
type overflow [kindCount]int64

// report adds the counts to a metric, and warns of kinds that begin to overflow.
func (f *Filter) report(ctx context.Context, to metric.Int64Counter, counts *overflow) {
	for k, n := range counts {
		if n == 0 {
			continue
		}
		to.Add(ctx, n, f.kinds[k])
		now := f.now().UnixNano()
		last := f.warned[k].Load()
		if (last == 0 || now-last >= int64(warnInterval)) && f.warned[k].CompareAndSwap(last, now) {
			f.logger.Warn("New identities get no labels of their own: a quarter of the limit is taken, and they were not seen again, or all of it. The next warning of this kind follows after 10 minutes at the earliest.",
				zap.String("kind", kindNames[k]), zap.Int("limit", f.cfg.Limits.of()[k]))
		}
	}
}

// admitLabel reports whether a label may have a value.
func (f *Filter) admitLabel(k kind, key string, value uint64, now uint32) bool {
	group := f.hasher.text(key)
	return f.tables[k].admit(request{id: mix(group, value), group: group}, now)
}
