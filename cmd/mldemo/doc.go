// Mldemo is the program of "make demo". It starts the collector and the
// workload generator mlgen, shows what the collector knows about the workloads
// every two seconds, and stops both at the end.
//
// The screen is read from the collector's Prometheus endpoint, as a dashboard
// would do, and for the last failure from the files that repro_gen wrote. The
// demo computes only rates, from the counters of two scrapes. Unknown values
// are shown as a dash, never as 0.
//
// All input is treated as hostile: sizes are limited, and text is escaped
// before it reaches the terminal.
//
// It runs on Unix systems.
package main
