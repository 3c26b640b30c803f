// Package correlate answers one question: what do spans share?
//
// Spans of a trace share a session, a run and a request, although only some
// report them. A span's own keys come first, then those of its ancestors, its
// trace, the ids that it has in common with other traces, and the spans that it
// links to. A Batch holds the spans of one request while this is found out, and
// a Store what earlier requests said. Log records ask the Store.
//
// The package also finds which of several spans counts the tokens that all of
// them report, and of which epoch a span is that does not say so.
package correlate
