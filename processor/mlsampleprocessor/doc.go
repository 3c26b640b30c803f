// Package mlsampleprocessor is the ml_sample processor. It keeps whole training
// steps and whole calls: one in N, and all that failed or were slow. The
// package moves pdata; internal/sample decides what is kept, internal/rule has
// the rules of a single decision, and internal/blob the form in which spans
// wait.
package mlsampleprocessor

//go:generate mdatagen metadata.yaml
