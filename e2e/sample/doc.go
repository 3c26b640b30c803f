// Package sample tests ml_sample on all that mlgen sends: what is kept is compared
// with what was sent.
package sample
