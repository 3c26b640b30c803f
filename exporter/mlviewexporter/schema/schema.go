// Package schema has the JSON schema of the documents that the page serves.
package schema

import _ "embed"

// State is the JSON schema (draft 2020-12) of GET /api/v1/state. Its definitions
// RunDetail, Comparison, Report, Trace and Rows describe GET /api/v1/runs/{key}, its
// compare and its report, GET /api/v1/traces/{id} and the event rows of GET
// /api/v1/events; the event state has a State. New fields may be added; fields keep their meaning as long as
// version stays the same.
//
//go:generate go test . -run TestSchemaIsThatOfTheTypes -update
//go:embed state.schema.json
var State []byte
