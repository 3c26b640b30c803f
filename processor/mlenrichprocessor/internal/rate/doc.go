// Package rate answers one question: how many tokens or samples a second, and
// what does the rate rest on?
//
// A span's rates come from its own attributes. A metric's rates come from the
// difference of two points of a stream, which Streams remembers. A rate that
// would mislead is left out and counted in Skipped with its reason.
package rate
