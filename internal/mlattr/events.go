package mlattr

// EventKind says what a client's event reports. A client may send an event as a
// span event or as a span of that name.
type EventKind uint8

const (
	// NoEvent is any event that no table lists.
	NoEvent EventKind = iota
	// EventTrainStep is one step of training, with its numbers.
	EventTrainStep
	// EventTrainNumbers has numbers of training, such as a loss, and is no step.
	EventTrainNumbers
	// EventInference is one request to a model.
	EventInference
	// EventCallStart is the start of a call.
	EventCallStart
	// EventCallStop is the end of a call.
	EventCallStop
	// EventCallException is the end of a call that raised.
	EventCallException
	// EventPoolCheckout is a worker taken from a pool. It has the queue time of a
	// call, which the end of the call may have as well.
	EventPoolCheckout
	// EventSerialize is the end of encoding or decoding the values of a call. It
	// has the time, which the end of the call may have as well.
	EventSerialize
	// EventPoolSize has the size of a pool of workers.
	EventPoolSize
	// EventWorkerCrash is a worker that died.
	EventWorkerCrash
	// EventBreakerOpen is a circuit breaker that opened.
	EventBreakerOpen
	// EventHealthAlert is an alert about a worker's health.
	EventHealthAlert
	// EventMemoryAllocate has the bytes that a worker allocated.
	EventMemoryAllocate
	// EventMemoryRelease has the bytes that a worker released.
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
