// Package serving finds problems of services, models and agents in what their
// spans say: requests that fail or are slow, retries, tools, answers, caches and
// the cost of tasks. It knows no telemetry format, and its memory is bounded.
package serving
