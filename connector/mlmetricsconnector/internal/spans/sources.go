package spans

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
	// names is memory of hosts.
	names []string
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

// hosts returns the hosts of all sources, of adjacent ones with the same host one. The
// result is valid until the next call.
func (s *sources) hosts() []string {
	s.names = s.names[:0]
	for i, source := range s.all[:s.used] {
		if i == 0 || source.Run.Host != s.all[i-1].Run.Host {
			s.names = append(s.names, source.Run.Host)
		}
	}
	return s.names
}

// reset clears all sources.
func (s *sources) reset() {
	for _, source := range s.all[:s.used] {
		*source = streams.Source{}
	}
	clear(s.names)
	s.used = 0
}
