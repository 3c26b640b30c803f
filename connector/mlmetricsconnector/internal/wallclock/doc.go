// Package wallclock attributes the time of a run: how much of it was
// productive, what the rest was used for, and how long the phases of each step
// took. It knows only phase, start and end of spans, and reads no clock.
package wallclock
