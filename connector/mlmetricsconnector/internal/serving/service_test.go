package serving

import (
	"encoding/binary"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
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
	assert.Empty(t, f.services)
	f.Each(func(*Service) { t.Error("a service is left") })
}

// What makes one request of a task slow does so with all: the tail counts it once. Requests
// without a trace count each.
func TestTheTailOfATask(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := NewFleet()
	rule := shift.ProportionRule{Least: 0.02, Times: 5, Count: 10}
	task := uint64(0)
	request := func(seconds float64) {
		now = now.Add(time.Second)
		s := Unknown
		s.Kind, s.Seconds, s.Start, s.End = Agent, seconds, now.UnixNano(), now.UnixNano()
		binary.BigEndian.PutUint64(s.Trace[:], task)
		f.Observe([]Span{s}, now)
	}
	slow := func() int {
		return f.services[streams.Resource{}].Agents.Tail.Over.Find(now, &rule).Counts.Of
	}
	for range 200 {
		task++
		request(1)
	}
	assert.Zero(t, slow())
	task++
	for range 12 {
		request(10)
	}
	assert.Equal(t, 1, slow())
	task = 0
	request(10)
	request(10)
	assert.Equal(t, 3, slow())
}
