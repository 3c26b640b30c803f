// Package cache answers one question: how can much be remembered, within a
// bound and for a time, without work for the garbage collector?
//
// An LRU holds entries of one size and an Arena holds bytes of any length.
// Neither contains pointers of its own, so the garbage collector has nothing to
// follow in a full one. With golang-lru and strings in their place ml_enrich
// cost 700 ns a span in the whole collector, and 86 ns with these: see
// docs/adr/0004-caches.md. BenchmarkLRU measures the LRU alone.
package cache
