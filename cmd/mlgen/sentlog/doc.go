// Package sentlog is the log of what mlgen sent and a server acknowledged: the
// truth that an end-to-end test compares the collector's output against.
//
// The file is JSON lines. Every line is one [Entry] whose type says which of
// its other members is there:
//
//	header    the first line: format version, seed, scenarios, start
//	span      one acknowledged span
//	metric    one acknowledged data point
//	log       one acknowledged log record
//	rejected  a request that was not accepted whole; none of it is logged
//	summary   the last line of a clean end: counts and known truths
//
// A request is logged after the server's answer and before the next request of
// the same scenario, so a file without a summary is a generator that was
// killed, and everything in it did arrive. A request that the server accepted
// only in part is logged as rejected, because OTLP does not say which items
// were refused.
//
// Attribute values keep their OTLP types: a JSON number with a decimal point or
// an exponent is a double, any other is an integer; what JSON cannot write is an
// object of one member (see [Attributes]).
package sentlog
