package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

// readyMessage is what a collector logs when all its components have started.
const readyMessage = "Everything is ready. Begin running and processing data."

// CollectorOptions say which collector to start and with what configuration.
type CollectorOptions struct {
	// Config is the configuration file. It is passed to the collector as it
	// is; what a test must change goes into a second file that the collector
	// merges over it.
	Config string
	// Merged are further configuration files, which the collector merges over
	// the first, in their order.
	Merged []string
	// Overrides are values that the second file sets, by their path with "::"
	// between the keys, as in "exporters::otlp::endpoint". Every address that
	// the configuration listens on is overridden by a free loopback port
	// without being named here.
	Overrides map[string]any
	// Env has additional environment variables as "KEY=value". References in
	// the configuration see them.
	Env []string
	// Dir is the working directory; a temporary one if empty.
	Dir string
	// FileLimit is the size in bytes that no file can exceed; 0 is without limit.
	FileLimit int64
	// FeatureGates are switched on.
	FeatureGates []string
	// HostsFile is what the collector sees as /etc/hosts; empty is the machine's.
	HostsFile string
	// NetworkOf is the id of a process whose network namespace the collector
	// joins; 0 leaves the test's.
	NetworkOf int
}

// Collector is a running collector.
type Collector struct {
	*Process
	listeners map[string]listener
}

// StartCollector starts the built collector and waits until all its components
// have started, and until it listens to the signal that stops it: it says the
// one before it does the other.
func StartCollector(tb testing.TB, options CollectorOptions) *Collector {
	tb.Helper()
	command, listeners := collectorCommand(tb, options)
	collector := &Collector{Process: Start(tb, command), listeners: listeners}
	collector.await(tb, func() error {
		if !strings.Contains(collector.Output(), readyMessage) {
			return fmt.Errorf("its log does not say %q yet", readyMessage)
		}
		if !listensTo(collector.PID(), syscall.SIGTERM) {
			return errors.New("it does not listen to SIGTERM yet")
		}
		return nil
	})
	return collector
}

// RunCollector runs the built collector to its end, and returns its exit code
// and output. The test fails if it runs longer than StartTimeout.
func RunCollector(tb testing.TB, options CollectorOptions) (int, string) {
	tb.Helper()
	command, _ := collectorCommand(tb, options)
	return Run(tb, command, StartTimeout)
}

// Address returns where the collector listens, given the path of the component
// in its configuration, as in "receivers::otlp::protocols::grpc". The path of
// the collector's own metrics is TelemetryPath.
func (c *Collector) Address(tb testing.TB, path string) string {
	tb.Helper()
	found, ok := c.listeners[path]
	if !ok {
		tb.Fatalf("the configuration has no address to listen on at %q; it has %q", path, sortedKeys(c.listeners))
	}
	return found.actual
}

// ConfiguredAddresses returns the addresses that the configuration has the
// collector listen on where no test moves them, by the paths that Address
// takes.
func (c *Collector) ConfiguredAddresses() map[string]string {
	configured := map[string]string{}
	for path, listener := range c.listeners {
		configured[path] = listener.configured
	}
	return configured
}

// AwaitHealthy waits until the health_check extension says that the collector
// is available.
func (c *Collector) AwaitHealthy(tb testing.TB) {
	tb.Helper()
	url := "http://" + c.Address(tb, "extensions::health_check")
	c.await(tb, func() error { return expectOK(tb.Context(), url) })
}

// Validate runs the collector's validate command over configuration files and
// returns its exit code and output.
func Validate(tb testing.TB, env []string, configs ...string) (int, string) {
	tb.Helper()
	return ValidateIn(tb, "", env, configs...)
}

// ValidateIn is Validate in a working directory, which relative paths of the
// configuration start from.
func ValidateIn(tb testing.TB, dir string, env []string, configs ...string) (int, string) {
	tb.Helper()
	arguments := []string{"validate"}
	for _, config := range configs {
		arguments = append(arguments, "--config", "file:"+config)
	}
	return Run(tb, Command{Name: "otelcol-ml validate", Path: CollectorBinary(tb), Args: arguments, Env: env, Dir: dir}, StartTimeout)
}

// collectorCommand returns the command that starts a collector with the
// configuration and its overrides, and the addresses that it will listen on.
func collectorCommand(tb testing.TB, options CollectorOptions) (command Command, listeners map[string]listener) {
	tb.Helper()
	var arguments []string
	config := map[string]any{}
	for _, name := range append([]string{options.Config}, options.Merged...) {
		text, err := os.ReadFile(name) //nolint:gosec // the tests name the files
		if err != nil {
			tb.Fatal(err)
		}
		var content map[string]any
		if err := yaml.Unmarshal(text, &content); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		merge(config, content)
		arguments = append(arguments, "--config", "file:"+name)
	}

	overrides, listeners := rebind(config, options.Env, func() int { return FreePort(tb) })
	for path, value := range options.Overrides {
		setPath(overrides, strings.Split(path, pathSeparator), value)
	}
	overriding, err := yaml.Marshal(overrides)
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(tb.TempDir(), "overrides.yaml")
	if err := os.WriteFile(file, overriding, 0o600); err != nil {
		tb.Fatal(err)
	}
	arguments = append(arguments, "--config", "file:"+file)
	if len(options.FeatureGates) > 0 {
		arguments = append(arguments, "--feature-gates="+strings.Join(options.FeatureGates, ","))
	}
	return Command{
		Name: "otelcol-ml",
		Path: CollectorBinary(tb),
		Args: arguments,
		// Tests send over loopback what gpu receivers and agents would.
		Env: append([]string{"OTELCOL_ML_TRUSTED_SENDERS=[loopback]"}, options.Env...),
		Dir: options.Dir,

		FileLimit: options.FileLimit,
		HostsFile: options.HostsFile,
		NetworkOf: options.NetworkOf,
	}, listeners
}

// LogErrors returns what a collector's log holds that no healthy collector
// writes: each entry of level error or above, and the first line of a crash.
func LogErrors(log string) []string {
	var found []string
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\n")
		if isLogError(line) {
			found = append(found, line)
		}
	}
	return found
}

// isLogError recognises an entry by its second column, since the first is the
// time, and messages of a crash by how the Go runtime begins them.
func isLogError(line string) bool {
	for _, crash := range []string{"panic:", "fatal error:", "Error:", "runtime:", "SIGSEGV", "WARNING: DATA RACE"} {
		if strings.HasPrefix(line, crash) {
			return true
		}
	}
	columns := strings.SplitN(line, "\t", 3)
	if len(columns) < 3 {
		return false
	}
	switch columns[1] {
	case "error", "dpanic", "panic", "fatal":
		return true
	}
	return false
}

// IsAbsentBackend reports whether an entry of a collector's log says no more
// than that an exporter could not reach its back end because nothing listens
// at that address.
func IsAbsentBackend(entry string) bool {
	return strings.Contains(entry, `"otelcol.component.kind": "exporter"`) &&
		strings.Contains(entry, "connect: connection refused")
}
