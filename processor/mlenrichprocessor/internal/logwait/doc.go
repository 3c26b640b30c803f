// Package logwait answers one question: which log records are ahead of their
// spans, and how long do they wait?
//
// A log record is written while its span is open, and a span leaves its process
// when it ends: records are nearly always ahead of what spans say about them.
// A Waiter keeps those that would learn nothing yet until their span or trace
// arrives, and sends them on without it when their time is up.
package logwait
