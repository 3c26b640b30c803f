package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// endpoint is one of the addresses that the collector listens on in the demo.
type endpoint struct {
	// use is what the host and port in address are for.
	use, address string
	// flag and env are the two ways to set the address; demo.yaml reads env: one
	// variable, or one of the host and one of the port.
	flag string
	env  []string
	// explicit reports whether the user set the address, so that no other one is
	// chosen.
	explicit bool
}

// demoEndpoints returns the endpoints with demo.yaml's defaults.
func demoEndpoints() []endpoint {
	return []endpoint{
		{use: "the page", flag: "view-endpoint", env: []string{"ML_VIEW_ENDPOINT"}, address: "127.0.0.1:8890"},
		{use: "OTLP over gRPC", flag: "otlp-grpc-endpoint", env: []string{"OTLP_GRPC_ENDPOINT"}, address: "127.0.0.1:4317"},
		{use: "OTLP over HTTP", flag: "otlp-http-endpoint", env: []string{"OTLP_HTTP_ENDPOINT"}, address: "127.0.0.1:4318"},
		{use: "Prometheus metrics", flag: "prometheus-endpoint", env: []string{"PROMETHEUS_ENDPOINT"}, address: "127.0.0.1:8889"},
		{use: "health check", flag: "health-endpoint", env: []string{"HEALTH_ENDPOINT"}, address: "127.0.0.1:13133"},
		{use: "the collector's own metrics", flag: "self-metrics-endpoint", env: []string{"SELF_METRICS_HOST", "SELF_METRICS_PORT"}, address: "127.0.0.1:8888"},
	}
}

// fromEnvironment reads the environment variables of the endpoint.
func (e *endpoint) fromEnvironment(lookup func(string) (string, bool)) {
	if address, _ := lookup(e.env[0]); len(e.env) == 1 {
		e.address, e.explicit = cmp.Or(address, e.address), address != ""
		return
	}
	host, _ := lookup(e.env[0])
	port, _ := lookup(e.env[1])
	defaultHost, defaultPort, _ := net.SplitHostPort(e.address)
	e.address, e.explicit = net.JoinHostPort(cmp.Or(host, defaultHost), cmp.Or(port, defaultPort)), host+port != ""
}

// environment returns the variables that set the collector's address.
func (e *endpoint) environment() []string {
	if len(e.env) == 1 {
		return []string{e.env[0] + "=" + e.address}
	}
	// The address was listened on, so it is valid.
	host, port, _ := net.SplitHostPort(e.address)
	return []string{e.env[0] + "=" + host, e.env[1] + "=" + port}
}

// reserve checks that the endpoints are free, and returns the addresses to use.
// It says which ones had to change. It opens all of them at once, so that two
// endpoints never get the same port, and closes them again. If another program
// takes one before the collector starts, the collector reports it.
func reserve(endpoints []endpoint, say func(string, ...any)) (chosen []endpoint, err error) {
	for _, e := range endpoints {
		listener, problem := net.Listen("tcp", e.address)
		if !e.explicit && errors.Is(problem, syscall.EADDRINUSE) {
			if listener, problem = net.Listen("tcp", "127.0.0.1:0"); problem == nil {
				say("note: %s is taken by another program: %s is on %s (--%s sets it)\n", e.address, e.use, listener.Addr(), e.flag)
			}
		}
		if problem != nil {
			err = errors.Join(err, fmt.Errorf("the address for %s cannot be used: %w: choose another one with --%s or %s",
				e.use, problem, e.flag, strings.Join(e.env, " and ")))
			continue
		}
		defer func() { err = errors.Join(err, listener.Close()) }()
		e.address = listener.Addr().String() // a port of 0 has become a real one
		chosen = append(chosen, e)
	}
	return chosen, err
}

// dialable returns an address to which the demo can connect: the loopback
// interface instead of all interfaces.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
