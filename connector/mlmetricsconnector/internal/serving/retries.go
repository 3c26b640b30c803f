package serving

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

// retryRule: clients should keep retries below a tenth of their requests, by the
// retry budget of Google's Site Reliability Engineering (2016), chapter 21.
var retryRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 10}

const (
	// retryTime is how long after a failed request the same one is a retry.
	retryTime = 5 * time.Minute
	// rememberedFailures limits the failed requests of a service that are
	// remembered, a power of two.
	rememberedFailures = 512
)

// retries finds requests that repeat one which has failed.
type retries struct {
	of shift.Proportion
	// failed is a hash table of failed requests without collision handling: the
	// newer one stays.
	failed []failedRequest
	rates  rates
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
func (r *retries) add(now time.Time, s *Span, version uint8) {
	again := s.is(Resent)
	target := s.Model
	if s.is(Tool) {
		target = s.Tool
	}
	r.check(s, request{trace: s.Trace, parent: s.Parent, operation: s.Operation, target: target, arguments: s.Arguments}, &again)
	if s.RequestID != "" && s.is(Request) {
		r.check(s, request{id: s.RequestID, operation: s.Operation, target: target}, &again)
	}
	r.of.Add(now, again, version)
	if s.is(Request) {
		r.rates.add(now, s.is(Failed))
	}
}

// check sets again if the same request failed before, and remembers it if it
// failed now.
func (r *retries) check(s *Span, of request, again *bool) {
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
	// rateTime is the time over which requests are counted, keptRates how many
	// such counts are kept, of which leastRates must be known.
	rateTime, keptRates, leastRates = 5 * time.Minute, 25, 7
	// stormFactor is how many times the usual requests a storm has, stormFailed
	// the least share of them that fails, stormCount their least number.
	stormFactor, stormFailed, stormCount = 2, 0.5, 50
)

// rates counts requests and failures in equal times.
type rates struct {
	counts [keptRates]shift.Counts
	known  int
	began  time.Time
	// storm is the newest count if it is a storm, since when it began.
	storm shift.Counts
	usual int
	since time.Time
}

func (r *rates) add(now time.Time, failed bool) {
	r.advance(now)
	newest := &r.counts[0]
	newest.All++
	if failed {
		newest.Of++
	}
}

// advance ends the counts whose time is over.
func (r *rates) advance(now time.Time) {
	if r.began.IsZero() || now.Sub(r.began) > keptRates*rateTime {
		*r = rates{began: now}
	}
	for now.Sub(r.began) >= rateTime {
		r.conclude()
		copy(r.counts[1:], r.counts[:keptRates-1])
		r.counts[0] = shift.Counts{}
		r.began, r.known = r.began.Add(rateTime), min(r.known+1, keptRates-1)
	}
}

// conclude concludes whether the newest count is a storm: far more requests than
// usual, of which most fail, and no more without these.
func (r *rates) conclude() {
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
		r.usual = all[len(all)/2]
	}
	if newest.Of >= stormCount && newest.Ratio() >= stormFailed && newest.All >= stormFactor*r.usual && newest.All-newest.Of <= r.usual {
		if r.storm.All == 0 {
			r.since = r.began
		}
		r.storm = newest
		return
	}
	r.storm = shift.Counts{}
}
