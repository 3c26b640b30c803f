package mlmetricsconnector

import (
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// rememberedSources is how many of the newest sources are compared: a span has
// up to three, and its resource one.
const rememberedSources = 4

// sources returns one Source for adjacent updates of the same program and
// process. It reuses its memory for the next request.
type sources struct {
	all  []*streams.Source
	used int
	// from has sent the request.
	from share.Sender
}

// of returns the source of a resource and run.
func (s *sources) of(resource streams.Resource, run streams.Run) *streams.Source {
	// A span usually has the source of its resource or of the previous span.
	for i := s.used - 1; i >= max(0, s.used-rememberedSources); i-- {
		if known := s.all[i]; known.Run == run && known.Resource == resource {
			return known
		}
	}
	if s.used == len(s.all) {
		s.all = append(s.all, new(streams.Source))
	}
	source := s.all[s.used]
	s.used++
	*source = streams.Source{Resource: resource, Run: run, Origin: share.OriginOf(s.from, resource.Service)}
	return source
}

// reset clears all sources.
func (s *sources) reset() {
	for _, source := range s.all[:s.used] {
		*source = streams.Source{}
	}
	s.used = 0
}
