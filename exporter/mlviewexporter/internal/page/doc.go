// Package page serves the live page: the document for a browser, the same as
// JSON and as text, and a stream of changed rows.
//
// It answers only GET and HEAD, and only requests whose Host is an address, a
// name of this machine or a configured name. Everything that it shows came from
// a sender of telemetry: it goes into the page as text, never as markup, and the
// page loads nothing from elsewhere. README.md describes the page's structure.
package page
