// Package wallclock divides the time of a run: how much of it was productive,
// what the rest was used for, and how long the phases of each step took. It
// knows spans by their phase, start and end only, and reads no clock.
package wallclock
