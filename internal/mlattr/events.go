package mlattr

// EventKind says what a client's event reports. A client may send an event as a
// span event or as a span of that name.
type EventKind uint8

const (
	// NoEvent is any event that no table lists.
	NoEvent EventKind = iota
	// EventTrainStep is one step of training, with its numbers.
	EventTrainStep
	// EventInference is one request to a model.
	EventInference
	// EventCallStart is the begin of a call.
	EventCallStart
	// EventCallStop is the end of a call.
	EventCallStop
	// EventCallException is the end of a call that raised.
	EventCallException
	// EventPoolCheckout is a worker taken from a pool. Its queue time is
	// part of what the end of the call says.
	EventPoolCheckout
	// EventSerialize is the end of encoding or decoding a call's values, which
	// is part of what the end of the call says, too.
	EventSerialize
	// EventPoolSize has the size of a pool of workers.
	EventPoolSize
	// EventWorkerCrash is a worker that died.
	EventWorkerCrash
	// EventBreakerOpen is a circuit breaker that opened.
	EventBreakerOpen
	// EventHealthAlert is an alert about a worker's health.
	EventHealthAlert
	// EventMemoryAllocate and EventMemoryRelease have the bytes that a worker
	// took and gave back.
	EventMemoryAllocate
	EventMemoryRelease
	// EventGPUMemory has the GPU memory of a worker's allocator.
	EventGPUMemory
)

// Event is one event of a client by its name.
type Event struct {
	Name string
	Kind EventKind
}

// eventTable finds the kind of an event. Names that no client uses cost next to
// nothing.
type eventTable struct {
	filter nameFilter
	kinds  map[string]EventKind
}

func (e *eventTable) add(event Event) {
	if e.kinds == nil {
		e.kinds = make(map[string]EventKind)
	}
	e.filter.add(Exact, event.Name)
	e.kinds[event.Name] = event.Kind
}

// Event returns what an event of this name reports, and NoEvent for a name that
// no selected vocabulary has. A span that stands for an event has its name.
func (r *Reader) Event(name string) EventKind {
	if !r.events.filter.passes(name) {
		return NoEvent
	}
	return r.events.kinds[name]
}

// PoolKeys returns the keys of span attributes that name the pool of workers
// that the span's events are about.
func PoolKeys() []string { return poolKeys }

var poolKeys = collectKeys(func(t *Table) []string { return t.PoolKeys })

// collectKeys concatenates a list of all tables, in their order, without
// duplicates.
func collectKeys(list func(*Table) []string) (keys []string) {
	seen := make(map[string]bool)
	for _, t := range Tables() {
		for _, key := range list(&t) {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}
