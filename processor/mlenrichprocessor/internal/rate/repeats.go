package rate

import (
	"slices"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatautil"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// A client may count the same tokens more than once: by a counter, by a
// histogram of requests and by a histogram of its engine's steps. A metric that
// repeats another one yields rates only if the other one is not sent, as by a
// server whose counters are not scraped. The two may arrive in different
// requests, so Streams remembers which metrics a resource sends.

// sourceKey is the key under which Streams remembers that a resource sends a
// metric.
func (p *point) sourceKey(metric string) streamKey {
	return streamKey{p.key.instance, pdatautil.Hash(pdatautil.WithString("counts"),
		pdatautil.WithString(string(p.from[:])), pdatautil.WithString(metric))}
}

// withoutRepeats removes the points of metrics that repeat another one, if the
// resource sent that one less than streamAge ago.
func (s *Streams) withoutRepeats(points []point) []point {
	concerned := func(p point) bool { return p.meaning.Repeated || len(p.meaning.Repeats) > 0 }
	if !slices.ContainsFunc(points, concerned) {
		return points
	}
	now := s.Lock()
	defer s.Unlock()
	var last *vocabulary.Meaning // the points of a metric are adjacent
	for i := range points {
		p := &points[i]
		if p.meaning != last && p.meaning.Repeated {
			*s.All.Ensure(p.sourceKey(p.meaning.Source), now) = newest{at: uint64(now.UnixNano())}
		}
		last = p.meaning
	}
	last = nil
	repeats := false
	return slices.DeleteFunc(points, func(p point) bool {
		if p.meaning != last {
			last = p.meaning
			repeats = slices.ContainsFunc(p.meaning.Repeats, func(other string) bool {
				// Peek, since asking must not keep a metric known that is no
				// longer sent.
				known := s.All.Peek(p.sourceKey(other))
				return known != nil && now.UnixNano()-int64(known.at) <= int64(streamAge)
			})
		}
		return repeats
	})
}
