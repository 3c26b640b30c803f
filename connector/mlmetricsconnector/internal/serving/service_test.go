package serving

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// A request without spans of services does not wait for an emission, which may have the
// lock for long.
func TestWithoutSpansOfServices(t *testing.T) {
	f := NewFleet()
	f.Observe(func(func(streams.Resource, *Span) bool) {
		if assert.True(t, f.mu.TryLock(), "it waits") {
			f.mu.Unlock()
		}
	}, time.Unix(1_800_000_000, 0))
}

// A service that is forgotten is not kept for the detectors.
func TestForgottenServicesAreNotKept(t *testing.T) {
	f, store, now := NewFleet(), streams.NewStore(streams.Limits{}), time.Unix(1_800_000_000, 0)
	f.Observe(func(yield func(streams.Resource, *Span) bool) {
		for n := range 3 {
			yield(streams.Resource{Service: strconv.Itoa(n)}, &Span{Kind: Call})
		}
	}, now)
	f.Settle(store, time.Hour, now)
	assert.Len(t, f.settled, 3)
	f.Settle(store, time.Hour, now.Add(25*time.Hour))
	assert.Zero(t, f.Services())
	kept := f.settled[:cap(f.settled)]
	assert.False(t, slices.ContainsFunc(kept, func(s *Service) bool { return s != nil }))
}
