// Package sample decides which spans are kept. It knows encoded spans and what
// was read of them, and neither pdata nor the Collector.
//
// A unit is the spans of one trace that are decided together: all of a short
// trace, or the part of a trace that belongs to one training step. A step of a
// rank consists of the units of its traces, and a group of the steps that the
// ranks of a run take at the same time. A group is decided as a whole, and a unit
// without a step, a call, alone.
package sample
