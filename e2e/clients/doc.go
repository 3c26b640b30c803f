// Package clients runs the programs of the folder examples, which are real
// client software, against the built collector between a real Jaeger and a
// real Prometheus. Each program writes down what it did; the tests compare that
// with what the servers' APIs return.
//
// All tests share one set of servers. They are told apart by service.name.
// A test whose program has no virtual environment (examples/venv.sh) is
// skipped, with CI=true it fails.
package clients
