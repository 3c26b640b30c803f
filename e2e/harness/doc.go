// Package harness runs the built collector and the servers around it for
// tests: it starts processes on free loopback ports, waits until they say that
// they are ready, stops them and reports how they ended, and speaks the
// servers' APIs.
//
// Nothing here sleeps to synchronise. Each wait polls for a condition until a
// deadline and fails the test with what it last saw. A process that is still
// running when its test ends is killed, and the end of its output is shown if
// the test failed.
package harness
