package nvmlsource

import (
	"context"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// eventsSubject is the subject of calls that start or stop events, so that
	// one that hangs affects events only.
	eventsSubject = "events"
	// eventWait is the longest wait for an event. NVML cannot interrupt a wait,
	// so that closing the library takes as long.
	eventWait = 100 * time.Millisecond
	// maxEventRetry is the longest pause after failed waits, and
	// lostEventRetry the pause after a wait that failed because of a lost GPU:
	// the other GPUs still report events.
	maxEventRetry  = 30 * time.Second
	lostEventRetry = time.Second
)

// eventLibrary is a library that reports events.
type eventLibrary interface {
	// NewEventSet returns an empty set.
	NewEventSet() (eventSet, status)
}

// eventSet is a set of events to wait for. Wait may be called by a goroutine
// other than the one that makes all other calls.
type eventSet interface {
	// Register adds the XIDs of a GPU. A GPU that has none is unsupported.
	Register(g gpu) status
	// Wait returns the next XID. statusNVMLTimeout means that there was none.
	Wait(timeout time.Duration) (xid, status)
	// Free releases the set. No Wait may run.
	Free() status
}

// xid is an event as NVML reports it.
type xid struct {
	// from reports whether the event is about a GPU.
	from func(g gpu) bool
	code uint64
	// The instances are noInstance if the event concerns the whole GPU.
	gpuInstance, computeInstance uint32
}

// noInstance is NVML's value for no MIG device.
const noInstance = ^uint32(0)

// events reports the XIDs of the GPUs of one session with the driver.
type events struct {
	set  eventSet
	quit chan struct{}
	done chan struct{}

	mu sync.Mutex
	// gpus are the registered ones.
	gpus []registeredGPU
}

// registeredGPU is a GPU whose events are reported.
type registeredGPU struct {
	handle   gpu
	identity device.Identity
}

// watchEvents registers the GPUs that are new, and creates the set with the
// first. It marks each GPU, so that one without events is not tried each time.
func (s *Source) watchEvents(ctx context.Context) {
	lib, can := s.library.(eventLibrary)
	if !can || s.releases() {
		return
	}
	s.reviveEvents(ctx)
	if s.events.ending() {
		return
	}
	var untried []*knownGPU
	for _, known := range s.gpus {
		if !known.eventsTried && known.identity.MIG == nil && !s.asleep(known) {
			untried = append(untried, known)
		}
	}
	if len(untried) == 0 {
		return
	}
	r := &registration{events: s.events}
	result := s.calls.do(ctx, s.opts.CallTimeout, eventsSubject, func() { r.fill(lib, untried, s.opts.Called) })
	if result == refused {
		return
	}
	if result == abandoned && ctx.Err() == nil {
		s.opts.Abandoned(eventsSubject)
		s.opts.Failed("register_events", string(statusTimeout))
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	for _, f := range r.failures {
		s.opts.Failed(f.call, string(f.status))
	}
	for _, known := range untried {
		known.eventsTried = true
	}
	if r.events == nil || len(r.registered) == 0 && s.events == nil {
		return
	}
	r.events.mu.Lock()
	for _, known := range r.registered {
		known.eventsKnown = true
		r.events.gpus = append(r.events.gpus, registeredGPU{handle: known.handle, identity: known.identity})
	}
	r.events.mu.Unlock()
	if s.events == nil {
		s.events = r.events
		session := device.Event{Host: s.host, DriverVersion: s.driverVersion, CUDAVersion: s.cudaVersion}
		go s.events.run(session, s.opts, s.emit)
	}
}

// reviveEvents stops events that did not stop in time before, so that all GPUs
// are registered again. Until then their events are not reported.
func (s *Source) reviveEvents(ctx context.Context) {
	if !s.events.ending() {
		return
	}
	ended := s.stopEvents(ctx)
	for _, known := range s.gpus {
		known.eventsKnown = false
		known.eventsTried = known.eventsTried && !ended
	}
}

// registration is filled by the goroutine that makes the calls.
type registration struct {
	mu         sync.Mutex
	taken      bool
	events     *events
	registered []*knownGPU
	failures   []failure
}

// fill makes the calls. A set that is no longer wanted, or in which no GPU is
// registered, is freed.
func (r *registration) fill(lib eventLibrary, gpus []*knownGPU, called func(string, string, time.Duration)) {
	done := registration{events: r.events}
	done.register(lib, gpus, called)

	r.mu.Lock()
	defer r.mu.Unlock()
	created := r.events == nil && done.events != nil
	if created && (r.taken || len(done.registered) == 0) {
		_ = done.events.set.Free()
		done.events = nil
	}
	if !r.taken {
		r.events, r.registered, r.failures = done.events, done.registered, done.failures
	}
}

func (r *registration) register(lib eventLibrary, gpus []*knownGPU, called func(string, string, time.Duration)) {
	if r.events == nil {
		set, result := ask("event_set_create", called, lib.NewEventSet)
		if result != statusSuccess {
			r.failed("event_set_create", result)
			return
		}
		r.events = &events{set: set, quit: make(chan struct{}), done: make(chan struct{})}
	}
	for _, known := range gpus {
		result := askStatus("register_events", called, func() status { return r.events.set.Register(known.handle) })
		if result == statusSuccess {
			r.registered = append(r.registered, known)
			continue
		}
		r.failed("register_events", result)
	}
}

func (r *registration) failed(call string, result status) {
	if !result.unsupported() {
		r.failures = append(r.failures, failure{call: call, status: result})
	}
}

// stopEvents ends the waiting and frees the set. It reports false if the wait
// does not end in time, in which case the library must stay open. A wait that did
// not end in time before is only checked.
func (s *Source) stopEvents(ctx context.Context) bool {
	if s.events == nil {
		return true
	}
	if !s.events.end(ctx) {
		return false
	}
	set := s.events.set
	// The driver cleans up a set that cannot be freed, when the library is
	// closed.
	_ = s.calls.do(ctx, s.opts.CallTimeout, eventsSubject, func() { _, _ = guard(func() (struct{}, status) { return struct{}{}, set.Free() }) })
	s.events = nil
	return true
}

// end stops the waiting, and reports whether it has ended in time.
func (e *events) end(ctx context.Context) bool {
	if e.ending() {
		select {
		case <-e.done:
			return true
		default:
			return false
		}
	}
	close(e.quit)
	timer := time.NewTimer(shutdownGrace)
	defer timer.Stop()
	select {
	case <-e.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// ending reports whether end was called. The receiver may be nil.
func (e *events) ending() bool {
	if e == nil {
		return false
	}
	select {
	case <-e.quit:
		return true
	default:
		return false
	}
}

// run waits for events until quit. It makes no other call, because another
// goroutine makes those.
func (e *events) run(session device.Event, opts Options, emit func(device.Event)) {
	defer close(e.done)
	var failing retry
	for {
		select {
		case <-e.quit:
			return
		default:
		}
		event, result := guard(func() (xid, status) { return e.set.Wait(eventWait) })
		var pause time.Duration
		switch result {
		case statusSuccess:
			failing.succeeded()
			e.report(event, session, opts.Now(), emit)
		case statusNVMLTimeout:
			failing.succeeded()
		case statusGPUIsLost:
			opts.Failed("event_wait", string(result))
			pause = lostEventRetry
		default:
			opts.Failed("event_wait", string(result))
			failing.failed(time.Time{})
			pause = min(failing.wait, maxEventRetry)
		}
		if pause > 0 && !e.sleep(pause) {
			return
		}
	}
}

// sleep reports false if quit comes before its end.
func (e *events) sleep(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.quit:
		return false
	}
}

// report emits an event with its GPU, which it finds by the handle. An event
// of a GPU that is not registered is ignored.
func (e *events) report(event xid, reported device.Event, at time.Time, emit func(device.Event)) {
	if event.from == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.gpus {
		if event.from(g.handle) {
			reported.Time, reported.GPU, reported.Code = at, g.identity, event.code
			reported.GPUInstance, reported.ComputeInstance = instance(event.gpuInstance), instance(event.computeInstance)
			emit(reported)
			return
		}
	}
}

func instance(id uint32) workload.Number {
	if id == noInstance {
		return workload.Number{}
	}
	return workload.Number{Value: int64(id), Known: true}
}
