package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// endpoint is one of the addresses that the collector listens on in the demo.
type endpoint struct {
	// use is the purpose of the address, for messages.
	use string
	// flag and env are the two ways to set the address; demo.yaml reads env. If
	// the configuration has separate keys for host and port, env is the
	// variable of the host and portEnv that of the port.
	flag, env, portEnv string
	// address is the host and port.
	address string
	// explicit reports whether the user set the address. Then no other one is
	// chosen.
	explicit bool
}

// demoEndpoints returns the endpoints with demo.yaml's defaults.
func demoEndpoints() []endpoint {
	return []endpoint{
		{use: "OTLP over gRPC", flag: "otlp-grpc-endpoint", env: "OTLP_GRPC_ENDPOINT", address: "127.0.0.1:4317"},
		{use: "OTLP over HTTP", flag: "otlp-http-endpoint", env: "OTLP_HTTP_ENDPOINT", address: "127.0.0.1:4318"},
		{use: "Prometheus metrics", flag: "prometheus-endpoint", env: "PROMETHEUS_ENDPOINT", address: "127.0.0.1:8889"},
		{use: "health check", flag: "health-endpoint", env: "HEALTH_ENDPOINT", address: "127.0.0.1:13133"},
		{use: "the collector's own metrics", flag: "self-metrics-endpoint", env: "SELF_METRICS_HOST", portEnv: "SELF_METRICS_PORT", address: "127.0.0.1:8888"},
	}
}

// fromEnvironment reads the environment variables of the endpoint.
func (e *endpoint) fromEnvironment(lookup func(string) (string, bool)) {
	host, _ := lookup(e.env)
	if e.portEnv == "" {
		if host != "" {
			e.address, e.explicit = host, true
		}
		return
	}
	port, _ := lookup(e.portEnv)
	if host == "" && port == "" {
		return
	}
	defaultHost, defaultPort, _ := net.SplitHostPort(e.address)
	e.address, e.explicit = net.JoinHostPort(cmp.Or(host, defaultHost), cmp.Or(port, defaultPort)), true
}

// environment returns the variables that set the collector's address.
func (e *endpoint) environment() map[string]string {
	if e.portEnv == "" {
		return map[string]string{e.env: e.address}
	}
	// The address was listened on, so it is valid.
	host, port, _ := net.SplitHostPort(e.address)
	return map[string]string{e.env: host, e.portEnv: port}
}

// variables returns the names of the variables for a message.
func (e *endpoint) variables() string {
	if e.portEnv == "" {
		return e.env
	}
	return e.env + " and " + e.portEnv
}

// reserve checks that the endpoints are free. It returns the addresses to use,
// with a note for each that had to change. It opens all of them at once, so
// that two endpoints never get the same port, and closes them again. If another
// program takes one before the collector starts, the collector reports it.
func reserve(endpoints []endpoint) (_ []endpoint, notes []string, err error) {
	chosen := make([]endpoint, 0, len(endpoints))
	listeners := make([]net.Listener, 0, len(endpoints))
	defer func() {
		for _, listener := range listeners {
			err = errors.Join(err, listener.Close())
		}
	}()
	var problems error
	for _, e := range endpoints {
		if invalid := validateEndpoint(e); invalid != nil {
			problems = errors.Join(problems, invalid)
			continue
		}
		listener, taken := net.Listen("tcp", e.address)
		if taken != nil {
			if e.explicit || !errors.Is(taken, syscall.EADDRINUSE) {
				problems = errors.Join(problems, unusable(e, taken))
				continue
			}
			wanted := e.address
			if listener, taken = net.Listen("tcp", "127.0.0.1:0"); taken != nil {
				problems = errors.Join(problems, unusable(e, taken))
				continue
			}
			notes = append(notes, fmt.Sprintf("%s is taken by another program: %s is on %s (--%s sets it)",
				wanted, e.use, listener.Addr(), e.flag))
		}
		listeners = append(listeners, listener)
		// A port of 0 has become a real one.
		e.address = listener.Addr().String()
		chosen = append(chosen, e)
	}
	if problems != nil {
		return nil, nil, problems
	}
	return chosen, notes, nil
}

// validateEndpoint checks the form of a host and port.
func validateEndpoint(e endpoint) error {
	_, port, err := net.SplitHostPort(e.address)
	if err == nil {
		if _, err = strconv.ParseUint(port, 10, 16); err == nil {
			return nil
		}
	}
	return fmt.Errorf("--%s (or %s): %q is not an address: want a host and a port from 0 to 65535, such as \"127.0.0.1:4317\"; 0 takes a free port",
		e.flag, e.variables(), e.address)
}

func unusable(e endpoint, reason error) error {
	if errors.Is(reason, syscall.EADDRINUSE) {
		_, port, _ := net.SplitHostPort(e.address)
		return fmt.Errorf("port %s for %s (%s) is taken by another program: stop that program, or choose another address with --%s or %s",
			port, e.use, e.address, e.flag, e.variables())
	}
	return fmt.Errorf("%s cannot listen on %q: %w: choose another address with --%s or %s", e.use, e.address, reason, e.flag, e.variables())
}

// dialable returns an address to which the demo can connect: the loopback
// interface instead of all interfaces.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
