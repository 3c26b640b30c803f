package spans

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

const (
	// maxWorkers is the largest pool that is believed.
	maxWorkers = 1 << 20
	// maxMemory is the largest memory that is believed, in bytes. Sums of many
	// do not overflow.
	maxMemory = 1 << 50
	// mebibyte is the unit of keys that end in _mb: clients divide by 1024 twice.
	mebibyte = 1 << 20
)

// Values of series.MemoryKind.
const (
	memoryAllocated = "allocated"
	memoryReserved  = "reserved"
)

// workerEvent is an event of a worker, its pool or its memory.
type workerEvent struct {
	*Reader
	u     *unit
	attrs pcommon.Map
	at    int64
}

// add adds what the event said.
//
// Workers that are taken from a pool and given back are not counted: both
// events come with the end of their span, when the worker is idle again.
func (e *workerEvent) add(kind table.EventKind) {
	switch kind {
	case table.EventPoolSize:
		e.addPool()
	case table.EventWorkerCrash:
		e.addCount(series.WorkerCrashes)
	case table.EventBreakerOpen:
		e.addCount(series.BreakerOpenings)
	case table.EventHealthAlert:
		e.addCount(series.HealthAlerts)
	case table.EventMemoryAllocate:
		e.addMemory(1)
	case table.EventMemoryRelease:
		e.addMemory(-1)
	case table.EventGPUMemory:
		e.addGPUMemory()
	}
}

func (e *workerEvent) addPool() {
	pool := e.pool(e.attrs)
	for key, v := range e.attrs.All() {
		var id series.ID
		switch key {
		case "size":
			id = series.PoolSize
		case "busy":
			id = series.PoolBusy
		case "idle":
			id = series.PoolIdle
		default:
			continue
		}
		n, ok := mlattr.ReadInt(v)
		if !ok || n < 0 || n > maxWorkers {
			e.Skipped.OutOfRange++
			continue
		}
		e.show(e.u, id, e.at, float64(n), pool, e.instance())
	}
}

// addCount counts one event of a worker or its pool.
func (e *workerEvent) addCount(id series.ID) {
	class, where := "", ""
	for key, v := range e.attrs.All() {
		switch key {
		case "type", "alert_type":
			class = mlattr.ReadWord(v)
		case "reason":
			// Elixir prints any term here. Only an atom is a class.
			if reason := mlattr.ReadWord(v); class == "" && isAtom(reason) {
				class = reason
			}
		case "device":
			where = device(v)
		}
	}
	e.count(e.u, id, e.u.requestSource, 1, e.pool(e.attrs), class, where)
}

func (e *workerEvent) addMemory(sign int64) {
	class, where := "", ""
	bytes, ok := int64(0), false
	for key, v := range e.attrs.All() {
		switch key {
		case "bytes":
			bytes, ok = mlattr.ReadInt(v)
		case "type":
			class = mlattr.ReadWord(v)
		case "device":
			where = device(v)
		}
	}
	if !ok || bytes < 0 || bytes > maxMemory {
		e.Skipped.OutOfRange++
		return
	}
	e.count(e.u, series.MemoryAllocated, e.u.requestSource, sign*bytes, class, where, e.instance())
}

func (e *workerEvent) addGPUMemory() {
	where := ""
	if v, ok := e.attrs.Get("device"); ok {
		where = device(v)
	}
	for key, v := range e.attrs.All() {
		kind, unit := key, 0.0
		if k, ok := strings.CutSuffix(key, "_mb"); ok {
			kind, unit = k, mebibyte
		} else if k, ok := strings.CutSuffix(key, "_bytes"); ok {
			kind, unit = k, 1
		}
		if unit == 0 || kind != memoryAllocated && kind != memoryReserved {
			continue
		}
		n, ok, _ := mlattr.ReadDouble(v)
		if n *= unit; !ok || n < 0 || n > maxMemory {
			e.Skipped.OutOfRange++
			continue
		}
		e.show(e.u, series.GPUMemoryUsage, e.at, math.Round(n), kind, where, e.instance())
	}
}

// show adds the value that a series had at a time.
func (r *result) show(u *unit, id series.ID, at int64, value float64, labels ...string) {
	up := r.update(u, id, u.requestSource, labels...)
	up.Value, up.At = value, at
}

// pool names the pool that an event is about, which the span may say as well.
func (r *spanFacts) pool(attrs pcommon.Map) string {
	if v, ok := attrs.Get("pool"); ok {
		return mlattr.ReadWord(v)
	}
	for _, key := range vocabulary.PoolKeys() {
		if v, ok := r.spanAttrs.Get(key); ok {
			return mlattr.ReadWord(v)
		}
	}
	return ""
}

// instance returns the service.instance.id of the resource, or "".
func (r *resourceFacts) instance() string {
	v, ok := r.resourceAttrs.Get(series.Instance)
	if !ok {
		return ""
	}
	id, ok := mlattr.ReadID(v)
	if !ok {
		return ""
	}
	return id
}

// device reads where something is as PyTorch writes it, from "cuda:0" itself
// or Elixir's "{:cuda, 0}".
func device(v pcommon.Value) string {
	if v.Type() != pcommon.ValueTypeStr {
		return mlattr.ReadWord(v)
	}
	inner, ok := strings.CutPrefix(v.Str(), "{:")
	if !ok {
		return mlattr.ReadWord(v)
	}
	kind, index, pair := strings.Cut(strings.TrimSuffix(inner, "}"), ",")
	text := kind + ":" + strings.TrimSpace(index)
	if !pair || len(text) > mlattr.MaxText || !mlattr.ValidID(text) {
		return ""
	}
	return text
}

// isAtom says whether a text is a plain atom of Elixir's.
func isAtom(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return text != ""
}
