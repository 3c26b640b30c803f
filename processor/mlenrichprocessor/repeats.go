package mlenrichprocessor

import (
	"slices"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatautil"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// A client may count the same tokens more than once: vLLM by a counter, by a
// histogram of requests and by one of the steps of its engine. Of what repeats
// another metric a rate is made only where that other one is not sent, as of a
// server whose counters are not scraped. Requests that divide what was scraped
// may have one here and the other there, so it is remembered what a resource
// has sent.

// countedKey is where the store has that a resource sends a metric.
func (p *tokenPoint) countedKey(metric string) streamKey {
	return streamKey{p.key.instance, pdatautil.Hash(pdatautil.WithString("counts"),
		pdatautil.WithString(string(p.from[:])), pdatautil.WithString(metric))}
}

// withoutRepeats leaves out the points of metrics that repeat another one of
// which the resource sent points less than keyAge ago.
func (s *store) withoutRepeats(points []tokenPoint) []tokenPoint {
	concerned := func(p tokenPoint) bool { return p.meaning.Repeated || len(p.meaning.Repeats) > 0 }
	if !slices.ContainsFunc(points, concerned) {
		return points
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *mlattr.Meaning // the points of a metric come one after the other
	for i := range points {
		p := &points[i]
		if p.meaning != last && p.meaning.Repeated {
			*s.streams.ensure(p.countedKey(p.meaning.Source), now) = newest{at: uint64(now.UnixNano())}
		}
		last = p.meaning
	}
	last = nil
	repeats := false
	return slices.DeleteFunc(points, func(p tokenPoint) bool {
		if p.meaning != last {
			last = p.meaning
			repeats = slices.ContainsFunc(p.meaning.Repeats, func(other string) bool {
				// A look must not keep it known: the metric may have gone.
				known := s.streams.peek(p.countedKey(other))
				return known != nil && now.UnixNano()-int64(known.at) <= int64(keyAge)
			})
		}
		return repeats
	})
}
