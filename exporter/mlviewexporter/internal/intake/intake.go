// Package intake reads traces, metrics and logs into the model of the live page.
// It reads canonical names and decides nothing. A request is read without any
// lock; the model's lock is held only while the results are added.
package intake

import (
	"cmp"
	"context"
	"hash/maphash"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// maxBatch is the number of points or spans that are added to the model at once.
const maxBatch = 2048

// attrSimulated marks a resource whose telemetry is simulated.
const attrSimulated = "ml.simulated"

// Intake reads telemetry into a Store. It is safe for concurrent use and keeps no
// reference to what it reads.
type Intake struct {
	store           *model.Store
	hash            hash
	metrics, traces sync.Pool
}

// New returns an Intake into a Store.
func New(store *model.Store) *Intake {
	seed := maphash.MakeSeed()
	return &Intake{
		store:   store,
		hash:    hash{seed, maphash.String(seed, "") | 1},
		metrics: sync.Pool{New: func() any { return new(pointReader) }},
		traces:  sync.Pool{New: func() any { return new(spanReader) }},
	}
}

// ConsumeMetrics reads points of metrics.
func (i *Intake) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) {
	r := i.metrics.Get().(*pointReader)
	r.store, r.hash, r.connection, r.sender = i.store, i.hash, i.connection(ctx), senderOf(ctx)
	r.read(md)
	r.reset()
	i.metrics.Put(r)
}

// connection returns what is known of the collector of a fleet that has sent a request,
// and notes that it has.
func (i *Intake) connection(ctx context.Context) (from fleet.Connection) {
	if i.store.Fleet {
		from = connectionOf(ctx)
		i.store.SeeConnection(&from)
	}
	return from
}

// senderOf returns who has sent a request, zero for the collector itself.
func senderOf(ctx context.Context) share.Sender {
	id := sender.From(ctx)
	if id.Kind == sender.Own {
		return 0
	}
	return share.SenderOf(id)
}

// ConsumeTraces reads spans.
func (i *Intake) ConsumeTraces(ctx context.Context, td ptrace.Traces) {
	i.connection(ctx)
	r := i.traces.Get().(*spanReader)
	r.vocabulary, r.store, r.sender = vocabulary.Default(), i.store, senderOf(ctx)
	r.read(ctx, td)
	r.reset()
	i.traces.Put(r)
}

// ConsumeLogs reads log records. Those about problems and changes count only in the
// call in which ml_metrics sends them, so that no client can forge them, or on the page
// of a fleet, to which only collectors send.
func (i *Intake) ConsumeLogs(ctx context.Context, ld plog.Logs) {
	i.connection(ctx)
	i.store.ApplyEvents(readEvents(ld, mlattr.IsConcluded(ctx), i.store.Fleet))
}

// text returns a label as text, "" if the value is none.
func text(v pcommon.Value) string {
	t, _ := mlattr.ReadText(v)
	return t
}

func isTrue(v pcommon.Value) bool {
	return v.Type() == pcommon.ValueTypeBool && v.Bool() || v.Type() == pcommon.ValueTypeStr && v.Str() == "true"
}

const (
	// headerCollector is the header of a request that names the collector that sends it.
	headerCollector = "collector-instance-id"
	// attrCollector and labelCollector are the attributes of a point or a resource that
	// name the collector that has computed a series, where no header does: that of
	// the connector span_metrics, and the usual instance_label of ml_metrics.
	attrCollector  = "collector.instance.id"
	labelCollector = "collector_instance_id"
	headerAgent    = "user-agent"
)

// connectionOf returns what a request says of the collector that has sent it. Headers
// are known only if the receiver has include_metadata.
func connectionOf(ctx context.Context) (from fleet.Connection) {
	info := client.FromContext(ctx)
	if named := info.Metadata.Get(headerCollector); len(named) > 0 {
		from.Collector = named[0]
	}
	if agent := info.Metadata.Get(headerAgent); len(agent) > 0 {
		product, _, _ := strings.Cut(agent[0], " ")
		_, from.Version, _ = strings.Cut(product, "/")
	}
	if ip := sender.IP(ctx); ip.IsValid() {
		from.Address = ip.String()
	}
	return from
}

// name returns the connection with the name that an attribute has, if no header names
// the collector.
func name(from fleet.Connection, attribute pcommon.Value) fleet.Connection {
	from.Collector = cmp.Or(from.Collector, text(attribute))
	return from
}
