package nvmlsource

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// statusInsufficientSize and statusNVMLTimeout are NVML's own.
const (
	statusInsufficientSize status = "INSUFFICIENT_SIZE"
	statusNVMLTimeout      status = "TIMEOUT"
)

// slowAnswers are what the slow calls about one GPU told last. They are filled
// in the background and read by each reading.
type slowAnswers struct {
	mu sync.Mutex
	// stores put the values of the calls of the GPU's table into readings.
	stores []func(*device.Readings)
	// listed is true where the driver listed the processes.
	listed    bool
	processes []device.Process

	// asked is true once the processes were asked for. It is the readings' own.
	asked bool
	// since is the time of the last sample of the processes' utilization, in
	// the driver's microseconds. Only one round runs at a time.
	since uint64
}

// clear forgets what was told: a GPU that does not answer has no values.
func (a *slowAnswers) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stores, a.listed, a.processes = nil, false, nil
}

func (a *slowAnswers) setProcesses(listed bool, processes []device.Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed, a.processes = listed, processes
}

func (a *slowAnswers) setStores(stores []func(*device.Readings)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stores = stores
}

// apply adds what was told to a GPU that answers. Processes that have ended
// since are left out.
func (a *slowAnswers) apply(read *device.GPU, living func([]device.Process) []device.Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, store := range a.stores {
		store(&read.Readings)
	}
	if !a.listed {
		return
	}
	read.ProcessesKnown = true
	read.Processes = living(a.processes)
	for i := range read.Processes {
		// What cannot be true is taken out of a reading's own copy.
		read.Processes[i].Utilization = maps.Clone(read.Processes[i].Utilization)
	}
}

// askAbout makes one call about a GPU and waits for it.
func askAbout[T any](ctx context.Context, s *Source, known *knownGPU, name string, question func() (T, status)) (T, status) {
	type answer struct {
		value  T
		result status
	}
	// The goroutine that makes the call is never kept by nobody listening.
	answers := make(chan answer, 1)
	switch s.calls.do(ctx, s.opts.CallTimeout, known.subject(), func() {
		if known.session.closed.Load() {
			// The library was closed after this was asked.
			answers <- answer{result: statusTimeout}
			return
		}
		value, result := ask(name, s.opts.Called, question)
		answers <- answer{value, result}
	}) {
	case completed:
		given := <-answers
		if given.result != statusSuccess && given.result != statusTimeout && !given.result.unsupported() {
			s.opts.Failed(name, string(given.result))
		}
		return given.value, given.result
	case abandoned:
		if ctx.Err() == nil {
			s.opts.Abandoned(known.subject())
			s.opts.Failed(name, string(statusTimeout))
		}
	}
	var none T
	return none, statusTimeout
}

// dead reports whether nothing else is to be asked of a GPU in this round.
func (s status) dead() bool {
	return s == statusTimeout || s == statusGPUIsLost
}

// listProcesses asks which processes use a GPU and how much of it. turn is
// waited for before each call; it reports false where no more is to be asked.
func (s *Source) listProcesses(ctx context.Context, known *knownGPU, turn func() bool) {
	lists := &processLists{byType: make(map[string][]process, len(device.ProcessTypes))}
	for i, list := range []func() ([]process, status){
		known.handle.ComputeProcesses, known.handle.GraphicsProcesses, known.handle.MPSProcesses,
	} {
		kind := device.ProcessTypes[i]
		if !turn() {
			return
		}
		processes, result := askAbout(ctx, s, known, kind+"_processes", list)
		if result.dead() {
			known.slow.clear()
			return
		}
		if result == statusSuccess {
			lists.byType[kind] = processes
		}
	}
	// The driver does not sample the processes of MIG devices, and there is
	// nothing to be sampled where nobody is.
	if known.identity.MIG == nil && lists.any() && s.opts.Wants(device.ProcessUtilization) {
		if !turn() {
			return
		}
		s.sampleProcesses(ctx, known, lists)
	}
	// A GPU that listed nothing of any kind has not said that there is nobody.
	listed := len(lists.byType) > 0
	var described []device.Process
	if listed {
		s.describing.Lock()
		described = s.attribution.describe(lists)
		s.describing.Unlock()
	}
	known.slow.setProcesses(listed, described)
}

// any reports whether there is a process.
func (l *processLists) any() bool {
	for _, processes := range l.byType {
		if len(processes) > 0 {
			return true
		}
	}
	return false
}

// sampleProcesses asks what the driver sampled of the processes since the last
// round.
func (s *Source) sampleProcesses(ctx context.Context, known *knownGPU, lists *processLists) {
	since := known.slow.since
	samples, result := askAbout(ctx, s, known, "process_utilization", func() ([]processSample, status) {
		samples, result := known.handle.ProcessUtilization(since)
		if result == statusInsufficientSize {
			// The binding says so where there are no samples.
			return nil, statusSuccess
		}
		return samples, result
	})
	if result != statusSuccess {
		return
	}
	lists.samples, lists.sampled = samples, true
	for _, sample := range samples {
		known.slow.since = max(known.slow.since, sample.time)
	}
}

// askSlowly makes the slow calls of a GPU's table.
func (s *Source) askSlowly(ctx context.Context, known *knownGPU, turn func() bool) {
	if len(known.slowCalls) == 0 {
		return
	}
	var stores []func(*device.Readings)
	for i := range known.slowCalls {
		if !turn() {
			return
		}
		store, result := askAbout(ctx, s, known, known.slowCalls[i].name, known.slowCalls[i].read)
		if result.dead() {
			known.slow.clear()
			return
		}
		if result == statusSuccess {
			stores = append(stores, store)
		}
	}
	known.slow.setStores(stores)
}

// slowTarget is what a slow round asks of one GPU.
type slowTarget struct {
	known     *knownGPU
	processes bool
}

// slowRound makes the slow calls about every GPU. It goes on with the others
// where one hangs.
func (s *Source) slowRound(ctx context.Context, targets []slowTarget, turn func() bool) {
	for _, target := range targets {
		if !turn() {
			return
		}
		if s.asleep(target.known) {
			continue
		}
		if target.processes {
			s.listProcesses(ctx, target.known, turn)
		}
		s.askSlowly(ctx, target.known, turn)
	}
}

// firstProcesses lists the processes of the GPUs that were never asked for
// them, so that the first reading says already who uses a GPU.
func (s *Source) firstProcesses(ctx context.Context, answering []*knownGPU) []*knownGPU {
	if !s.opts.Wants(device.ProcessList) {
		return nil
	}
	var first []*knownGPU
	for _, known := range answering {
		if known.slow.asked || known.divided {
			continue
		}
		known.slow.asked = true
		first = append(first, known)
		s.listProcesses(ctx, known, func() bool { return ctx.Err() == nil })
	}
	return first
}

// slowTargets returns what the slow round that is due asks, nothing where
// none is.
func (s *Source) slowTargets(now time.Time, answering, first []*knownGPU) []slowTarget {
	if now.Before(s.slowNext) || len(answering) == 0 {
		return nil
	}
	s.slowNext = now.Add(s.opts.SlowInterval)
	done := make(map[*knownGPU]bool, len(first))
	for _, known := range first {
		done[known] = true
	}
	targets := make([]slowTarget, 0, len(answering))
	for _, known := range answering {
		target := slowTarget{known: known, processes: s.opts.Wants(device.ProcessList) && !known.divided && !done[known]}
		if target.processes || len(known.slowCalls) > 0 {
			targets = append(targets, target)
		}
	}
	return targets
}

// startSlowRound makes a slow round in the background, unless one is still
// under way. It lets every reading go before each of its calls.
func (s *Source) startSlowRound(targets []slowTarget) {
	if len(targets) == 0 || !s.slowRunning.CompareAndSwap(false, true) {
		return
	}
	s.background.Go(func() {
		defer s.slowRunning.Store(false)
		s.slowRound(s.stopping, targets, func() bool { return s.calls.waitForIdle(s.stopping) })
	})
}
