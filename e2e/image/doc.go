// Package image tests the container image: what is in it, and that it does in
// the compose stack, between containers of Jaeger and Prometheus, what the
// binary does on a machine. `make e2e-image` builds the image and provides the
// servers' images first. Nothing else runs these tests, because not every machine
// has a container engine.
package image
