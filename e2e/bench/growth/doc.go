// Package growth computes what fleets of up to 10,000 machines need from what a
// span, a run and a series cost as measured. The tables of docs/evidence/scale.md are
// written by make bench-scale UPDATE=1; a test compares the second one with what
// follows from the first.
package growth
