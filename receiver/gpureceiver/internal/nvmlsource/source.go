package nvmlsource

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// driverSubject is the subject of calls that concern every GPU.
const driverSubject = "driver"

// shutdownGrace is how long Shutdown waits for calls that it interrupted.
const shutdownGrace = 500 * time.Millisecond

// defaultLibraryName is what the dynamic linker is asked for.
const defaultLibraryName = "libnvidia-ml.so.1"

// ErrUnsupportedBuild means that this program was built without cgo.
var ErrUnsupportedBuild = errors.New(`"source" "nvml" needs a collector that was built with cgo on Linux; allowed in this one are "auto" and "replay"`)

// Options are the settings of a Source.
type Options struct {
	// LibraryPath is the library to load. Empty means the dynamic linker's.
	LibraryPath string
	// RootPath is where the host's root directory is mounted. Empty means /.
	RootPath string
	// CallTimeout is how long one round of calls about one GPU may take.
	CallTimeout time.Duration
	// RequireBuild makes Start fail where the build cannot call NVML.
	RequireBuild bool
	// Logger gets one line for each change of the driver's or a GPU's state.
	Logger *zap.Logger
	// Now is the clock.
	Now func() time.Time
	// Attempted is called for each attempt to open the driver.
	Attempted func()
	// Failed is called for each call that failed, with the name of the value
	// and of the status.
	Failed func(call, status string)
}

// Source reads GPUs through NVML.
type Source struct {
	opts    Options
	host    string
	calls   *calls
	release sync.Once
	library library
	tell    func(device.Event)
	// attribution says what processes are and whose GPUs are.
	attribution *attribution

	open          bool
	retry         retry
	driverVersion string
	gpus          []*knownGPU
	states        stateLog
}

// knownGPU is a GPU whose identity is known. It stays listed while its calls
// fail.
type knownGPU struct {
	handle gpu
	// calls are the handle's.
	calls    []call
	identity device.Identity
	// state is what was last logged about the GPU: empty while it answers.
	state status
}

var _ device.Source = (*Source)(nil)

// New returns a source that has not loaded anything yet.
func New(opts Options) *Source {
	if opts.LibraryPath == "" {
		opts.LibraryPath = defaultLibraryName
	}
	return &Source{opts: opts, states: stateLog{logger: opts.Logger, quiet: !opts.RequireBuild, library: opts.LibraryPath}}
}

// Start implements device.Source. It does not load the library: that happens
// at the first Snapshot, whose result a missing library is.
func (s *Source) Start(_ context.Context, tell func(device.Event)) error {
	s.tell = tell
	s.host = workload.HostName(s.opts.RootPath)
	s.attribution = newAttribution(s.opts)
	if !buildSupported {
		if s.opts.RequireBuild {
			return ErrUnsupportedBuild
		}
		return nil
	}
	s.library = newLibrary(s.opts.LibraryPath)
	s.calls = acquireCalls()
	return nil
}

// Shutdown implements device.Source. While a call hangs it leaves the library
// open: closing it could hang too, and the process is about to end.
func (s *Source) Shutdown(ctx context.Context) error {
	if s.calls == nil {
		return nil
	}
	s.release.Do(func() {
		if s.calls.settle(ctx, shutdownGrace) && s.open {
			// The result does not matter: nothing is left to be done about it.
			_ = s.calls.do(ctx, s.opts.CallTimeout, driverSubject, func() {
				guardStatus(s.library.Close)
			})
		}
		s.open = false
		releaseCalls()
	})
	return nil
}

// Snapshot implements device.Source.
func (s *Source) Snapshot(ctx context.Context) device.Snapshot {
	snapshot := device.Snapshot{Host: s.host}
	if !buildSupported {
		snapshot.Driver = device.DriverUnsupportedBuild
		s.states.driver(snapshot.Driver, "")
		return snapshot
	}
	result := s.read(ctx, &snapshot)
	if ctx.Err() != nil && result == statusTimeout {
		// The receiver stops. That says nothing about the driver.
		snapshot.Driver = s.states.last(device.DriverOK)
		return snapshot
	}
	snapshot.Driver = stateOf(result)
	snapshot.DriverVersion = s.driverVersion
	s.states.driver(snapshot.Driver, result)
	return snapshot
}

// Watch implements device.Source.
func (s *Source) Watch(ctx context.Context) {
	if !buildSupported || !s.open && !s.retry.due(s.opts.Now()) {
		return
	}
	if result := s.list(ctx); result != statusSuccess {
		s.retry.failed(s.opts.Now())
	}
}

// read fills the snapshot's GPUs and returns the driver's status.
func (s *Source) read(ctx context.Context, snapshot *device.Snapshot) status {
	now := s.opts.Now()
	if !s.open && !s.retry.due(now) {
		return s.states.result
	}
	if result := s.list(ctx); result != statusSuccess {
		s.retry.failed(now)
		return result
	}

	if len(s.gpus) == 0 {
		// NVML looks for GPUs only when it is opened, so that one that comes
		// later is found by opening it again.
		s.close(ctx)
		s.retry.failed(now)
		return statusSuccess
	}

	var failures []failure
	answered := false
	for _, known := range s.gpus {
		read, failed, ok := s.readGPU(ctx, known)
		snapshot.GPUs = append(snapshot.GPUs, read)
		failures = append(failures, failed...)
		answered = answered || ok
	}
	s.attribution.complete(snapshot)
	if !answered {
		if result, lost := lostSession(failures); lost {
			s.close(ctx)
			s.retry.failed(now)
			return result
		}
	}
	s.retry.succeeded()
	return statusSuccess
}

// close lets the library go after the driver has.
func (s *Source) close(ctx context.Context) {
	_ = s.calls.do(ctx, s.opts.CallTimeout, driverSubject, func() { guardStatus(s.library.Close) })
	s.open = false
	s.gpus = nil
	s.driverVersion = ""
}

// readGPU makes the calls about one GPU.
func (s *Source) readGPU(ctx context.Context, known *knownGPU) (device.GPU, []failure, bool) {
	r := &readings{gpu: device.GPU{Identity: known.identity}}
	result := s.calls.do(ctx, s.opts.CallTimeout, known.identity.ID, func() {
		if r.fill(known.calls) {
			r.fillProcesses(known.handle)
		}
	})
	read, processes, failures, answered := r.take()
	if ctx.Err() != nil {
		// The receiver stops. That says nothing about the GPU.
		return read, nil, true
	}
	if result != completed {
		failures = append(failures, failure{call: "gpu", status: statusTimeout})
	}
	for _, f := range failures {
		s.opts.Failed(f.call, string(f.status))
	}
	s.states.gpu(known, failures, answered)
	if read.ProcessesKnown {
		lists := processLists{byType: map[string][]process{device.ProcessTypes[0]: processes}}
		read.Processes = s.attribution.living(s.attribution.describe(&lists))
	}
	return read, failures, answered
}
