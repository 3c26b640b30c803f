// Package problem keeps the problems that detectors find: from when to when each
// lasts, and which ones follow from others. It does not use pdata.
package problem
