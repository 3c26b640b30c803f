package vocabulary

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"

// eventTable finds the kind of an event. Names that no client uses cost next to
// nothing.
type eventTable struct {
	filter nameFilter
	kinds  map[string]table.EventKind
}

func (e *eventTable) add(event table.Event) {
	if e.kinds == nil {
		e.kinds = make(map[string]table.EventKind)
	}
	e.filter.add(table.Exact, event.Name)
	e.kinds[event.Name] = event.Kind
}

// Event returns what an event of this name reports, and NoEvent for a name that
// no selected vocabulary has. A span that stands for an event has its name.
func (r *Reader) Event(name string) table.EventKind {
	if !r.events.filter.passes(name) {
		return table.NoEvent
	}
	return r.events.kinds[name]
}

// PoolKeys returns the keys of span attributes that name the pool of workers
// that the span's events are about.
func PoolKeys() []string { return poolKeys }

var poolKeys = collectKeys(func(t *table.Table) []string { return t.PoolKeys })
