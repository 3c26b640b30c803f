// Package shift finds out whether what a service does has shifted from what is
// usual: a proportion by Fisher's exact test, and the level of a value by the
// medians of blocks of observations.
package shift
