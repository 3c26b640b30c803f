// Package mlattr has the names that components of otelcol-ml share: canonical
// attributes, kinds of problems and of changes, and the other names and values of
// names.yaml. It reads single values that arrive as text, integers or doubles. It depends
// on pdata and a reader of YAML only, so that every component can use it.
//
// Package table describes what a client sends, package clients has a table for each, and
// package vocabulary reads spans, points and resources by them.
package mlattr

//go:generate go test . ./table ./clients ./vocabulary -run TestTablesAreGenerated -update
//go:generate go test ./vocabularypage -run Generated -update
