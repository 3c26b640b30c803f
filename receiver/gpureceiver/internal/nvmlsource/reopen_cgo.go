//go:build cgo && linux

package nvmlsource

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// lostInterval is the least time between two reopenings of the library for a
// lost GPU while others work.
const lostInterval = 5 * time.Minute

// reopen closes the library, so that the next reading that is due opens it
// again. It leaves the library open while a call or the wait for events hangs,
// because they still use it and closing could hang as well.
func (s *Source) reopen(ctx context.Context) {
	if !s.open || s.calls.hangs("") || !s.stopEvents(ctx) {
		return
	}
	s.closeLibrary(ctx)
	s.open, s.session, s.gpus, s.system.DriverVersion = false, nil, nil, ""
}

// closeLibrary closes the library, which must be open.
func (s *Source) closeLibrary(ctx context.Context) {
	closing := s.session
	// There is nothing to do about an error.
	if s.calls.do(ctx, s.opts.CallTimeout, driverSubject, func() {
		if closing != nil {
			closing.closed.Store(true)
		}
		askStatus("close", s.opts.Telemetry, s.library.close)
	}) == abandoned {
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

// releases reports whether the library is closed between readings.
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
			s.opts.Logger.Warn("The driver stays open in spite of release_between_readings, because a GPU's persistence mode is off or unknown and the GPU would restart at each reading",
				zap.String("hw.id", known.identity.ID), zap.Int("nvidia.gpu.index", known.identity.Index))
		}
		return false
	}
	return true
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
