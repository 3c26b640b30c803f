package serving

import (
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

var (
	// slowRule is that of a page. Smaller shifts come and go with load.
	slowRule = shift.Rule{Least: math.Log(1.75), Blocks: 5, Demand: true}
	// throughputRule is that of a mark.
	throughputRule = shift.Rule{Least: math.Log(1.5), Blocks: 5, Demand: true}
	// lengthRule is that of a mark, for the tokens of an answer.
	lengthRule = shift.Rule{Least: math.Log(2), Blocks: 5}
	// cacheRule is that of a share, which its detector completes.
	cacheRule = shift.Rule{Least: 0.15, Blocks: 3, Mean: true}
)

const (
	// cacheable is the smallest input in tokens that providers of models cache,
	// by the documentation of OpenAI and Anthropic.
	cacheable = 1024
	// leastGenerated is the least output whose rate is measured: of a shorter one
	// the duration is that of its input.
	leastGenerated = 16
)

// Model has what is known about the requests of a service to one model.
type Model struct {
	fit                   fit
	Duration, PerToken    shift.Level
	Length                shift.Level
	Cached                shift.Level
	Truncated             shift.Proportion
	Answers               Answers
	Finished, Caches, All Share
	Newest                time.Time
}

// Share counts how much of the telemetry has an attribute.
type Share struct{ known, all float64 }

// add adds a request.
func (s *Share) add(known bool) {
	// What came long ago fades.
	const memory = 1 - 1.0/1000
	s.known, s.all = s.known*memory, s.all*memory+1
	if known {
		s.known++
	}
}

// Ratio returns the fraction, NaN without requests.
func (s *Share) Ratio() float64 {
	if s.all == 0 {
		return math.NaN()
	}
	return s.known / s.all
}

// add adds a request to the model.
func (m *Model) add(now time.Time, s *Span, version uint8) {
	m.Newest = now
	if s.is(Failed) {
		return // how long it took says nothing about those that succeed
	}
	timed := s.Seconds > 0
	m.All.add(timed)
	if timed && m.fit.learn(s) {
		if o := m.Duration.Sample(now, &slowRule); o != nil {
			*o = m.fit.duration(s, version)
		}
	}
	if timed && s.Output >= leastGenerated {
		// A shorter answer has a lower rate.
		if o := m.PerToken.Sample(now, &throughputRule); o != nil {
			*o = shift.Observation{
				Value:   math.Log(s.Seconds) - math.Log(float64(s.Output)),
				Work:    [shift.Works]float64{logTokens(s.Input), -logTokens(s.Output)},
				Version: version,
			}
		}
	}
	if s.Output > 0 {
		if o := m.Length.Sample(now, &lengthRule); o != nil {
			// It grows as answers become shorter.
			*o = shift.Observation{Value: -logTokens(s.Output), Work: noWork, Version: version}
		}
	}
	m.Finished.add(s.is(Finished))
	if s.is(Finished) {
		m.Truncated.Add(now, s.is(Cut), version)
	}
	if s.Input >= cacheable {
		m.Caches.add(s.Cached >= 0)
		if s.Cached >= 0 {
			m.Cached.Add(now, shift.Observation{
				// It grows as the share falls.
				Value: -min(float64(s.Cached)/float64(s.Input), 1), Work: noWork, Version: version,
			}, &cacheRule)
		}
	}
	m.Answers.add(now, s.Answered)
}
