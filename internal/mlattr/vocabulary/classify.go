package vocabulary

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Default returns the Reader of all vocabularies, without aliases of a user.
var Default = sync.OnceValue(func() *Reader {
	r, err := NewReader(Options{Systems: AllSystems})
	if err != nil {
		// The tables are constants of this package.
		panic(err)
	}
	return r
})

// Classify reads one span and its resource, whether ml_enrich has read them or
// not. To read many spans, call Reader.Resource once for each resource,
// Reader.Scope once for each scope and Reader.Span with the union of the
// results, and use the Facts again.
func Classify(resource pcommon.Map, scope string, span ptrace.Span) (ofResource, ofSpan *Facts) {
	r := Default()
	ofResource, ofSpan = new(Facts), new(Facts)
	r.Resource(resource, ofResource)
	r.Span(ofResource.Systems|r.Scope(scope), span, ofSpan)
	return ofResource, ofSpan
}
