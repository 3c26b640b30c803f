// Package page tests the live page of the built collector in a real browser,
// with telemetry of simulated workloads and of hostile senders.
//
// Whatever a test does, the browser must not report an exception, a message, a
// dialog, a violation of the page's policy or a failed request, and the page
// must not ask any other server for anything.
package page
