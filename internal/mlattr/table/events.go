package table

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

// eventKinds are the words of tables for the kinds.
var eventKinds = [...]string{
	EventTrainStep: "train_step", EventTrainNumbers: "train_numbers", EventInference: "inference",
	EventCallStart: "call_start", EventCallStop: "call_stop", EventCallException: "call_exception",
	EventPoolCheckout: "pool_checkout", EventSerialize: "serialize", EventPoolSize: "pool_size",
	EventWorkerCrash: "worker_crash", EventBreakerOpen: "breaker_open", EventHealthAlert: "health_alert",
	EventMemoryAllocate: "memory_allocate", EventMemoryRelease: "memory_release", EventGPUMemory: "gpu_memory",
}

// UnmarshalText reads the kind's word.
func (k *EventKind) UnmarshalText(text []byte) error { return readWord(k, text, eventKinds[:]) }

// Event is one event of a client by its name.
type Event struct {
	Name string
	Kind EventKind
}
