package mlattr

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Default returns the Reader of all vocabularies without a user's aliases.
var Default = sync.OnceValue(func() *Reader {
	r, err := NewReader(Options{Systems: AllSystems})
	if err != nil {
		// The tables are constants of this package.
		panic(err)
	}
	return r
})

// Classify says in canonical terms what a span and its resource state,
// whether ml_enrich has seen them or not. It is meant for one span at a time;
// who has many of one resource calls Reader.Resource once, Reader.Scope once
// a scope, and Reader.Span with the two results, reusing the Facts.
func Classify(resource pcommon.Map, scope string, span ptrace.Span) (ofResource, ofSpan *Facts) {
	r := Default()
	ofResource, ofSpan = new(Facts), new(Facts)
	r.Resource(resource, ofResource)
	r.Span(ofResource.Systems|r.Scope(scope), span, ofSpan)
	return ofResource, ofSpan
}
