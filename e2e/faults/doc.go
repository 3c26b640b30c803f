// Package faults runs the built collector with the shipped configurations
// through faults of its surroundings (signals, kills, back ends that fail, disks
// that fill, files that are damaged) and compares the ids of the spans that it
// acknowledged with the ids that the back end received.
//
// TestFaults runs the table of faults, with -short only those that are fast.
// With -update it writes what it counted into docs/evidence/reliability.md.
package faults
