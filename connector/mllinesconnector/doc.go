//go:generate mdatagen metadata.yaml
//go:generate go test ./internal/format/formatpage -run Generated -update

// Package mllinesconnector makes spans of what training programs print.
//
// Package unwrap finds the lines within what container runtimes, launchers and terminals
// make of them, format reads them by the files of its folder formats, training makes spans
// of what they say, failure finds why a program ended, and origin which run, rank and host
// a file is of.
package mllinesconnector
