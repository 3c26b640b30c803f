//go:build cgo && linux

package nvmlsource

import (
	"context"
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
	calls   *calls
	library *library
	emit    func(device.Event)
	// attribution describes processes and the GPUs' owners. describing guards
	// its descriptions of processes.
	attribution *attribution
	describing  sync.Mutex

	// stopping ends at Shutdown, and with it every wait and the goroutines of
	// background.
	stopping    context.Context
	interrupt   context.CancelFunc
	background  sync.WaitGroup
	slowRunning atomic.Bool
	release     sync.Once

	// mu guards the following fields, because Shutdown can run while a reading
	// ends.
	mu      sync.Mutex
	open    bool
	retry   retry
	session *session
	gpus    []*knownGPU
	// system has the versions of the library that is or was open.
	system device.System
	// former are the GPUs by id, including those of earlier sessions.
	former map[string]*knownGPU
	states stateLog
	// slowNext is the time of the next slow round.
	slowNext time.Time
	// reopened is the time at which the library was last reopened for a lost
	// GPU.
	reopened time.Time
	// events is nil while none are reported.
	events *events
	// kept is true while the library stays open in spite of
	// ReleaseBetweenReadings, and warned is true once that was logged.
	kept, warned bool

	tally atomic.Pointer[Tally]
}

// session is the time from one opening of the library to its closing.
type session struct {
	// closed is set by the goroutine that makes the calls.
	closed atomic.Bool
}

var _ device.Source = (*Source)(nil)

// New returns a source that has not loaded the library yet.
func New(opts Options) *Source {
	if opts.LibraryPath == "" {
		opts.LibraryPath = defaultLibraryName
	}
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
	s.attribution = newAttribution(s.opts)
	s.library = newLibrary(s.opts.LibraryPath, s.opts.Now)
	s.calls = processCalls
	// The first reading then has the kubelet's answer.
	s.attribution.kubelet.Poll()
	return nil
}

// Shutdown implements device.Source. It leaves the library open while a call
// hangs, because closing could hang too and the process is about to end.
func (s *Source) Shutdown(ctx context.Context) error {
	s.interrupt()
	if s.calls == nil {
		return nil
	}
	s.release.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.background.Wait()
		s.attribution.kubelet.Shutdown(ctx)
		// The wait for events ends first, because it uses the library.
		if s.stopEvents(ctx) && s.calls.settle(ctx, shutdownGrace) && s.open {
			s.closeLibrary(ctx)
		}
		s.open = false
	})
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

	s.calls.beginRound()
	result, slowly := s.read(ctx, &snapshot)
	s.calls.endRound()
	s.startSlowRound(slowly)
	if ctx.Err() != nil && result == statusTimeout {
		// The receiver stops. That says nothing about the driver.
		snapshot.Driver = s.states.last(device.DriverOK)
		return snapshot
	}
	snapshot.Driver = stateOf(result)
	s.states.driver(snapshot.Driver, result)
	return snapshot
}

// Watch implements device.Source. It does nothing if the library is closed
// between readings, because there are no events then.
func (s *Source) Watch(ctx context.Context) device.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.ReleaseBetweenReadings && !s.kept || !s.open && !s.retry.due(s.opts.Now()) {
		return device.Snapshot{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	result := s.find(ctx, s.opts.Now())
	if ctx.Err() != nil && result == statusTimeout {
		return device.Snapshot{} // the receiver stops
	}
	// A Snapshot before the next attempt to open the library repeats this result.
	s.states.driver(stateOf(result), result)
	if result != statusSuccess {
		return device.Snapshot{}
	}
	found := device.Snapshot{System: s.system, Driver: stateOf(result)}
	if len(s.gpus) > 0 {
		s.watchEvents(ctx)
	}
	for _, known := range s.gpus {
		found.GPUs = append(found.GPUs, device.GPU{Identity: known.identity})
	}
	return found
}

// Tally returns the counts of the last reading.
func (s *Source) Tally() Tally {
	return *s.tally.Load()
}

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
