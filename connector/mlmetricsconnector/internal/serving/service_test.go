package serving

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// A request without spans of services does not wait for an emission, which may have the
// lock for long.
func TestWithoutSpansOfServices(*testing.T) {
	f := NewFleet()
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Observe(nil, time.Unix(1_800_000_000, 0))
	}()
	<-ended
}

// A service that is forgotten is not kept for the detectors.
func TestForgottenServicesAreNotKept(t *testing.T) {
	f, store, now := NewFleet(), streams.NewStore(streams.Limits{}), time.Unix(1_800_000_000, 0)
	for n := range 3 {
		f.Observe([]Span{{Resource: streams.Resource{Service: strconv.Itoa(n)}, Kind: Call}}, now)
	}
	f.Settle(store, time.Hour, now)
	seen := 0
	f.Each(func(*Service) { seen++ })
	assert.Equal(t, 3, seen)
	f.Settle(store, time.Hour, now.Add(25*time.Hour))
	assert.Zero(t, f.Services())
	f.Each(func(*Service) { t.Error("a service is left") })
}
