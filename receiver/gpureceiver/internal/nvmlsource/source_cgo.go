//go:build cgo && linux

package nvmlsource

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// driverSubject is the subject of calls that concern every GPU.
const driverSubject = "driver"

// shutdownGrace is how long closing the library waits for an abandoned call, and
// again for the wait for events. It is many times eventWait, because a busy host
// runs goroutines late.
const shutdownGrace = 3 * time.Second

// Source reads GPUs through NVML.
type Source struct {
	opts    Options
	library *library
	emit    func(device.Event)

	// stopping ends at Shutdown, and with it every wait.
	stopping  context.Context
	interrupt context.CancelFunc

	// mu guards the following fields, because Shutdown can run while a reading
	// ends.
	mu    sync.Mutex
	open  bool
	retry retry
	gpus  []*knownGPU
	// system has the versions of the library that is or was open.
	system device.System
	// former are the GPUs by id, including those of earlier sessions.
	former map[string]*knownGPU
	states stateLog
	// slowNext is the time of the next slow calls.
	slowNext time.Time
	// reopened is the time at which the library was last reopened for a lost
	// GPU.
	reopened time.Time
	// events is nil while none are reported.
	events *events

	tally atomic.Pointer[Tally]
}

// New returns a source that has not loaded the library yet.
func New(opts Options) *Source {
	opts.LibraryPath = cmp.Or(opts.LibraryPath, defaultLibraryName)
	s := &Source{
		opts: opts, former: make(map[string]*knownGPU),
		states: stateLog{logger: opts.Logger, quiet: !opts.RequireBuild, library: opts.LibraryPath},
	}
	s.tally.Store(&Tally{})
	s.stopping, s.interrupt = context.WithCancel(context.Background())
	return s
}

// Start implements device.Source. The first Snapshot loads the library, and
// reports a missing one as the driver's state.
func (s *Source) Start(_ context.Context, emit func(device.Event)) error {
	s.emit = emit
	s.system.Host = workload.HostName(s.opts.RootPath)
	s.library = newLibrary(s.opts.LibraryPath, s.opts.Now)
	return nil
}

// Shutdown implements device.Source. It leaves the library open while a call
// hangs, because closing could hang too and the process is about to end.
func (s *Source) Shutdown(ctx context.Context) error {
	s.interrupt()
	s.mu.Lock()
	defer s.mu.Unlock()
	// The wait for events ends first, because it uses the library.
	if s.open && s.stopEvents(ctx) && processCalls.settle(ctx, shutdownGrace) {
		s.closeLibrary(ctx)
	}
	s.open = false
	return nil
}

// Snapshot implements device.Source.
func (s *Source) Snapshot(ctx context.Context) device.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := device.Snapshot{System: device.System{Host: s.system.Host}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()

	result := s.read(ctx, &snapshot)
	if ctx.Err() != nil && result == statusTimeout {
		// The receiver stops. That says nothing about the driver.
		snapshot.Driver = cmp.Or(s.states.state, device.DriverOK)
		return snapshot
	}
	snapshot.Driver = stateOf(result)
	s.states.driver(snapshot.Driver, result)
	return snapshot
}

// Tally returns the counts of the last reading.
func (s *Source) Tally() Tally { return *s.tally.Load() }

// find opens the library if it is not open, and lists its GPUs.
func (s *Source) find(ctx context.Context, now time.Time) status {
	result := s.list(ctx)
	if result == statusSuccess {
		s.adopt()
		s.listMIG(ctx)
		s.adopt()
		if len(s.gpus) == 0 {
			// NVML looks for GPUs only when it is opened, so that it is opened
			// again to find new ones.
			s.reopen(ctx)
			s.retry.failed(now)
		}
		return statusSuccess
	}
	if ctx.Err() != nil {
		return statusTimeout
	}
	if result != statusTimeout && s.open {
		s.reopen(ctx)
	}
	s.retry.failed(now)
	return result
}

// read fills the snapshot's GPUs, and returns the driver's status.
func (s *Source) read(ctx context.Context, snapshot *device.Snapshot) status {
	now := s.opts.Now()
	if !s.open && !s.retry.due(now) {
		return s.states.result
	}
	if result := s.find(ctx, now); result != statusSuccess || len(s.gpus) == 0 {
		s.tally.Store(&Tally{})
		return result
	}
	snapshot.System = s.system

	round := s.readAll(ctx, now, snapshot)
	if count := s.library.impossible.Swap(0); count > 0 {
		s.opts.Telemetry.Dropped("samples", count)
	}
	s.opts.Attribution.Complete(snapshot)
	s.tally.Store(&round.tally)
	if ctx.Err() != nil {
		return statusTimeout
	}

	if result, lost := lostSession(round.failures); lost && !round.answered {
		s.reopen(ctx)
		s.retry.failed(now)
		return result
	}
	if s.reopenForLost(ctx, now, snapshot) {
		return statusSuccess
	}
	s.retry.succeeded()
	s.watchEvents(ctx)
	for i, known := range s.gpus {
		snapshot.GPUs[i].EventsKnown = known.eventsKnown
	}
	return statusSuccess
}

// round is the result of a reading of all GPUs, beside their values.
type round struct {
	failures []failure
	// answered is true if any GPU has answered a call.
	answered bool
	tally    Tally
}

// readAll makes the calls about all GPUs. A GPU that hangs does not affect the
// others.
func (s *Source) readAll(ctx context.Context, now time.Time, snapshot *device.Snapshot) round {
	found := round{tally: Tally{GPUs: len(s.gpus), Unsupported: make(map[string]int)}}
	snapshot.GPUs = make([]device.GPU, 0, len(s.gpus))
	slowly := !now.Before(s.slowNext)
	if slowly {
		s.slowNext = now.Add(s.opts.SlowInterval)
	}
	for _, known := range s.gpus {
		if asleep(known.powerStatus) {
			// A suspended GPU is not read.
			*known.slow = slowAnswers{}
			snapshot.GPUs = append(snapshot.GPUs, device.GPU{Identity: known.identity, Asleep: true})
			found.answered = true
			continue
		}
		asked, due, processes := newReadings(known, s.opts.Telemetry), slowly || !known.slow.asked, !known.divided
		r := s.taken(ctx, known, asked, processCalls.do(ctx, s.opts.CallTimeout, known.identity.Whole(), func() { asked.fill(known.calls, due, processes) }))
		switch {
		case r.gpu.Lost || r.gpu.Unresponsive:
			*known.slow = slowAnswers{}
		case due && ctx.Err() == nil:
			listed := r.lists.merge(func() { s.opts.Telemetry.Failed("processes", string(statusTooMany)) })
			*known.slow = slowAnswers{asked: true, numbers: r.slow, listed: len(r.lists.byType) > 0, processes: s.opts.Attribution.Describe(listed)}
		}
		known.slow.apply(&r.gpu, s.opts.Attribution.Alive)
		snapshot.GPUs = append(snapshot.GPUs, r.gpu)
		found.failures = append(found.failures, r.failures...)
		found.answered = found.answered || r.answered
		for _, name := range r.unsupported {
			found.tally.Unsupported[name]++
		}
	}
	return found
}

// taken returns the answers of the calls about one GPU so far. They do not change any
// more.
func (s *Source) taken(ctx context.Context, known *knownGPU, r *readings, result outcome) answers {
	taken := r.take()
	if ctx.Err() != nil {
		// The receiver stops. That says nothing about the GPU.
		taken.failures, taken.answered = nil, true
		return taken
	}
	if result == abandoned {
		s.opts.Telemetry.Abandoned()
	}
	if result != completed {
		taken.failures = append(taken.failures, failure{call: "gpu", status: statusTimeout})
		taken.answered = taken.succeeded > 0
		taken.gpu.Unresponsive = true
	}
	for _, f := range taken.failures {
		s.opts.Telemetry.Failed(f.call, string(f.status))
		if f.status == statusGPUIsLost {
			taken.gpu.Lost, taken.gpu.Readings = true, device.Readings{}
		}
		if !taken.answered && f.status != statusNoPermission {
			taken.gpu.Unresponsive = true
		}
	}
	s.states.gpu(known, taken.failures, taken.answered)
	return taken
}

// asleep reports whether the host has suspended the device of a file with the kernel's
// status of its power. Any call about such a GPU would wake it. A device without a readable
// file counts as awake: most hosts do not suspend GPUs.
func asleep(path string) bool {
	state, err := os.ReadFile(path) //nolint:gosec // of a device in sysfs
	return err == nil && strings.TrimSpace(string(state)) == "suspended"
}

// lostInterval is the least time between two reopenings of the library for a
// lost GPU while others work.
const lostInterval = 5 * time.Minute

// reopen closes the library, so that the next reading that is due opens it
// again. It leaves the library open while a call or the wait for events hangs,
// because they still use it and closing could hang as well.
func (s *Source) reopen(ctx context.Context) {
	if !s.open || processCalls.hangs("") || !s.stopEvents(ctx) {
		return
	}
	s.closeLibrary(ctx)
	s.open, s.gpus, s.system.DriverVersion = false, nil, ""
}

// closeLibrary closes the library, which must be open.
func (s *Source) closeLibrary(ctx context.Context) {
	// There is nothing to do about an error.
	if processCalls.do(ctx, s.opts.CallTimeout, driverSubject, func() { askStatus("close", s.opts.Telemetry, s.library.close) }) == abandoned {
		s.opts.Telemetry.Abandoned()
	}
}

// reopenForLost closes the library if GPUs are lost, because a GPU cannot be
// reset or removed while this process holds it, and is found after a reset only
// by reopening the library. If all GPUs are lost, the library is reopened with
// back-off. If others work, it is reopened once in lostInterval, and only if all
// others stay initialised without this process.
func (s *Source) reopenForLost(ctx context.Context, now time.Time, snapshot *device.Snapshot) bool {
	lost := 0
	for i := range snapshot.GPUs {
		if snapshot.GPUs[i].Lost {
			lost++
		}
	}
	if lost == 0 && !s.misses() || s.reopened.IsZero() {
		s.reopened = now
	}
	if lost == len(s.gpus) {
		s.reopen(ctx)
		s.retry.failed(now)
		return true
	}
	if now.Sub(s.reopened) < lostInterval {
		return false
	}
	s.reopened = now
	for i, known := range s.gpus {
		if !snapshot.GPUs[i].Lost && !s.persistent(ctx, known) {
			return false
		}
	}
	s.reopen(ctx)
	return !s.open
}

// misses reports whether a GPU of an earlier listing is missing.
func (s *Source) misses() bool {
	for id, known := range s.former {
		if known.identity.MIG == nil && !slices.ContainsFunc(s.gpus, func(k *knownGPU) bool { return k.identity.ID == id }) {
			return true
		}
	}
	return false
}

// persistent reports whether a GPU's persistence mode is on, in which the driver keeps it
// initialised while no process uses it. A MIG device has its GPU's.
func (s *Source) persistent(ctx context.Context, known *knownGPU) bool {
	if known.identity.MIG != nil {
		return true
	}
	if asleep(known.powerStatus) {
		return false
	}
	on, result := askAbout(ctx, s, known, "persistence_mode", known.persistent)
	return result == statusSuccess && on
}
