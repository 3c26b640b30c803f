package nvmlsource

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// driverSubject is the subject of calls that concern every GPU.
const driverSubject = "driver"

// shutdownGrace is how long closing the library waits for a call that was left
// behind, and for the wait for events, each. It is many times eventWait, since
// a busy host lets nobody run in time.
const shutdownGrace = 3 * time.Second

// lostInterval is the least time between two openings of the library for a
// lost GPU while others work.
const lostInterval = 5 * time.Minute

// maxFormer bounds the GPUs that are remembered from one session to the next.
const maxFormer = 2 * maxGPUs

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
	// PodResourcesSocket is the kubelet's socket that says which container has
	// which GPU. Empty means that none is asked.
	PodResourcesSocket string
	// CallTimeout is how long one round of calls about one GPU may take.
	CallTimeout time.Duration
	// RequireBuild makes Start fail where the build cannot call NVML.
	RequireBuild bool
	// SlowInterval is the least time between two rounds of the slow calls. 0
	// means one after every reading.
	SlowInterval time.Duration
	// ReleaseBetweenReadings closes the library after each reading, unless a
	// GPU's persistence mode is off.
	ReleaseBetweenReadings bool
	// Wants reports whether a quantity is needed. A call that yields none that
	// is needed is not made. Nil means that all are needed.
	Wants func(*device.Quantity) bool
	// Logger gets one line for each change of the driver's or a GPU's state.
	Logger *zap.Logger
	// Now is the clock. It may be asked by several goroutines at once.
	Now func() time.Time

	// The following are called from several goroutines, too.

	// Attempted is called for each attempt to open the driver, and Opened for
	// each that succeeded.
	Attempted, Opened func()
	// Called is called for each call that has returned, with its name, what it
	// returned and how long it took.
	Called func(call, status string, took time.Duration)
	// Failed is called for each call that failed, with the name of the value
	// and of the status.
	Failed func(call, status string)
	// Dropped is called with a number of values that cannot be true and were
	// left out before they became readings.
	Dropped func(value string, count int64)
	// Abandoned is called for each call that was left behind because it did
	// not return in time, with what it was about.
	Abandoned func(subject string)
}

// complete makes every function one that can be called.
func (o *Options) complete() {
	for _, hook := range []*func(){&o.Attempted, &o.Opened} {
		if *hook == nil {
			*hook = func() {}
		}
	}
	if o.Wants == nil {
		o.Wants = func(*device.Quantity) bool { return true }
	}
	if o.Called == nil {
		o.Called = func(string, string, time.Duration) {}
	}
	if o.Failed == nil {
		o.Failed = func(string, string) {}
	}
	if o.Dropped == nil {
		o.Dropped = func(string, int64) {}
	}
	if o.Abandoned == nil {
		o.Abandoned = func(string) {}
	}
}

// Source reads GPUs through NVML.
type Source struct {
	opts    Options
	host    string
	calls   *calls
	library library
	tell    func(device.Event)
	// attribution says what processes are and whose GPUs are; describing
	// guards what it says of processes.
	attribution *attribution
	describing  sync.Mutex

	// stopping ends at Shutdown, and with it every wait. background are the
	// goroutines that then end.
	stopping    context.Context
	interrupt   context.CancelFunc
	background  sync.WaitGroup
	slowRunning atomic.Bool
	release     sync.Once

	// mu guards what follows: Shutdown may come while a reading ends.
	mu            sync.Mutex
	open          bool
	retry         retry
	driverVersion string
	cudaVersion   string
	session       *session
	gpus          []*knownGPU
	// former are the GPUs by id, also those of sessions before this one.
	former map[string]*knownGPU
	states stateLog
	// slowNext is when the next slow round is due.
	slowNext time.Time
	// reopened is when the library was last opened again for a lost GPU.
	reopened time.Time
	// events is nil while none are told.
	events *events
	// kept is true while the library is not released although it should be,
	// and warned once that was logged.
	kept, warned bool

	tallyMu sync.Mutex
	tally   Tally
}

// session is the time from one opening of the library to its closing.
type session struct {
	// closed is set by the goroutine that makes the calls.
	closed atomic.Bool
}

// Tally is what was seen at the last reading.
type Tally struct {
	// GPUs is the number of GPUs and MIG devices that the driver listed.
	GPUs int
	// Unsupported is the number of GPUs and MIG devices that do not have a
	// call, by its name.
	Unsupported map[string]int
}

// knownGPU is a GPU whose identity is known. It stays listed while its calls
// fail.
type knownGPU struct {
	handle gpu
	// calls are the handle's.
	calls    []call
	identity device.Identity
	// powerStatus is the file that says whether it sleeps.
	powerStatus string
	// state is what was last logged about the GPU: empty while it answers.
	state status

	// session is the one that the handle is of.
	session *session
	// fastCalls and slowCalls are the parts of calls.
	fastCalls, slowCalls []call
	// slow is what the slow calls have told.
	slow *slowAnswers
	// children are its MIG devices, and withoutMIG is true for a GPU that can
	// have none. leads is true for the MIG device that tells what belongs to
	// its whole GPU instance.
	children          []*knownGPU
	withoutMIG, leads bool
	// divided is true for a GPU whose MIG devices are listed: its processes
	// are theirs.
	divided bool
	// eventsTried is true once the GPU was asked for its events, and
	// eventsKnown where it tells them.
	eventsTried, eventsKnown bool
}

// subject is what a call about the GPU is about. A MIG device hangs with its
// GPU.
func (k *knownGPU) subject() string {
	if k.identity.MIG != nil {
		return k.identity.MIG.Parent
	}
	return k.identity.ID
}

var _ device.Source = (*Source)(nil)

// New returns a source that has not loaded anything yet.
func New(opts Options) *Source {
	if opts.LibraryPath == "" {
		opts.LibraryPath = defaultLibraryName
	}
	opts.complete()
	s := &Source{
		opts: opts, former: make(map[string]*knownGPU),
		states: stateLog{logger: opts.Logger, quiet: !opts.RequireBuild, library: opts.LibraryPath},
	}
	s.stopping, s.interrupt = context.WithCancel(context.Background())
	return s
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
	s.library = newLibrary(s.opts.LibraryPath, s.opts.Now)
	s.calls = acquireCalls()
	s.attribution.start()
	return nil
}

// Shutdown implements device.Source. While a call hangs it leaves the library
// open: closing it could hang too, and the process is about to end.
func (s *Source) Shutdown(ctx context.Context) error {
	s.interrupt()
	if s.calls == nil {
		return nil
	}
	s.release.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.background.Wait()
		s.attribution.shutdown(ctx)
		// The waiting for events ends first: it would be in a library that is
		// closed under it.
		if s.stopEvents(ctx) && s.calls.settle(ctx, shutdownGrace) && s.open {
			s.closeLibrary(ctx)
		}
		s.open = false
		releaseCalls()
	})
	return nil
}

// Snapshot implements device.Source.
func (s *Source) Snapshot(ctx context.Context) device.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := device.Snapshot{Host: s.host}
	if !buildSupported {
		snapshot.Driver = device.DriverUnsupportedBuild
		s.states.driver(snapshot.Driver, "")
		return snapshot
	}
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

// Watch implements device.Source. There are no events to be found where the
// library is closed between readings.
func (s *Source) Watch(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !buildSupported || s.opts.ReleaseBetweenReadings && !s.kept || !s.open && !s.retry.due(s.opts.Now()) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	result := s.find(ctx, s.opts.Now())
	if ctx.Err() != nil && result == statusTimeout {
		return // the receiver stops
	}
	// A Snapshot before the next attempt to open the library repeats this result.
	s.states.driver(stateOf(result), result)
	if result == statusSuccess && len(s.gpus) > 0 {
		s.watchEvents(ctx)
	}
}

// Tally returns what was seen at the last reading.
func (s *Source) Tally() Tally {
	s.tallyMu.Lock()
	defer s.tallyMu.Unlock()
	return s.tally
}

// find opens the library if it is not open, and lists its GPUs.
func (s *Source) find(ctx context.Context, now time.Time) status {
	result := s.list(ctx)
	if result == statusSuccess {
		s.adopt()
		s.listMIG(ctx)
		s.adopt()
		if len(s.gpus) == 0 {
			// NVML looks for GPUs only when it is opened, so that one that
			// comes later is found by opening it again.
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

// adopt prepares the GPUs that were listed for the first time in this session.
func (s *Source) adopt() {
	if s.session == nil {
		s.session = &session{}
	}
	divided := make(map[string]bool)
	for _, known := range s.gpus {
		if known.identity.MIG != nil {
			divided[known.identity.MIG.Parent] = true
		}
	}
	for _, known := range s.gpus {
		known.divided = divided[known.identity.ID]
		if known.session != nil {
			continue
		}
		known.session = s.session
		known.powerStatus = powerStatusPath(s.opts.RootPath, known.identity.PCIBusID)
		for _, c := range known.calls {
			if c.slow {
				known.slowCalls = append(known.slowCalls, c)
			} else {
				known.fastCalls = append(known.fastCalls, c)
			}
		}
		known.slow = &slowAnswers{}
		if before := s.former[known.identity.ID]; before != nil {
			known.slow, known.state = before.slow, before.state
		}
		if len(s.former) >= maxFormer {
			clear(s.former)
		}
		s.former[known.identity.ID] = known
	}
}

// read fills the snapshot's GPUs. It returns the driver's status, and what the
// slow round that follows asks.
func (s *Source) read(ctx context.Context, snapshot *device.Snapshot) (status, []slowTarget) {
	now := s.opts.Now()
	if !s.open && !s.retry.due(now) {
		return s.states.result, nil
	}
	if result := s.find(ctx, now); result != statusSuccess || len(s.gpus) == 0 {
		s.count(nil, nil)
		return result, nil
	}
	snapshot.DriverVersion, snapshot.CUDAVersion = s.driverVersion, s.cudaVersion

	round := s.readAll(ctx, snapshot)
	if sampling, can := s.library.(samplingLibrary); can {
		if count := sampling.ImpossibleSamples(); count > 0 {
			s.opts.Dropped("samples", count)
		}
	}
	var first []*knownGPU
	if ctx.Err() == nil {
		first = s.firstProcesses(ctx, round.answering)
	}
	for i, known := range s.gpus {
		if slices.Contains(round.answering, known) {
			known.slow.apply(&snapshot.GPUs[i], s.attribution.living)
		}
	}
	s.attribution.complete(snapshot)
	s.count(s.gpus, round.unsupported)
	if ctx.Err() != nil {
		return statusTimeout, nil
	}

	if result, lost := lostSession(round.failures); lost && !round.answered {
		s.reopen(ctx)
		s.retry.failed(now)
		return result, nil
	}
	if s.reopenForLost(ctx, now, snapshot) {
		return statusSuccess, nil
	}
	s.retry.succeeded()
	slowly := s.slowTargets(now, round.answering, first)
	if s.opts.ReleaseBetweenReadings && s.releasable(ctx) {
		// Nothing may be asked after the library is closed.
		s.slowRound(ctx, slowly, func() bool { return ctx.Err() == nil })
		s.reopen(ctx)
		return statusSuccess, nil
	}
	s.watchEvents(ctx)
	for i, known := range s.gpus {
		snapshot.GPUs[i].EventsKnown = known.eventsKnown
	}
	return statusSuccess, slowly
}

// round is what a reading of all GPUs has found, beside their values.
type round struct {
	failures []failure
	// answered is true where any GPU has answered anything.
	answered bool
	// answering are the GPUs that the slow calls may be asked of.
	answering   []*knownGPU
	unsupported map[string]int
}

// readAll makes the quick calls about all GPUs, of which one that hangs costs
// the others nothing.
func (s *Source) readAll(ctx context.Context, snapshot *device.Snapshot) round {
	// A GPU that sleeps is not asked.
	asked := make([]*readings, len(s.gpus))
	steps := make([]step, 0, len(s.gpus))
	for i, known := range s.gpus {
		if s.asleep(known) {
			continue
		}
		r := newReadings(known, s.opts.Called)
		asked[i] = r
		steps = append(steps, step{known.subject(), func() { r.fill(known.fastCalls) }})
	}
	outcomes := s.calls.doAll(ctx, s.opts.CallTimeout, steps)

	found := round{unsupported: make(map[string]int)}
	snapshot.GPUs = make([]device.GPU, 0, len(s.gpus))
	var durations [][]duration
	for i, known := range s.gpus {
		if asked[i] == nil {
			known.slow.clear()
			snapshot.GPUs = append(snapshot.GPUs, device.GPU{Identity: known.identity, Asleep: true})
			found.answered = true
			continue
		}
		r := s.taken(ctx, known, asked[i], outcomes[0])
		outcomes = outcomes[1:]
		snapshot.GPUs = append(snapshot.GPUs, r.gpu)
		durations = append(durations, r.durations)
		found.failures = append(found.failures, r.failures...)
		found.answered = found.answered || r.answered
		for _, name := range r.unsupported {
			found.unsupported[name]++
		}
		if r.gpu.Lost || r.gpu.Unresponsive {
			known.slow.clear()
		} else if r.answered {
			found.answering = append(found.answering, known)
		}
	}
	// Recording a duration takes longer than many a call, and nobody waits for
	// it.
	s.background.Go(func() { tellDurations(durations, s.opts.Called) })
	return found
}

// taken is what the quick calls about one GPU have told until now. It is not
// changed any more.
func (s *Source) taken(ctx context.Context, known *knownGPU, r *readings, result outcome) answers {
	taken := r.take()
	if ctx.Err() != nil {
		// The receiver stops. That says nothing about the GPU.
		taken.failures, taken.answered = nil, true
		return taken
	}
	if result == abandoned {
		s.opts.Abandoned(known.subject())
	}
	if result != completed {
		taken.failures = append(taken.failures, failure{call: "gpu", status: statusTimeout})
		taken.answered = taken.succeeded > 0
		taken.gpu.Unresponsive = true
	}
	for _, f := range taken.failures {
		s.opts.Failed(f.call, string(f.status))
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

// asleep reports whether the host has suspended a GPU, which is then left
// alone.
func (*Source) asleep(known *knownGPU) bool {
	return asleep(known.powerStatus)
}

// count keeps what the receiver's own metrics tell.
func (s *Source) count(gpus []*knownGPU, unsupported map[string]int) {
	s.tallyMu.Lock()
	defer s.tallyMu.Unlock()
	s.tally = Tally{GPUs: len(gpus), Unsupported: unsupported}
}

// reopen closes the library, so that the next reading that is due opens it
// again. It leaves it open where a call hangs, or the wait for events: closing
// it could hang as well, or pull it away under them.
func (s *Source) reopen(ctx context.Context) {
	if !s.open || s.calls.hangs("") || !s.stopEvents(ctx) {
		return
	}
	s.closeLibrary(ctx)
	s.open, s.session, s.gpus, s.driverVersion = false, nil, nil, ""
}

// closeLibrary is called only while the library is open.
func (s *Source) closeLibrary(ctx context.Context) {
	closing := s.session
	// The result does not matter: nothing is left to be done about it.
	if s.calls.do(ctx, s.opts.CallTimeout, driverSubject, func() {
		if closing != nil {
			closing.closed.Store(true)
		}
		askStatus("close", s.opts.Called, s.library.Close)
	}) == abandoned {
		s.opts.Abandoned(driverSubject)
	}
}

// reopenForLost closes the library where GPUs are lost, because a GPU that was
// reset is found only by opening it again, and a GPU cannot be reset or taken
// out while this process holds it. Where all are lost, the back-off says when
// it is opened again. Where others work it is done once in lostInterval, and
// only if all others stay initialised without this process.
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

// misses reports whether a GPU that was listed once is not listed any more.
func (s *Source) misses() bool {
	for id, known := range s.former {
		if known.identity.MIG == nil && !slices.ContainsFunc(s.gpus, func(k *knownGPU) bool { return k.identity.ID == id }) {
			return true
		}
	}
	return false
}

// samplingLibrary is a library that gives the driver's own samples.
type samplingLibrary interface {
	// ImpossibleSamples returns how many samples since the last call cannot
	// be true.
	ImpossibleSamples() int64
}

// releases reports whether the library is to be closed between readings.
func (s *Source) releases() bool {
	return s.opts.ReleaseBetweenReadings && !s.kept
}

// releasable reports whether every GPU stays initialised without this process.
func (s *Source) releasable(ctx context.Context) bool {
	s.kept = false
	for _, known := range s.gpus {
		if s.persistent(ctx, known) {
			continue
		}
		s.kept = true
		if ctx.Err() == nil && !s.warned {
			s.warned = true
			s.opts.Logger.Warn("The driver is kept open, in spite of release_between_readings: a GPU's persistence mode is off or unknown, so that the GPU would be started anew at each reading",
				zap.String("hw.id", known.identity.ID), zap.Int("nvidia.gpu.index", known.identity.Index))
		}
		return false
	}
	return true
}

// persistentGPU is a GPU that can say whether the driver keeps it initialised
// while nobody uses it.
type persistentGPU interface {
	Persistent() (bool, status)
}

// persistent reports whether a GPU's persistence mode is on. A MIG device has
// its GPU's.
func (s *Source) persistent(ctx context.Context, known *knownGPU) bool {
	handle, can := known.handle.(persistentGPU)
	if known.identity.MIG != nil {
		return true
	}
	if !can || s.asleep(known) {
		return false
	}
	on, result := askAbout(ctx, s, known, "persistence_mode", handle.Persistent)
	return result == statusSuccess && on
}
