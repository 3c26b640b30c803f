//go:build cgo && linux

package nvmlsource

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

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
	// failedWaitPause is the pause after a wait that failed, as because of a lost GPU:
	// the other GPUs still report events.
	failedWaitPause = time.Second
)

// noInstance is NVML's value for no MIG device.
const noInstance = ^uint32(0)

// events reports the XIDs of the GPUs of one session with the driver.
type events struct {
	// set can be waited for while another goroutine makes all other calls.
	set nvml.EventSet
	// quit is when the waiting has to end, and done is closed when it has.
	quit context.Context
	end  context.CancelFunc
	done chan struct{}

	mu sync.Mutex
	// gpus are the registered ones.
	gpus map[nvml.Device]device.Identity
}

// watchEvents registers the GPUs that are new, and creates the set with the
// first. It marks each GPU, so that one without events is not tried each time.
func (s *Source) watchEvents(ctx context.Context) {
	s.reviveEvents(ctx)
	if s.events.ending() {
		return
	}
	untried := slices.DeleteFunc(slices.Clone(s.gpus), func(known *knownGPU) bool {
		return known.eventsTried || known.identity.MIG != nil || asleep(known.powerStatus)
	})
	if len(untried) == 0 {
		return
	}
	current := s.events
	r, result := request(ctx, s, eventsSubject, func() *registration { return register(s.library, current, untried, s.opts.Telemetry) },
		func(late *registration) { late.free(current) })
	if result == refused {
		return
	}
	for _, known := range untried {
		known.eventsTried = true
	}
	if r == nil {
		if ctx.Err() == nil {
			s.opts.Telemetry.Failed("register_events", string(statusTimeout))
		}
		return
	}
	if len(r.registered) == 0 {
		return
	}
	created := s.events == nil
	if created {
		s.events = &events{set: r.set, gpus: make(map[nvml.Device]device.Identity), done: make(chan struct{})}
		s.events.quit, s.events.end = context.WithCancel(context.Background())
	}
	s.events.mu.Lock()
	for _, known := range r.registered {
		known.eventsKnown = true
		s.events.gpus[known.device] = known.identity
	}
	s.events.mu.Unlock()
	if created {
		go s.events.run(s.system, s.opts, s.emit)
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

// registration is the result of registering GPUs for events.
type registration struct {
	set        nvml.EventSet
	registered []*knownGPU
}

// free frees a set that was created and is not wanted.
func (r *registration) free(current *events) {
	if r.set != nil && current == nil {
		_ = r.set.Free()
	}
}

// register adds GPUs to the set of the current events, or to a new one. A new set in
// which no GPU is registered is freed.
func register(lib *library, current *events, gpus []*knownGPU, telemetry Telemetry) *registration {
	r := &registration{}
	var result status
	if current != nil {
		r.set = current.set
	} else if r.set, result = ask("event_set_create", telemetry, lib.newEventSet); result != statusSuccess {
		return r
	}
	for _, known := range gpus {
		if askStatus("register_events", telemetry, func() status { return known.register(r.set) }) == statusSuccess {
			r.registered = append(r.registered, known)
		}
	}
	if len(r.registered) == 0 {
		r.free(current)
	}
	return r
}

// newEventSet returns an empty set.
func (l *library) newEventSet() (nvml.EventSet, status) {
	if !l.hasAll("nvmlEventSetCreate", "nvmlEventSetFree", "nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes") ||
		!l.has("nvmlEventSetWait_v2", "nvmlEventSetWait") {
		return nil, statusFunctionNotFound
	}
	set, ret := l.nvml.EventSetCreate()
	return set, statusOf(ret)
}

// register adds the XIDs of a GPU to a set. It checks first that the GPU supports them,
// because registering unsupported events is an error.
func (g *gpu) register(set nvml.EventSet) status {
	types, ret := g.device.GetSupportedEventTypes()
	if ret == nvml.SUCCESS && types&nvml.EventTypeXidCriticalError == 0 {
		return statusNotSupported
	}
	if ret == nvml.SUCCESS {
		ret = g.device.RegisterEvents(nvml.EventTypeXidCriticalError, set)
	}
	return statusOf(ret)
}

// stopEvents ends the waiting and frees the set. It reports false if the wait
// does not end in time, in which case the library must stay open. A wait that did
// not end in time before is only checked.
func (s *Source) stopEvents(ctx context.Context) bool {
	if s.events == nil {
		return true
	}
	if !s.events.stop(ctx) {
		return false
	}
	set := s.events.set
	// The driver cleans up a set that cannot be freed, when the library is
	// closed.
	_ = processCalls.do(ctx, s.opts.CallTimeout, eventsSubject, func() { _, _ = guard(func() (nvml.Return, status) { return set.Free(), statusSuccess }) })
	s.events = nil
	return true
}

// stop ends the waiting, and reports whether it has ended in time.
func (e *events) stop(ctx context.Context) bool {
	if !e.ending() {
		e.end()
		ctx, cancel := context.WithTimeout(ctx, shutdownGrace)
		defer cancel()
		select {
		case <-e.done:
		case <-ctx.Done():
		}
	}
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// ending reports whether stop was called. The receiver may be nil.
func (e *events) ending() bool { return e != nil && e.quit.Err() != nil }

// run waits for events until quit. It makes no other call, because another
// goroutine makes those.
func (e *events) run(system device.System, opts Options, emit func(device.Event)) {
	defer close(e.done)
	for e.quit.Err() == nil {
		event, result := guard(func() (nvml.EventData, status) {
			event, ret := e.set.Wait(uint32(eventWait.Milliseconds()))
			return event, statusOf(ret)
		})
		switch result {
		case statusSuccess:
			e.report(event, system, opts.Now(), emit)
		case statusNVMLTimeout:
		default:
			opts.Telemetry.Failed("event_wait", string(result))
			select {
			case <-time.After(failedWaitPause):
			case <-e.quit.Done():
			}
		}
	}
}

// report emits an XID with its GPU, which it finds by the handle, which is only
// compared. An event of a GPU that is not registered is ignored.
func (e *events) report(event nvml.EventData, system device.System, at time.Time, emit func(device.Event)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	identity, found := e.gpus[event.Device]
	if !found || event.EventType&nvml.EventTypeXidCriticalError == 0 {
		return
	}
	emit(device.Event{
		System: system, Time: at, GPU: identity, Code: event.EventData,
		GPUInstance: instance(event.GpuInstanceId), ComputeInstance: instance(event.ComputeInstanceId),
	})
}

func instance(id uint32) workload.Number {
	if id == noInstance {
		return workload.Number{}
	}
	return workload.Number{Value: int64(id), Known: true}
}
