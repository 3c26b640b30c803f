// Package model answers what runs, on which GPUs, and what needs a person. It
// keeps a bounded model of runs, GPUs, calls, failures, changes and traces, and
// takes a State of it for the page. It knows neither pdata nor HTTP.
package model
