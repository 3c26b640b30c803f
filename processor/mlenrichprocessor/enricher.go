package mlenrichprocessor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/label"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/route"
)

// userHashLength is the length of ml.user in hexadecimal digits.
const userHashLength = 16

// enricher is one instance of the processor, for one signal.
type enricher struct {
	id        component.ID
	settings  component.TelemetrySettings
	config    *Config
	reader    *vocabulary.Reader
	hashKey   []byte
	telemetry *metadata.TelemetryBuilder

	// instance is the number of this instance among those of the store.
	instance uint32

	stores  *shared.Registry[*store]
	store   *store
	release shared.Release
}

func newEnricher(set processor.Settings, cfg *Config, stores *shared.Registry[*store]) (*enricher, error) {
	reader, err := cfg.reader()
	if err != nil {
		return nil, fmt.Errorf(`compile "vocabularies" and "aliases": %w`, err)
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &enricher{
		id:        set.ID,
		settings:  set.TelemetrySettings,
		config:    cfg,
		reader:    reader,
		hashKey:   []byte(cfg.HashKey),
		telemetry: telemetry,
		stores:    stores,
	}, nil
}

func (e *enricher) start(ctx context.Context, host component.Host) error {
	var err error
	e.store, e.release, err = e.stores.Acquire(ctx, host, e.id, func() (*store, error) {
		return newStore(e.settings, e.id)
	})
	if err != nil {
		return err
	}
	e.instance = e.store.streams.AddInstance()
	return nil
}

func (e *enricher) shutdown(ctx context.Context) error {
	e.telemetry.Shutdown()
	if e.release == nil {
		return nil
	}
	return e.release(ctx)
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

// count reports what a batch left out.
func (e *enricher) count(ctx context.Context, b *batch) {
	id := attribute.String("processor", e.id.String())
	for reason, n := range b.skipped {
		e.telemetry.ProcessorMlEnrichRatesSkipped.Add(ctx, n,
			metric.WithAttributes(id, attribute.String("reason", string(reason))))
	}
	for reason, n := range b.problems {
		e.telemetry.ProcessorMlEnrichPointsUnsafe.Add(ctx, n,
			metric.WithAttributes(id, attribute.String("reason", reason)))
	}
	if b.rejected > 0 {
		e.telemetry.ProcessorMlEnrichValuesRejected.Add(ctx, int64(b.rejected), metric.WithAttributes(id))
	}
}

// appendWritten appends the facts that put adds.
func (e *enricher) appendWritten(to []vocabulary.Fact, f *vocabulary.Facts) []vocabulary.Fact {
	for fact := range f.All() {
		if e.writes(fact) {
			to = append(to, *fact)
		}
	}
	return to
}

// write adds facts to the attributes that they were read from.
func (e *enricher) write(attrs pcommon.Map, f *vocabulary.Facts, b *batch) {
	b.added = e.appendWritten(b.added[:0], f)
	e.putAll(attrs, b.added, 0)
}

// putAll adds facts, and has room for more attributes.
func (e *enricher) putAll(attrs pcommon.Map, facts []vocabulary.Fact, more int) {
	if more += len(facts); more > 0 {
		attrs.EnsureCapacity(attrs.Len() + more)
	}
	for i := range facts {
		e.put(attrs, &facts[i])
	}
}

// writes reports whether put adds a fact.
func (e *enricher) writes(fact *vocabulary.Fact) bool {
	return fact.Writable() || e.shouldHash(fact)
}

// shouldHash reports whether the fact is a user name to be hashed.
func (e *enricher) shouldHash(fact *vocabulary.Fact) bool {
	return fact.Kind == table.KindSecret && fact.Key == mlattr.User && len(e.hashKey) > 0
}

// put adds one fact, and of a user name only its hash.
func (e *enricher) put(attrs pcommon.Map, fact *vocabulary.Fact) {
	if e.shouldHash(fact) {
		attrs.PutStr(mlattr.User, e.hashUser(fact.Text))
		return
	}
	fact.Put(attrs)
}

// hashUser returns the keyed hash of a user name.
func (e *enricher) hashUser(name string) string {
	mac := hmac.New(sha256.New, e.hashKey)
	mac.Write([]byte(name))
	return hex.EncodeToString(mac.Sum(nil))[:userHashLength]
}
