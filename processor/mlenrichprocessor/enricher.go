package mlenrichprocessor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/label"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/route"
)

// userHashLength is the length of ml.user in hexadecimal digits.
const userHashLength = 16

// enricher is one instance of the processor, for one signal.
type enricher struct {
	config  *Config
	reader  *vocabulary.Reader
	hashKey []byte

	// instance is the number of this instance among those of the store.
	instance uint32

	stores shared.Use[*store]
	// store is that of stores, after start.
	store *store
}

func newEnricher(set processor.Settings, cfg *Config, stores *shared.Registry[*store]) *enricher {
	return &enricher{
		config:  cfg,
		reader:  cfg.reader(),
		hashKey: []byte(cfg.HashKey),
		stores:  stores.Use(set.ID, func() (*store, error) { return newStore(set.TelemetrySettings, set.ID) }),
	}
}

// options are those of the processor of each signal.
func (e *enricher) options() []processorhelper.Option {
	return []processorhelper.Option{
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithStart(e.start), processorhelper.WithShutdown(e.stores.Shutdown),
	}
}

func (e *enricher) start(ctx context.Context, host component.Host) error {
	if err := e.stores.Start(ctx, host); err != nil {
		return err
	}
	e.store = e.stores.Shared
	e.instance = e.store.streams.Instances.Add(1)
	return nil
}

// routes returns the routes of GPUs. It must not be called before start.
func (e *enricher) routes() *route.GPUs { return e.store.routes }

// batch is the working memory of one request.
type batch struct {
	facts     vocabulary.Facts
	resources []resource

	spans []spanState
	// kept are the facts of all spans that will be written. Writing waits
	// until it is known what else a span gets, so that its attributes move
	// at most once.
	kept []vocabulary.Fact
	// added is what one span gets from others.
	added []vocabulary.Fact
	keys  correlate.Batch

	points   rate.Points
	problems label.Problems

	skipped  rate.Skipped
	rejected int
}

var batches = sync.Pool{New: func() any {
	return &batch{skipped: make(rate.Skipped), problems: make(label.Problems)}
}}

// maxKept is how many facts a batch may have for its memory to be kept.
const maxKept = 1 << 19

// free returns the memory to the pool, without any reference to what was
// processed.
func (b *batch) free() {
	if cap(b.kept) > maxKept || !b.keys.Reset() {
		return
	}
	b.facts.Reset()
	for i := range b.resources {
		b.resources[i].facts.Reset()
		b.resources[i] = resource{facts: b.resources[i].facts}
	}
	clear(b.spans)
	clear(b.kept)
	clear(b.added[:cap(b.added)])
	clear(b.skipped)
	clear(b.problems)
	b.points.Reset()
	b.resources, b.spans, b.kept, b.rejected = b.resources[:0], b.spans[:0], b.kept[:0], 0
	batches.Put(b)
}

// count counts what a batch left out.
func (s *store) count(ctx context.Context, b *batch) {
	for reason, n := range b.skipped {
		s.telemetry.ProcessorMlEnrichRatesSkipped.Add(ctx, n,
			metric.WithAttributes(s.processor, attribute.String("reason", string(reason))))
	}
	for reason, n := range b.problems {
		s.telemetry.ProcessorMlEnrichPointsUnsafe.Add(ctx, n,
			metric.WithAttributes(s.processor, attribute.String("reason", reason)))
	}
	if b.rejected > 0 {
		s.telemetry.ProcessorMlEnrichValuesRejected.Add(ctx, int64(b.rejected), metric.WithAttributes(s.processor))
	}
}

// appendWritten appends the facts that are written, and of a user's name its hash.
func (e *enricher) appendWritten(to []vocabulary.Fact, f *vocabulary.Facts) []vocabulary.Fact {
	for fact := range f.All() {
		switch {
		case fact.Writable():
			to = append(to, *fact)
		case fact.Kind == table.KindSecret && fact.Key == mlattr.User && len(e.hashKey) > 0:
			to = append(to, vocabulary.Fact{Key: mlattr.User, Kind: table.KindText, Text: e.hashUser(fact.Text)})
		}
	}
	return to
}

// write adds facts to the attributes that they were read from.
func (e *enricher) write(attrs pcommon.Map, f *vocabulary.Facts, b *batch) {
	b.added = e.appendWritten(b.added[:0], f)
	putAll(attrs, b.added, 0)
}

// putAll adds facts, and has room for more attributes.
func putAll(attrs pcommon.Map, facts []vocabulary.Fact, more int) {
	if more += len(facts); more > 0 {
		attrs.EnsureCapacity(attrs.Len() + more)
	}
	for i := range facts {
		facts[i].Put(attrs)
	}
}

// hashUser returns the keyed hash of a user name.
func (e *enricher) hashUser(name string) string {
	mac := hmac.New(sha256.New, e.hashKey)
	mac.Write([]byte(name))
	return hex.EncodeToString(mac.Sum(nil))[:userHashLength]
}
