// Package archive tests what is kept of telemetry for later: distribution's archive.yaml
// and replay.yaml over production.yaml, and the program examples/archive, with the built
// collector and simulated workloads.
//
// The answers of examples/archive are compared with what mlgen knows that it sent. The
// expected values share no code with the questions.
package archive
