package correlate

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// Verdict is whether a span that looks like a request to a model counts, or why not.
type Verdict uint8

// Another scope reports the same response id, or the same model and usage, at the same
// time; spans above or below report the request; the span names a model, and states neither
// an operation nor tokens; it counts.
const (
	RepeatedID Verdict = iota
	RepeatedTimes
	InChain
	Unstated
	Counts
	verdicts
)

// Judged is how many spans look like requests to models, by their verdicts.
type Judged [verdicts]int64

// maxScopes is how many scopes are told apart.
const maxScopes = 256

// SetScope says of which instrumentation scope the next spans are.
func (b *Batch) SetScope(name string) {
	b.scope = cache.Hash(name)
	b.scopes = append(b.scopes, name)
}

// judge returns the verdict about a span. Of one that does not look like a request, or was
// seen before, there is none.
func (n *span) judge() Verdict {
	switch {
	case n.unstated:
		return Unstated
	case n.joined && n.twin:
		return RepeatedTimes
	case n.joined:
		return RepeatedID
	case !n.countable || n.repeated:
		return verdicts
	case n.covered || n.wrapper || n.askedOnce && !n.uses:
		return InChain
	}
	return Counts
}

// judge counts the spans of a batch by their scopes and verdicts.
func (s *Store) judge(b *Batch) {
	s.Lock()
	defer s.Unlock()
	for i := range b.spans {
		verdict := b.spans[i].judge()
		if verdict == verdicts {
			continue
		}
		s.judged[verdict]++
		scope := mlattr.CutText(b.scopes[b.spans[i].scope], mlattr.MaxText)
		if judged := shared.Bounded(&s.scopes, scope, maxScopes, strings.Clone); judged != nil {
			judged[verdict]++
		}
	}
}

// Judged returns how many spans were judged since the store was made, also of each of the
// first scopes.
func (s *Store) Judged() (all Judged, scopes map[string]Judged) {
	s.Lock()
	defer s.Unlock()
	scopes = make(map[string]Judged)
	for name, judged := range s.scopes {
		scopes[name] = *judged
	}
	return s.judged, scopes
}
