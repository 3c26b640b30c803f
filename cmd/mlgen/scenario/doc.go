// Package scenario imitates the telemetry of five machine-learning systems on
// the wire: spans, metrics and logs with their names, types and parents, in the
// requests and order of each client, including peculiarities that a consumer
// must handle.
//
// Everything is simulated. The data is a function of the seed: two runs with
// the same seed and step times send the same bytes. A scenario has no clock and
// no connection; its driver passes the time and sends the requests.
package scenario
