// Package browser drives a headless Chromium for tests, pictures and
// measurements of the live page.
//
// A Tab collects what the browser reports about the page: exceptions, messages,
// violations of the Content-Security-Policy, dialogs and requests. Nothing
// sleeps to synchronise: waits poll for a condition until a deadline and fail
// with what they last saw.
package browser
