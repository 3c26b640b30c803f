// Package steps counts training steps from the spans of optimizers and forward
// passes, in whatever order these arrive.
package steps
