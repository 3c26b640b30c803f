// Package model answers what runs, on which GPUs, and what needs a person. A Store
// passes what is received to the owners of runs, GPUs, services, calls, failures,
// changes and traces, each a package of its own, and takes a State of them for the
// page. They know neither pdata nor HTTP.
//
// It decides nothing that ml_metrics decides: states, bounds, goodput and problems
// are that connector's series. Prompts, completions and arguments of calls are
// never held. Of messages of errors the first 200 characters are, or the first 512
// with Content of the settings.
package model
