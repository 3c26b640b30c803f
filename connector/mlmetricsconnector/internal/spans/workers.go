package spans

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
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

// workerCounts are the series of the events that count.
var workerCounts = map[table.EventKind]series.ID{
	table.EventWorkerCrash: series.WorkerCrashes, table.EventBreakerOpen: series.BreakerOpenings, table.EventHealthAlert: series.HealthAlerts,
}

// poolSizes are the series of the numbers of workers of a pool.
var poolSizes = map[string]series.ID{"size": series.PoolSize, "busy": series.PoolBusy, "idle": series.PoolIdle}

// addWorkerEvent adds what an event of a worker, its pool or its memory said.
//
// Workers that are taken from a pool and given back are not counted: both
// events come with the end of their span, when the worker is idle again.
func (r *Reader) addWorkerEvent(u *unit, kind table.EventKind, attrs pcommon.Map, at int64) {
	where := ""
	if v, ok := attrs.Get("device"); ok {
		where = device(v)
	}
	if id, counts := workerCounts[kind]; counts {
		r.count(u, id, u.requestSource, 1, r.pool(attrs), classOf(attrs), where)
		return
	}
	for key, v := range attrs.All() {
		switch kind {
		case table.EventPoolSize:
			if id, ok := poolSizes[key]; ok {
				n, ok := mlattr.ReadInt(v)
				r.show(u, id, at, float64(n), ok && n >= 0 && n <= maxWorkers, r.pool(attrs), r.instance())
			}
		case table.EventGPUMemory:
			memory, unit := key, 0.0
			if k, ok := strings.CutSuffix(key, "_mb"); ok {
				memory, unit = k, mebibyte
			} else if k, ok := strings.CutSuffix(key, "_bytes"); ok {
				memory, unit = k, 1
			}
			if unit > 0 && (memory == memoryAllocated || memory == memoryReserved) {
				n, ok, _ := mlattr.ReadDouble(v)
				n *= unit
				r.show(u, series.GPUMemoryUsage, at, math.Round(n), ok && n >= 0 && n <= maxMemory, memory, where, r.instance())
			}
		}
	}
	if kind == table.EventMemoryAllocate || kind == table.EventMemoryRelease {
		r.addMemory(u, kind, attrs, where)
	}
}

// addMemory adds memory that was allocated or released.
func (r *Reader) addMemory(u *unit, kind table.EventKind, attrs pcommon.Map, where string) {
	n, ok := int64(0), false
	if v, has := attrs.Get("bytes"); has {
		n, ok = mlattr.ReadInt(v)
	}
	if !ok || n < 0 || n > maxMemory {
		r.Skipped.OutOfRange++
		return
	}
	if kind == table.EventMemoryRelease {
		n = -n
	}
	class := ""
	if v, has := attrs.Get("type"); has {
		class = mlattr.ReadWord(v)
	}
	r.count(u, series.MemoryAllocated, u.requestSource, n, class, where, r.instance())
}

// classOf returns the class of a crash or an alert.
func classOf(attrs pcommon.Map) (class string) {
	for key, v := range attrs.All() {
		switch key {
		case "type", "alert_type":
			class = mlattr.ReadWord(v)
		case "reason":
			// Elixir prints any term here. Only an atom is a class.
			if reason := mlattr.ReadWord(v); class == "" && isAtom(reason) {
				class = reason
			}
		}
	}
	return class
}

// show adds the value that a series had at a time, if it is plausible.
func (r *result) show(u *unit, id series.ID, at int64, value float64, plausible bool, labels ...string) {
	if !plausible {
		r.Skipped.OutOfRange++
		return
	}
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
func (r *resourceFacts) instance() string { return program.IDOf(r.resourceAttrs, series.Instance) }

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

// isAtom reports whether a text is a plain atom of Elixir's.
func isAtom(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}
