package stacks

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Stack is a system's set-up while it runs.
type Stack struct {
	project   *types.Project
	collector types.ServiceConfig
	running   *harness.Collector
	jaeger    *harness.Jaeger
	others    map[string]string
}

// Start runs the collector of a folder of testdata, with a Jaeger in the place of
// the compose file's. others are addresses of services that the test itself
// stands in for, by the host:port that the files have.
func Start(t *testing.T, name string, jaeger *harness.Jaeger, others map[string]string) *Stack {
	t.Helper()
	folder := harness.Path("e2e", "stacks", "testdata", name)
	options, err := cli.NewProjectOptions([]string{filepath.Join(folder, "compose.yaml")}, cli.WithName(name))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	s := &Stack{project: project, jaeger: jaeger, others: others}
	for _, service := range project.Services {
		if strings.HasPrefix(service.Image, "otel/opentelemetry-collector") {
			s.collector = service
		}
	}
	require.NotEmpty(t, s.collector.Name, "the compose file has no stock collector to replace")

	file := s.mounted(t, s.collector, "--config=")
	code, output := harness.Validate(t, nil, file)
	require.Zero(t, code, "%s does not validate unchanged:\n%s", file, output)
	config := readYAML(t, file)
	s.resolveAll(t, config)
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	resolved := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(resolved, text, 0o600))
	s.running = harness.StartCollector(t, harness.CollectorOptions{Config: resolved})
	return s
}

// Stop ends the collector and expects it to have been healthy.
func (s *Stack) Stop(t *testing.T) {
	t.Helper()
	assert.Zero(t, s.running.Stop(t), "exit code after SIGTERM")
	assert.Empty(t, harness.LogErrors(s.running.Output()), "errors in the collector's log")
}

// Output returns what the collector has logged.
func (s *Stack) Output() string { return s.running.Output() }

// StartPrometheus runs Prometheus with the configuration that the compose file
// mounts, against the targets that it names.
func (s *Stack) StartPrometheus(t *testing.T) *harness.Prometheus {
	t.Helper()
	service, err := s.project.GetService("prometheus")
	require.NoError(t, err)
	if len(service.Command) == 0 {
		// The image's own.
		service.Command = types.ShellCommand{"--config.file=/etc/prometheus/prometheus.yml"}
	}
	file := s.mounted(t, service, "--config.file=")
	var config struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	text, err := os.ReadFile(file) //nolint:gosec // what the compose file mounts
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &config))
	targets := map[string]string{}
	for _, scrape := range config.ScrapeConfigs {
		for _, static := range scrape.StaticConfigs {
			for _, target := range static.Targets {
				address, found := s.Resolve(t, target)
				require.True(t, found, "no service of the compose file is %s", target)
				targets[target] = address
			}
		}
	}
	require.NotEmpty(t, targets)
	prometheus := harness.StartPrometheusAt(t, file, targets)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		unhealthy, err := prometheus.UnhealthyTargets(t.Context())
		assert.NoError(c, err)
		assert.Empty(c, unhealthy)
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
	return prometheus
}

// mounted returns the file of this machine that a service has where its
// command's option says.
func (s *Stack) mounted(t *testing.T, service types.ServiceConfig, option string) string {
	t.Helper()
	for _, argument := range service.Command {
		path, found := strings.CutPrefix(argument, option)
		if !found {
			continue
		}
		for _, volume := range service.Volumes {
			if volume.Target == path {
				return volume.Source
			}
		}
	}
	require.Fail(t, "nothing is mounted", "%s has no volume for its %s…: %q, %v", service.Name, option, service.Command, service.Volumes)
	return ""
}

// resolveAll replaces each host:port of a service of the compose file.
func (s *Stack) resolveAll(t *testing.T, node any) {
	t.Helper()
	replace := func(value any, set func(string)) {
		if text, ok := value.(string); ok {
			if address, found := s.Resolve(t, text); found {
				set(address)
			}
			return
		}
		s.resolveAll(t, value)
	}
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			replace(value, func(address string) { node[key] = address })
		}
	case []any:
		for i, value := range node {
			replace(value, func(address string) { node[i] = address })
		}
	}
}

// Resolve returns where a host:port of the compose file's network is here, if
// the host is one of its services.
func (s *Stack) Resolve(t *testing.T, hostPort string) (address string, found bool) {
	t.Helper()
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return "", false
	}
	service, err := s.project.GetService(host)
	if err != nil {
		return "", false
	}
	switch address, stood := s.others[hostPort]; {
	case stood:
		return address, true
	case service.Name == s.collector.Name:
		return s.listening(t, port), true
	case strings.HasPrefix(service.Image, "jaegertracing/") && port == "4317":
		return s.jaeger.OTLPEndpoint(), true
	}
	require.Fail(t, "nothing listens there", "%s: service %s does not listen on %s", hostPort, host, port)
	return "", false
}

// listening returns where the collector listens for what its configuration has
// on a port.
func (s *Stack) listening(t *testing.T, port string) string {
	t.Helper()
	for path, configured := range s.running.ConfiguredAddresses() {
		host, listens, err := net.SplitHostPort(configured)
		require.NoError(t, err)
		if listens == port {
			assert.Equal(t, "0.0.0.0", host, "%s listens where no other container reaches it", path)
			return s.running.Address(t, path)
		}
	}
	require.Fail(t, "nothing listens there", "the collector does not listen on %s: %v", port, s.running.ConfiguredAddresses())
	return ""
}

// Published returns where the collector is reached from the host by a port that
// the compose file publishes.
func (s *Stack) Published(t *testing.T, port int) string {
	t.Helper()
	for _, published := range s.collector.Ports {
		if published.Published == strconv.Itoa(port) {
			return s.listening(t, strconv.Itoa(int(published.Target)))
		}
	}
	require.Fail(t, "the port is not published", "%d, of %v", port, s.collector.Ports)
	return ""
}

// AwaitQuery waits until a query gives samples and every one of them is as it
// should be.
func AwaitQuery(t *testing.T, prometheus *harness.Prometheus, query string, check func(c *assert.CollectT, sample harness.Sample)) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := prometheus.Query(t.Context(), query)
		assert.NoError(c, err)
		assert.NotEmpty(c, samples, "%s gives nothing", query)
		for _, sample := range samples {
			check(c, sample)
		}
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
}

func readYAML(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // the tests name the file
	require.NoError(t, err)
	var content map[string]any
	require.NoError(t, yaml.Unmarshal(text, &content))
	return content
}
