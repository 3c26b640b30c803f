// Package scenario imitates the telemetry of five machine-learning systems on
// the wire: which spans, metrics and logs a client sends, with which names,
// types and parents, in which requests and in which order, with the traps that
// a consumer falls into.
//
// Everything is simulated. The data is a function of the seed: two runs with
// the same seed and step times send the same bytes. A scenario keeps no clock
// and opens no connection; its driver tells it the time and sends what it gets.
package scenario
