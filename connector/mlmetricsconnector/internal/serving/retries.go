package serving

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// retryTime is how long after a failed request the same one is a retry.
	retryTime = 5 * time.Minute
	// rememberedFailures limits the failed requests of a service that are
	// remembered, a power of two.
	rememberedFailures = 512
)

// Retries finds requests that repeat one which has failed.
type Retries struct {
	Repeated shift.Proportion
	// failed is a hash table of failed requests without collision handling: the
	// newer one stays.
	failed []failedRequest
	Rates  Rates
}

type failedRequest struct {
	hash uint64
	end  int64
}

var seed = maphash.MakeSeed()

// add adds a request to a model or a call of a tool.
func (r *Retries) add(now time.Time, s *Span, version uint8) {
	again := s.is(Resent)
	if s.Trace != [16]byte{} {
		again = r.repeats(s, "") || again
	}
	if s.RequestID != "" && s.is(Request) {
		again = r.repeats(s, s.RequestID) || again
	}
	r.Repeated.Add(now, again, version)
	if s.is(Request) {
		r.Rates.add(now, s.is(Failed))
	}
}

// repeats reports whether the same request, by its id or the span above it, failed before,
// and remembers it if it failed now.
func (r *Retries) repeats(s *Span, id string) (again bool) {
	if r.failed == nil {
		if !s.is(Failed) {
			return false
		}
		r.failed = make([]failedRequest, rememberedFailures)
	}
	hash := s.hash(id)
	known := &r.failed[hash%rememberedFailures]
	// A request that began before the other had failed repeats nothing.
	if waited := s.Start - known.end; known.hash == hash && waited >= 0 && waited <= int64(retryTime) {
		again, known.hash = true, 0
	}
	if s.is(Failed) {
		*known = failedRequest{hash, s.End}
	}
	return again
}

// asked is what a request asks for, with its id, or its arguments and the span above it.
type asked struct {
	id, operation, model, tool string
	arguments                  uint64
	trace                      [16]byte
	parent                     [8]byte
}

// hash returns a hash of what was asked for, and of an id, or of the span above it.
func (s *Span) hash(id string) uint64 {
	request := asked{id: id, operation: s.Operation, model: s.Model, tool: s.Tool}
	if id == "" {
		request.arguments, request.trace, request.parent = s.Arguments, s.Trace, s.Parent
	}
	return maphash.Comparable(seed, request)
}

const (
	// RateTime is the time over which requests are counted, keptRates how many
	// such counts are kept, of which leastRates must be known.
	RateTime, keptRates, leastRates = 5 * time.Minute, 25, 7
	// stormFactor is how many times the usual requests a storm has, stormFailed
	// the least share of them that fails, stormCount their least number.
	stormFactor, stormFailed, stormCount = 2, 0.5, 50
)

// Rates counts requests and failures in equal times.
type Rates struct {
	counts [keptRates]shift.Counts
	known  int
	began  time.Time
	// storm is the newest count if it is a storm, since when it began.
	storm shift.Counts
	Usual int
	Since time.Time
}

func (r *Rates) add(now time.Time, failed bool) {
	r.advance(now)
	r.counts[0].Add(shift.Counts{Of: shared.OneIf[int](failed), All: 1})
}

// advance ends the counts whose time is over.
func (r *Rates) advance(now time.Time) {
	if r.began.IsZero() || now.Sub(r.began) > keptRates*RateTime {
		*r = Rates{began: now}
	}
	for now.Sub(r.began) >= RateTime {
		r.conclude()
		copy(r.counts[1:], r.counts[:keptRates-1])
		r.counts[0] = shift.Counts{}
		r.began, r.known = r.began.Add(RateTime), min(r.known+1, keptRates-1)
	}
}

// Storm returns the newest count of requests if it is a storm, else none.
func (r *Retries) Storm(now time.Time) shift.Counts {
	r.Rates.advance(now)
	return r.Rates.storm
}

// conclude concludes whether the newest count is a storm: far more requests than
// usual, of which most fail, and no more without these.
func (r *Rates) conclude() {
	newest := r.counts[0]
	if r.storm.All == 0 {
		if r.known < leastRates {
			return
		}
		all := mlattr.Mapped(r.counts[1:r.known+1], func(count shift.Counts) int { return count.All })
		slices.Sort(all)
		r.Usual = all[len(all)/2]
	}
	if newest.Of < stormCount || newest.Ratio() < stormFailed || newest.All < stormFactor*r.Usual || newest.All-newest.Of > r.Usual {
		newest = shift.Counts{}
	} else if r.storm.All == 0 {
		r.Since = r.began
	}
	r.storm = newest
}
