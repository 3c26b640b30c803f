// Package model answers what runs, on which GPUs, and what needs a person. It
// keeps a bounded model of runs, GPUs, calls, failures, changes and traces, and
// takes a State of it for the page. It knows neither pdata nor HTTP.
//
// It decides nothing that ml_metrics decides: states, bounds, goodput and problems
// are that connector's series. Prompts, completions and arguments of calls are
// never held. Of messages of errors the first 200 characters are, or the first 512
// with Settings.Content.
package model
