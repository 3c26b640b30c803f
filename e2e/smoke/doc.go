// Package smoke tests the built binary by itself: it needs bin/otelcol-ml and
// python3 and no other server. It shows that the shipped configurations load
// and run, that configurations of the stock collector work unchanged, that
// every YAML block of the documentation loads, and that the lists of components
// and versions in the repository agree.
package smoke
