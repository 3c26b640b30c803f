//go:build cgo && linux

package nvmlsource

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// slowAnswers are the last answers of the slow calls about one GPU. The
// background fills them, and each reading uses them.
type slowAnswers struct {
	mu     sync.Mutex
	values values
	// listed is true if the driver listed the processes.
	listed    bool
	processes []device.Process

	// asked is true once the processes were listed or tried, and fresh if that was
	// in this reading. Only readings use them.
	asked, fresh bool
	// since is the time of the last sample of the processes' utilization, in
	// the driver's microseconds. Only one round runs at a time.
	since uint64
}

// clear removes the answers, because a GPU that does not answer has no values.
func (a *slowAnswers) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.values, a.listed, a.processes = nil, false, nil
}

// set changes the answers.
func (a *slowAnswers) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// apply adds the answers to a GPU's readings. It leaves out processes that have
// ended since.
func (a *slowAnswers) apply(read *device.GPU, alive func([]device.Process) []device.Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.values.store(&read.Readings)
	if !a.listed {
		return
	}
	read.ProcessesKnown = true
	read.Processes = alive(a.processes)
	for i := range read.Processes {
		// Impossible values are removed from this copy.
		read.Processes[i].Utilization = maps.Clone(read.Processes[i].Utilization)
	}
}

// askAbout makes one call about a GPU and waits for it.
func askAbout[T any](ctx context.Context, s *Source, known *knownGPU, name string, question func() (T, status)) (T, status) {
	type answer struct {
		value  T
		result status
	}
	given, outcome := request(ctx, s, known.subject(), func() answer {
		if known.session.closed.Load() {
			// The library was closed before the call was made.
			return answer{result: statusTimeout}
		}
		value, result := ask(name, s.opts.Telemetry, question)
		return answer{value, result}
	}, func(answer) {})
	switch {
	case given.result == "":
		given.result = statusTimeout
		if outcome == abandoned && ctx.Err() == nil {
			s.opts.Telemetry.Failed(name, string(statusTimeout))
		}
	case given.result != statusSuccess && given.result != statusTimeout && !given.result.unsupported():
		s.opts.Telemetry.Failed(name, string(given.result))
	}
	return given.value, given.result
}

// listProcesses lists the processes of a GPU and their use of it. It calls turn
// before each call, which waits and reports false to stop.
func (s *Source) listProcesses(ctx context.Context, known *knownGPU, turn func() bool) {
	lists := &processLists{byType: make(map[string][]nvml.ProcessInfo, len(device.ProcessTypes))}
	for i, list := range known.processLists() {
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
	// The driver does not sample the processes of MIG devices.
	if known.identity.MIG == nil && slices.ContainsFunc(device.ProcessTypes, func(kind string) bool { return len(lists.byType[kind]) > 0 }) && s.opts.Wants(device.ProcessUtilization) {
		if !turn() {
			return
		}
		s.sampleProcesses(ctx, known, lists)
	}
	// If every list failed, the processes are unknown.
	listed := len(lists.byType) > 0
	var described []device.Process
	if listed {
		s.describing.Lock()
		described = s.attribution.describe(lists)
		s.describing.Unlock()
	}
	known.slow.set(func() { known.slow.listed, known.slow.processes = listed, described })
}

// sampleProcesses reads the driver's samples of processes since the last round.
func (s *Source) sampleProcesses(ctx context.Context, known *knownGPU, lists *processLists) {
	since := known.slow.since
	samples, result := askAbout(ctx, s, known, "process_utilization", func() ([]nvml.ProcessUtilizationSample, status) {
		return known.processUtilization(since)
	})
	if result != statusSuccess {
		return
	}
	lists.samples, lists.sampled = samples, true
	for _, sample := range samples {
		known.slow.since = max(known.slow.since, sample.TimeStamp)
	}
}

// askSlowly makes the slow calls about a GPU's readings.
func (s *Source) askSlowly(ctx context.Context, known *knownGPU, turn func() bool) {
	if len(known.slowCalls) == 0 {
		return
	}
	var all values
	for i := range known.slowCalls {
		if !turn() {
			return
		}
		read, result := askAbout(ctx, s, known, known.slowCalls[i].name, func() (read values, result status) {
			result = known.slowCalls[i].read(&read)
			return read, result
		})
		if result.dead() {
			known.slow.clear()
			return
		}
		if result == statusSuccess {
			all = append(all, read...)
		}
	}
	known.slow.set(func() { known.slow.values = all })
}

// slowTarget is a GPU of a slow round, and whether to list its processes.
type slowTarget struct {
	known     *knownGPU
	processes bool
}

// slowRound makes the slow calls about every GPU. A GPU that hangs does not
// affect the others.
func (s *Source) slowRound(ctx context.Context, targets []slowTarget, turn func() bool) {
	for _, target := range targets {
		if !turn() {
			return
		}
		if asleep(target.known.powerStatus) {
			continue
		}
		if target.processes {
			s.listProcesses(ctx, target.known, turn)
		}
		s.askSlowly(ctx, target.known, turn)
	}
}

// firstProcesses lists the processes of new GPUs, so that their first reading
// has them.
func (s *Source) firstProcesses(ctx context.Context, answering []*knownGPU) {
	for _, known := range answering {
		known.slow.fresh = s.opts.Wants(device.ProcessList) && !known.slow.asked && !known.divided
		if known.slow.fresh {
			known.slow.asked = true
			s.listProcesses(ctx, known, func() bool { return ctx.Err() == nil })
		}
	}
}

// slowTargets returns the targets of a slow round, or nothing if none is due.
func (s *Source) slowTargets(now time.Time, answering []*knownGPU) []slowTarget {
	if now.Before(s.slowNext) || len(answering) == 0 {
		return nil
	}
	s.slowNext = now.Add(s.opts.SlowInterval)
	targets := make([]slowTarget, 0, len(answering))
	for _, known := range answering {
		target := slowTarget{known: known, processes: s.opts.Wants(device.ProcessList) && !known.divided && !known.slow.fresh}
		if target.processes || len(known.slowCalls) > 0 {
			targets = append(targets, target)
		}
	}
	return targets
}

// startSlowRound starts a slow round in the background, unless one still runs.
// Readings take precedence over each of its calls.
func (s *Source) startSlowRound(targets []slowTarget) {
	if len(targets) == 0 || !s.slowRunning.CompareAndSwap(false, true) {
		return
	}
	s.background.Go(func() {
		defer s.slowRunning.Store(false)
		s.slowRound(s.stopping, targets, func() bool { return s.calls.waitForIdle(s.stopping) })
	})
}
