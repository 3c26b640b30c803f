package serving

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
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

// request identifies a request to a model or a call of a tool: what was asked for,
// and below which span.
type request struct {
	trace                 [16]byte
	parent                [8]byte
	id, operation, target string
	arguments             uint64
}

// add adds a request to a model or a call of a tool.
func (r *Retries) add(now time.Time, s *Span, version uint8) {
	again := s.is(Resent)
	target := s.Model
	if s.is(Tool) {
		target = s.Tool
	}
	r.check(s, request{trace: s.Trace, parent: s.Parent, operation: s.Operation, target: target, arguments: s.Arguments}, &again)
	if s.RequestID != "" && s.is(Request) {
		r.check(s, request{id: s.RequestID, operation: s.Operation, target: target}, &again)
	}
	r.Repeated.Add(now, again, version)
	if s.is(Request) {
		r.Rates.add(now, s.is(Failed))
	}
}

// check sets again if the same request failed before, and remembers it if it
// failed now.
func (r *Retries) check(s *Span, of request, again *bool) {
	if of.id == "" && of.trace == [16]byte{} {
		return
	}
	if r.failed == nil {
		if !s.is(Failed) {
			return
		}
		r.failed = make([]failedRequest, rememberedFailures)
	}
	hash := of.hash()
	known := &r.failed[hash%rememberedFailures]
	// A request that began before the other had failed repeats nothing.
	if waited := s.Start - known.end; known.hash == hash && waited >= 0 && waited <= int64(retryTime) {
		*again = true
		known.hash = 0
	}
	if s.is(Failed) {
		*known = failedRequest{hash, s.End}
	}
}

// hash returns a hash of all fields, at less cost than maphash.Comparable.
func (r *request) hash() uint64 {
	var ids [len(r.trace) + len(r.parent)]byte
	copy(ids[:], r.trace[:])
	copy(ids[len(r.trace):], r.parent[:])
	hash := maphash.Bytes(seed, ids[:]) ^ r.arguments
	for _, text := range [...]string{r.id, r.operation, r.target} {
		hash = bits.RotateLeft64(hash, 23) * 0x9e3779b97f4a7c15
		if text != "" {
			hash ^= maphash.String(seed, text)
		}
	}
	return hash
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
	newest := &r.counts[0]
	newest.All++
	if failed {
		newest.Of++
	}
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
		var memory [keptRates]int
		all := memory[:0]
		for _, count := range r.counts[1 : r.known+1] {
			all = append(all, count.All)
		}
		slices.Sort(all)
		r.Usual = all[len(all)/2]
	}
	if newest.Of >= stormCount && newest.Ratio() >= stormFailed && newest.All >= stormFactor*r.Usual && newest.All-newest.Of <= r.Usual {
		if r.storm.All == 0 {
			r.Since = r.began
		}
		r.storm = newest
		return
	}
	r.storm = shift.Counts{}
}
