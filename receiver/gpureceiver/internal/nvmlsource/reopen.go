package nvmlsource

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// lostInterval is the least time between two openings of the library for a
// lost GPU while others work.
const lostInterval = 5 * time.Minute

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
