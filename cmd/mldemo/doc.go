// Mldemo is the program behind "make demo". It starts the collector and the
// workload generator mlgen, draws what the collector knows about the
// workloads every two seconds, and stops both again.
//
// The screen is read from the collector's Prometheus endpoint only, as any
// dashboard would read it, and, for the last failure, from the files that
// repro_gen wrote. Nothing on it is computed by the demo except rates, which
// are differences of counters between two scrapes. What is not known is shown
// as a dash and never as 0.
//
// Everything that is read is taken to be hostile: sizes are bounded, and text
// is escaped before it reaches the terminal.
//
// It runs on Unix systems.
package main
