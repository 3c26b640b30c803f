// Package view compares the live page's numbers with those of the collector's
// metrics endpoint, and has the tests of the page's content: GET /api/v1/state
// and the text form. How the page looks in a browser is tested in e2e/page.
//
// It shares no code with the collector.
package view
