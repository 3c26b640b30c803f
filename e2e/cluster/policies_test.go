package cluster

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// narrowed has the page of gateways, and admits to each part one namespace. The last argument
// is the back end's port.
const narrowed = `
gateway: {enabled: true, replicas: 1, drainSeconds: 0}
fleet: {enabled: true, accessSecret: fleet-access, tlsSecret: fleet-tls}
networkPolicy:
  clients: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}]
  scrapers:
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: prometheus}}
    - ipBlock: {cidr: %[1]s/32}
  readers: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: readers}}}]
  egress: [{to: [{ipBlock: {cidr: %[1]s/32}}], ports: [{port: %[2]s}]}]
`

// waiting is the program of a container in which the test opens connections.
const waiting = "trap exit TERM; sleep infinity & wait"

// probe is a pod of a namespace with such a container.
const probe = `
apiVersion: v1
kind: Pod
metadata: {name: probe, namespace: %s}
spec:
  containers:
    - name: probe
      image: localhost/otelcol-ml-training:1
      command: [bash, -c, '` + waiting + `']
`

// connecting is a program that prints which of its arguments, host:port, accept a connection.
const connecting = `
for target; do
	timeout 5 bash -c "exec 3<>/dev/tcp/${target/://}" 2>/dev/null && echo "$target" &
done
wait`

// admitted has what each part of the chart, and each namespace, may reach of the parts and of
// the back end.
var admitted = map[string][]string{
	"default":    {"agent:4317", "agent:4318", "backend", "kubelet"},
	"prometheus": {"agent:8888", "gpu:8888", "gateway:8888", "gateway:8889", "fleet:8888", "backend", "kubelet"},
	"readers":    {"fleet:8890", "backend", "kubelet"},
	"stranger":   {"backend", "kubelet"},
	"gpu":        {"agent:4319"},
	"agent":      {"gateway:4317"},
	"gateway":    {"fleet:4317", "backend"},
	"fleet":      nil,
}

// policies narrows the policies: what the parts have to get arrives, and all else is refused,
// but not without policies.
func (c *cluster) policies(t *testing.T, jaeger *harness.Jaeger, values, backend string) {
	_, port, err := net.SplitHostPort(backend)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "narrowed.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, narrowed, outside, port), 0o600))
	certificate := t.TempDir()
	harness.WriteCertificate(t, certificate, "otelcol-ml-fleet.monitoring.svc")
	c.kubectl(t, "create", "secret", "generic", "fleet-tls", "--namespace", "monitoring", "--from-file", certificate)
	c.kubectl(t, "create", "secret", "generic", "fleet-access", "--namespace", "monitoring", "--from-literal=token=a token of the gateways", "--from-literal=readers=ada:a long password")
	upgrade := func(more ...string) {
		t.Helper()
		c.helm(t, append([]string{"upgrade", "otelcol-ml", "deploy/helm/otelcol-ml", "--values", values, "--values", path}, more...)...)
		c.rolledOut(t)
	}
	upgrade()
	c.spansArrive(t, jaeger, 104)
	c.gatewaysCount(t, 104)
	await(t, func() bool {
		return len(harness.Select(c.samples(t, c.pods(t, "gateway")[0]), "hw_gpu_memory_usage_bytes", nil)) > 0
	}, arrival, poll, "the gateway has no GPUs")
	await(t, func() bool {
		return slices.ContainsFunc(c.samplesAt(t, c.pods(t, "fleet")[0], "8888"), func(s harness.Sample) bool {
			return strings.HasPrefix(s.Labels["__name__"], "otelcol_receiver_accepted_metric_points") && s.Value > 0
		})
	}, arrival, poll, "the page gets nothing of the gateway")

	targets := c.targets(t, backend)
	c.startProbes(t)
	every := make(map[string][]string)
	for source := range admitted {
		for target := range targets {
			// No policy is about a pod and itself.
			if !strings.HasPrefix(target, source+":") {
				every[source] = append(every[source], target)
			}
		}
	}
	c.awaitConnections(t, every, targets, admitted)
	upgrade("--set", "networkPolicy.enabled=false")
	c.awaitConnections(t, every, targets, every)
	c.kubectl(t, "delete", "namespace", "prometheus", "readers", "stranger", "--wait=false")
	c.kubectl(t, "delete", "pod", "probe", "--namespace", "default")
	c.kubectl(t, "delete", "secret", "--namespace", "monitoring", "fleet-tls", "fleet-access")
}

// targets returns the addresses of the chart's ports, of the back end and of the kubelet.
func (c *cluster) targets(t *testing.T, backend string) map[string]string {
	t.Helper()
	found := map[string]string{"backend": backend, "kubelet": net.JoinHostPort(node, "10250")}
	for part, ports := range map[string][]string{
		"agent": {"4317", "4318", "4319", "8888", "13133"}, "gpu": {"8888"}, "gateway": {"4317", "8888", "8889", "13133"}, "fleet": {"4317", "8888", "8890"},
	} {
		address := c.field(t, "{.status.podIP}", "--namespace", "monitoring", "pod", c.only(t, part))
		for _, port := range ports {
			found[part+":"+port] = net.JoinHostPort(address, port)
		}
	}
	return found
}

// only waits until a part has one pod, and returns its name.
func (c *cluster) only(t *testing.T, part string) string {
	t.Helper()
	var pods []string
	await(t, func() bool {
		pods = c.pods(t, part)
		return len(pods) == 1
	}, started, poll, "not one pod of %s", part)
	return pods[0]
}

// startProbes has a container named probe run in a pod of each namespace, and in the pods of
// the chart.
func (c *cluster) startProbes(t *testing.T) {
	t.Helper()
	for source := range admitted {
		namespace, pod := c.prober(t, source)
		switch namespace {
		case "monitoring":
			c.kubectl(t, "debug", "--namespace", namespace, "pod/"+pod, "--image", "localhost/otelcol-ml-training:1", "--container", "probe", "--", "bash", "-c", waiting)
		case "default":
			c.apply(t, fmt.Sprintf(probe, namespace))
		default:
			c.kubectl(t, "create", "namespace", namespace)
			c.apply(t, fmt.Sprintf(probe, namespace))
		}
		await(t, func() bool {
			_, err := c.try(t, "", "kubectl", "exec", "--namespace", namespace, pod, "--container", "probe", "--", "true")
			return err == nil
		}, started, poll, "no probe runs in %s", source)
	}
}

// prober returns the pod from which a namespace, or a part of the chart, connects.
func (c *cluster) prober(t *testing.T, source string) (namespace, pod string) {
	t.Helper()
	if slices.Contains([]string{"agent", "gpu", "gateway", "fleet"}, source) {
		return "monitoring", c.only(t, source)
	}
	return source, "probe"
}

// awaitConnections waits until of all connections that are tried just some are accepted.
func (c *cluster) awaitConnections(t *testing.T, tried map[string][]string, addresses map[string]string, accepted map[string][]string) {
	t.Helper()
	for source, names := range tried {
		namespace, pod := c.prober(t, source)
		want := slices.Sorted(slices.Values(accepted[source]))
		var got []string
		command := []string{"exec", "--namespace", namespace, pod, "--container", "probe", "--", "bash", "-c", connecting, "probe"}
		for _, name := range names {
			command = append(command, addresses[name])
		}
		await(t, func() bool {
			answer := strings.Fields(c.kubectl(t, command...))
			got = slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				return !slices.Contains(answer, addresses[name])
			})))
			if !slices.Equal(got, want) {
				t.Logf("from %s: %v, not yet %v", source, got, want)
			}
			return slices.Equal(got, want)
		}, arrival, poll, "%s reaches not just %v", source, want)
	}
}
