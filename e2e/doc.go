// Package e2e tests the built binary from outside: real clients' telemetry
// goes in, and what arrives is read from a real Jaeger and a real Prometheus
// through their own APIs, and from the files that the binary wrote.
//
// The tests need bin/otelcol-ml and the servers in .cache/servers; where one is
// missing they fail and name the make target that builds it. Package smoke
// holds the part that needs no other server.
package e2e
