//go:build cgo && linux

package nvmlsource

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// read fills the snapshot's GPUs. It returns the driver's status, and the targets
// of the slow round that follows.
func (s *Source) read(ctx context.Context, snapshot *device.Snapshot) (status, []slowTarget) {
	now := s.opts.Now()
	if !s.open && !s.retry.due(now) {
		return s.states.result, nil
	}
	if result := s.find(ctx, now); result != statusSuccess || len(s.gpus) == 0 {
		s.tally.Store(&Tally{})
		return result, nil
	}
	snapshot.System = s.system

	round := s.readAll(ctx, snapshot)
	if count := s.library.impossible.Swap(0); count > 0 {
		s.opts.Telemetry.Dropped("samples", count)
	}
	if ctx.Err() == nil {
		s.firstProcesses(ctx, round.answering)
	}
	for i, known := range s.gpus {
		if slices.Contains(round.answering, known) {
			known.slow.apply(&snapshot.GPUs[i], s.attribution.alive)
		}
	}
	s.attribution.complete(snapshot)
	s.tally.Store(&Tally{GPUs: len(s.gpus), Unsupported: round.unsupported})
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
	slowly := s.slowTargets(now, round.answering)
	if s.opts.ReleaseBetweenReadings && s.releasable(ctx) {
		// The slow calls have to be made before the library is closed.
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

// round is the result of a reading of all GPUs, beside their values.
type round struct {
	failures []failure
	// answered is true if any GPU has answered a call.
	answered bool
	// answering are the GPUs for which slow calls may be made.
	answering   []*knownGPU
	unsupported map[string]int
}

// readAll makes the quick calls about all GPUs. A GPU that hangs does not affect
// the others.
func (s *Source) readAll(ctx context.Context, snapshot *device.Snapshot) round {
	found := round{unsupported: make(map[string]int)}
	snapshot.GPUs = make([]device.GPU, 0, len(s.gpus))
	var durations []duration
	for _, known := range s.gpus {
		if asleep(known.powerStatus) {
			// A suspended GPU is not read.
			known.slow.clear()
			snapshot.GPUs = append(snapshot.GPUs, device.GPU{Identity: known.identity, Asleep: true})
			found.answered = true
			continue
		}
		asked := newReadings(known, s.opts.Telemetry)
		r := s.taken(ctx, known, asked, s.calls.do(ctx, s.opts.CallTimeout, known.subject(), func() { asked.fill(known.fastCalls) }))
		snapshot.GPUs = append(snapshot.GPUs, r.gpu)
		durations = append(durations, r.durations...)
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
	// Recording a duration takes longer than many calls, and the reading does
	// not need it.
	s.background.Go(func() {
		for _, d := range durations {
			s.opts.Telemetry.Called(d.call, string(d.status), d.took)
		}
	})
	return found
}

// taken returns the answers of the quick calls about one GPU so far. They do not
// change any more.
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

// suspended is the kernel's status of a device that it has put to sleep.
const suspended = "suspended"

// powerStatusPath is the file with the kernel's power status of a PCI device,
// below the host's root directory.
func powerStatusPath(rootPath, busID string) string {
	return filepath.Join("/", rootPath, "sys/bus/pci/devices", filepath.Base(busID), "power/runtime_status")
}

// asleep reports whether the host has suspended the device of a file. Any call
// about such a GPU would wake it. A device without a readable file counts as
// awake: most hosts do not suspend GPUs.
func asleep(path string) bool {
	// This runs for every GPU at every reading, and the package os would
	// prepare for a wait that the kernel's files never need.
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(file) }()
	var state [len(suspended) + 1]byte
	n, err := syscall.Read(file, state[:])
	return err == nil && strings.TrimSpace(string(state[:n])) == suspended
}
