package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// warnInterval is the shortest time between two warnings about one kind.
const warnInterval = 10 * time.Minute

// Filter applies one Config. All instances with one component id share it. It
// is safe for concurrent use.
type Filter struct {
	cfg    Config
	hasher hasher
	tables [kindCount]*table
	// age is the time in seconds after which the parts of an admitted
	// combination are looked up again.
	age uint32

	now       func() time.Time
	start     time.Time
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	component component.ID
	id        attribute.KeyValue
	kinds     [kindCount]metric.MeasurementOption
	// warned is the time of the last warning about a kind.
	warned [kindCount]atomic.Int64
	// refused counts by kind what was not admitted.
	refused  shared.Tally
	withdraw func()
}

// New returns a Filter for the component with an id. It emits no telemetry
// before Start.
func New(cfg *Config, set component.TelemetrySettings, id component.ID) (*Filter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	seconds := uint32(cfg.Expiration / time.Second)
	f := &Filter{
		cfg: *cfg, hasher: hasher{maphash.MakeSeed()}, age: seconds / 4,
		now: time.Now, start: time.Now(), logger: set.Logger, telemetry: telemetry,
		component: id, id: attribute.String("processor", id.String()),
	}
	for k, limit := range cfg.Limits.of() {
		groups, allowance, maxBytes := groupsOfTable, 0, int64(0)
		// The parts of a combination are looked up up to age seconds late.
		expiration := seconds + f.age
		switch kind(k) {
		case kindCombination:
			groups, allowance, maxBytes, expiration = 1, combinationsAtOnce, cfg.ScrapeBytes, seconds
		case kindStream:
			groups, allowance, maxBytes, expiration = 1, streamsAtOnce, cfg.ScrapeBytes, seconds
		case kindService, kindInstance, kindRank:
			groups = 1
		}
		f.tables[k] = newTable(limit, groups, allowance, maxBytes, expiration)
		f.kinds[k] = metric.WithAttributeSet(attribute.NewSet(f.id, attribute.String("kind", kindNames[k])))
	}
	return f, nil
}

// Start registers the telemetry of the number of admitted identities, and publishes
// what is not admitted.
func (f *Filter) Start(_ context.Context, host component.Host) error {
	state := shared.StateOf(host)
	notices, identities := state.PublishNotices(f.id.Value.AsString(), f.notices), state.PublishIdentities(f.component, f)
	f.withdraw = func() { notices(); identities() }
	return errors.Join(
		f.telemetry.RegisterProcessorMlGuardIdentitiesCallback(
			f.observing(func(admitted, _ int64) int64 { return admitted })),
		f.telemetry.RegisterProcessorMlGuardIdentitiesEvictedCallback(
			f.observing(func(_, evicted int64) int64 { return evicted })),
		f.telemetry.RegisterProcessorMlGuardLimitUseCallback(func(_ context.Context, o metric.Float64Observer) error {
			for k, t := range f.tables {
				o.Observe(t.use(f.seconds()), f.kinds[k])
			}
			return nil
		}),
	)
}

// Shutdown unregisters what Start has registered.
func (f *Filter) Shutdown(context.Context) error {
	f.withdraw()
	f.telemetry.Shutdown()
	return nil
}

func (f *Filter) observing(value func(admitted, evicted int64) int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		for k, t := range f.tables {
			o.Observe(value(t.size()), f.kinds[k])
		}
		return nil
	}
}

// seconds returns the time since the start in seconds, by which identities
// expire. It is always above 0.
func (f *Filter) seconds() uint32 { return uint32(f.now().Sub(f.start)/time.Second) + 1 }

// overflow counts spans or points with an identity that was not admitted, by
// kind.
type overflow [kindCount]int64

// report adds the counts to a metric, and logs a warning for each kind with a
// count above zero, at most one in warnInterval.
func (f *Filter) report(ctx context.Context, to metric.Int64Counter, counts *overflow) {
	for k, n := range counts {
		if n == 0 {
			continue
		}
		to.Add(ctx, n, f.kinds[k])
		f.refused.Add(kindNames[k], n)
		now := f.now().UnixNano()
		last := f.warned[k].Load()
		if (last == 0 || now-last >= int64(warnInterval)) && f.warned[k].CompareAndSwap(last, now) {
			f.logger.Warn("New identities are not admitted: the limit is reached, or a quarter of it is used and they were not seen again. This warning appears at most once in 10 minutes for each kind.",
				zap.String("kind", kindNames[k]), zap.Int("limit", f.cfg.Limits.of()[k]))
		}
	}
}

// pass is the state of one call: who has sent what it gets, when, and what was not
// admitted of it.
type pass struct {
	*Filter
	from   share.Sender
	now    uint32
	counts overflow
}

func (f *Filter) begin(ctx context.Context) pass {
	return pass{Filter: f, from: share.SenderOf(sender.From(ctx)), now: f.seconds()}
}

// admit reports whether an identity is admitted.
func (p *pass) admit(k kind, id, group uint64) bool {
	return p.tables[k].admit(request{id: id, group: group, sender: p.from}, p.now)
}

// admitLabel reports whether a value of a label is admitted.
func (p *pass) admitLabel(key string, v pcommon.Value) bool {
	group := p.hasher.text(key)
	return p.admit(kindOf(key), mix(group, p.hasher.value(v)), group)
}

// admitProgram admits a service and its instance. It returns the kind that was not
// admitted, or kindCount, and the hash of both as they are shown.
func (p *pass) admitProgram(s *source) (refused kind, program uint64) {
	service := mix(s.namespace, s.service)
	instance := mix(service, s.instance)
	switch {
	case !p.admit(kindService, service, 0):
		if s.instance != 0 {
			p.tables[kindInstance].note(instance, p.now)
		}
		return kindService, 0
	case s.instance != 0 && !p.admit(kindInstance, instance, service):
		return kindInstance, service
	}
	return kindCount, instance
}

// kind is a kind of identities with its own limit.
type kind uint8

const (
	kindService kind = iota
	kindInstance
	kindRun
	kindRank
	kindSession
	kindModel
	kindOperation
	kindUser
	kindProcess
	kindLabel
	kindCombination
	kindStream

	kindCount
)

// kindNames are the kinds' names in the configuration, the metrics and the log.
var kindNames = func() (names [kindCount]string) {
	for k := range names {
		names[k] = reflect.TypeFor[Limits]().Field(k).Tag.Get("mapstructure")
	}
	return names
}()

// kindOf returns the kind of a label, by keys.yaml.
func kindOf(key string) kind { return cmp.Or(kindsOfKeys[key], kindLabel) } // no key is of kindService, 0

// isSpanLabel reports whether a span's attribute becomes a label, in ml_metrics after
// ml_enrich. The labels of runs are not included.
func isSpanLabel(key string) bool {
	of := sourceKeys.Find(key)
	return of != nil && *of >= labelKey
}

// sourceKey is what an attribute says of a source. All from labelKey on are labels of spans.
type sourceKey uint8

const (
	namespaceKey sourceKey = iota + 1
	serviceKey
	instanceKey
	runKey
	trainingRunKey
	runInferredKey
	jobKey
	rankKey
	hostKey
	labelKey
)

var sourceKeys = func() *mlattr.KeyTable[sourceKey] {
	keys := [...]string{
		namespaceKey: mlattr.ServiceNamespace, serviceKey: mlattr.ServiceName, instanceKey: mlattr.ServiceInstanceID,
		runKey: mlattr.RunID, trainingRunKey: mlattr.TrainingRunID, runInferredKey: mlattr.RunInferred,
		jobKey: mlattr.JobID, rankKey: mlattr.RankGlobal, hostKey: mlattr.HostName,
		labelKey: mlattr.Operation, mlattr.Phase, mlattr.Role, mlattr.Side, mlattr.Library, mlattr.Function, mlattr.LossScope, mlattr.ThroughputBasis,
		mlattr.GenAIRequestModel, mlattr.GenAIResponseModel, mlattr.GenAIOperationName, mlattr.GenAIProviderName,
		mlattr.ErrorType, "http.route", "rpc.method", "server.address", "server.port", mlattr.Overflow,
	}
	index := mlattr.NewKeyTable[sourceKey](len(keys))
	for i, key := range keys[namespaceKey:] {
		*index.Ensure(key) = namespaceKey + sourceKey(i) // #nosec G115 -- an index
	}
	return index
}()

// notices returns for each kind how many spans and points had an identity that was
// not admitted.
func (f *Filter) notices() []shared.Notice {
	limits := f.cfg.Limits.of()
	return f.refused.Notices(func(name string) (shared.Notice, bool) {
		k := kind(slices.Index(kindNames[:], name))
		limit, bytes := limits[k], ""
		if f.tables[k].maxBytes > 0 {
			bytes = fmt.Sprintf(", or their text has %d bytes (scrape_bytes)", f.cfg.ScrapeBytes)
		}
		return shared.Notice{
			Kind: "limit",
			What: "New identities of the kind " + name,
			Why:  fmt.Sprintf("New names were not admitted, because the limit of %d is reached, or a quarter of it and they came only once%s; they are shown as _OTHER or dropped.", limit, bytes),
			Fix:  fmt.Sprintf("%s: {identities: {limits: {%s: %d}}}", f.id.Value.AsString(), name, min(2*limit, maxLimit)),
		}, true
	})
}
