package mlenrichprocessor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// userHashLength is the length of ml.user in hexadecimal digits.
const userHashLength = 16

// enricher is one instance of the processor, for one signal.
type enricher struct {
	set       processor.Settings
	reader    *mlattr.Reader
	labels    []string
	hashKey   []byte
	telemetry *metadata.TelemetryBuilder
	// minDuration, in seconds, and withoutCache are the configuration's about
	// rates.
	minDuration  float64
	withoutCache []string
	// training is the configuration's about the steps of jobs.
	training []TrainingConfig

	// instance is the number of this instance among those of the store.
	instance uint32

	stores  *shared.Registry[*store]
	store   *store
	release shared.Release
	// waiting is nil where no log record may wait.
	waiting *waitingLogs
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
		set:       set,
		reader:    reader,
		labels:    cfg.ResourceLabels,
		hashKey:   []byte(cfg.HashKey),
		telemetry: telemetry,
		stores:    stores,

		minDuration:  cfg.MinDuration.Seconds(),
		withoutCache: cfg.InputWithoutCache,
		training:     cfg.Training,
	}, nil
}

func (e *enricher) start(ctx context.Context, host component.Host) error {
	var err error
	e.store, e.release, err = e.stores.Acquire(ctx, host, e.set.ID, func() (*store, error) {
		return newStore(e.set.TelemetrySettings, e.set.ID)
	})
	if err != nil {
		return err
	}
	e.instance = e.store.addInstance()
	if e.waiting != nil {
		e.waiting.start(e.store)
	}
	return nil
}

func (e *enricher) shutdown(ctx context.Context) error {
	if e.waiting != nil {
		e.waiting.shutdown(ctx)
	}
	e.telemetry.Shutdown()
	if e.release == nil {
		return nil
	}
	return e.release(ctx)
}

// count reports what a batch left out.
func (e *enricher) count(ctx context.Context, left skipped, rejected int) {
	id := attribute.String("processor", e.set.ID.String())
	for reason, n := range left {
		e.telemetry.ProcessorMlEnrichRatesSkipped.Add(ctx, n,
			metric.WithAttributes(id, attribute.String("reason", string(reason))))
	}
	if rejected > 0 {
		e.telemetry.ProcessorMlEnrichValuesRejected.Add(ctx, int64(rejected), metric.WithAttributes(id))
	}
}

// write adds the facts to the attributes that they were read from.
func (e *enricher) write(attrs pcommon.Map, f *mlattr.Facts) {
	e.reserve(attrs, f, 0)
	for fact := range f.All() {
		e.put(attrs, fact)
	}
}

// writePoint does the same for a metric's point, whose attributes become
// labels: a fact whose label the client itself uses is left out. It leaves room
// for more.
func (e *enricher) writePoint(attrs pcommon.Map, f *mlattr.Facts, more int) {
	e.reserve(attrs, f, more)
	for fact := range f.All() {
		if e.writes(fact) && !labelTaken(attrs, fact.Key) {
			e.put(attrs, fact)
		}
	}
}

// reserve makes room for the facts that put adds, and for more, at once.
func (e *enricher) reserve(attrs pcommon.Map, f *mlattr.Facts, more int) {
	for fact := range f.All() {
		if e.writes(fact) {
			more++
		}
	}
	if more > 0 {
		attrs.EnsureCapacity(attrs.Len() + more)
	}
}

// writes says whether a fact is one that put adds.
func (e *enricher) writes(fact *mlattr.Fact) bool {
	return fact.Writable() || e.hashes(fact)
}

// hashes says whether a fact is a user's name of which the hash is wanted.
func (e *enricher) hashes(fact *mlattr.Fact) bool {
	return fact.Kind == mlattr.KindSecret && fact.Key == mlattr.User && len(e.hashKey) > 0
}

// put adds one fact; a user's name only as its hash.
func (e *enricher) put(attrs pcommon.Map, fact *mlattr.Fact) {
	if e.hashes(fact) {
		attrs.PutStr(mlattr.User, e.hashUser(fact.Text))
		return
	}
	fact.Put(attrs)
}

// hashUser is the keyed hash of a user's name.
func (e *enricher) hashUser(name string) string {
	mac := hmac.New(sha256.New, e.hashKey)
	mac.Write([]byte(name))
	return hex.EncodeToString(mac.Sum(nil))[:userHashLength]
}

// resource is a resource of a batch and what is known about it.
type resource struct {
	facts   mlattr.Facts
	process process
	key     string // of process
	// keys are the batch's.
	keys *processKeys
	run  run
	// runSymbol is the id of run in the batch's symbols.
	runSymbol symbol
	// service is process.service, as store.hashOf has it.
	service uint64
	// member is what the store remembers of the process, where run is known.
	member member
	// indexes are the GPUs that the process's metrics name, and memory is what
	// they say about its allocator.
	indexes []int64
	memory  memoryReading
}

// readResource adds canonical names to a resource and reads what tells its
// process from others.
func (e *enricher) readResource(attrs pcommon.Map, r *resource) {
	e.reader.Resource(attrs, &r.facts)
	addTraining(e.training, &r.facts)
	e.write(attrs, &r.facts)
	world, _ := r.facts.Int(mlattr.WorldSize)
	r.process = process{
		namespace: r.facts.Text(mlattr.ServiceNamespace),
		service:   r.facts.Text(mlattr.ServiceName),
		host:      r.facts.Text(mlattr.HostName),
		jobName:   r.facts.Text(mlattr.JobName),
		instance:  readID(attrs, "service.instance.id"),
		pid:       readID(attrs, "process.pid"),
		started:   readID(attrs, "process.creation.time"),
		worldSize: world,
	}
	r.key = r.keys.of(&r.process)
}

func readID(attrs pcommon.Map, key string) string {
	v, ok := attrs.Get(key)
	if !ok {
		return ""
	}
	id, _ := mlattr.ReadID(v)
	return id
}

// settleRun finds the resource's run, given every client that its process was
// recognised as, adds it to the resource, and remembers where it lives.
func (e *enricher) settleRun(attrs pcommon.Map, r *resource, systems mlattr.System) {
	r.run = runOf(&r.facts, r.process, r.key, systems)
	if r.run.id != "" && r.facts.Find(mlattr.RunID) == nil {
		attrs.PutStr(mlattr.RunID, r.run.id)
		if r.run.inferred {
			attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	e.readMember(attrs, r)
	e.store.seeRun(&r.member)
}
