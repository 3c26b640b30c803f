// Package steps counts the steps of training programs by the spans of their
// optimizers and forward passes, in whatever order these arrive.
package steps
