package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/nvml"
)

const (
	// outside is the machine's address on the way to the node, as node.sh has it.
	outside = "198.18.77.1"
	node    = "198.18.77.2"
	// started is how long pods may take until they are ready.
	started = 3 * time.Minute
	// arrival is how long data may take through the collectors and a scrape of them.
	arrival = 2 * time.Minute
	poll    = 500 * time.Millisecond
)

// cluster is a running cluster of one node.
type cluster struct {
	folder string
	node   *harness.Process
	// inside is the id of the node's first process.
	inside string
}

// startCluster starts a cluster, which ends with the test.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{folder: t.TempDir()}
	harness.Binary(t, "e2e-cluster", ".cache", "servers", "kubernetes")
	require.NoError(t, os.Symlink(harness.Path(".cache", "cluster", "images"), filepath.Join(c.folder, "images")))
	library := filepath.Join(c.folder, "run", "nvml")
	require.NoError(t, os.MkdirAll(library, 0o755))
	nvml.Build(t, filepath.Join(library, "libnvidia-ml.so.1"), "COMPLETE")
	c.drive(t, "count 2")

	t.Cleanup(func() { removeGroups(t) })
	c.node = harness.Start(t, harness.Command{
		Name: "node", Path: "unshare",
		Args: []string{"--mount", "--pid", "--fork", "--net", "--kill-child=KILL",
			harness.Path("e2e", "cluster", "node.sh"), c.folder, harness.Path(".cache", "servers")},
	})
	t.Cleanup(func() { c.explainNode(t) })
	c.connect(t)
	await(t, func() bool {
		return strings.Contains(c.node.Output(), "the node is ready") || !c.node.Running()
	}, started, poll, "the node is not ready")
	require.True(t, c.node.Running(), "%s", c.node.Output())
	return c
}

// explainNode logs the end of what the parts of Kubernetes wrote if the test has failed.
func (c *cluster) explainNode(t *testing.T) {
	for _, path := range glob(t, filepath.Join(c.folder, "*.log")) {
		if log, err := os.ReadFile(path); t.Failed() && err == nil {
			t.Logf("%s:\n%s", filepath.Base(path), log[max(0, len(log)-3000):])
		}
	}
}

// connect leads a pair of interfaces, and the way to the pods, from the machine to the node.
func (c *cluster) connect(t *testing.T) {
	t.Helper()
	await(t, func() bool {
		// unshare is the parent of the node's first process.
		children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", c.node.PID()))
		c.inside = strings.TrimSpace(string(children))
		return err == nil && c.inside != "" || !c.node.Running()
	}, harness.StartTimeout, poll, "the node has not begun")
	for _, command := range []string{
		"link add ocml0 type veth peer name ocml1 netns " + c.inside,
		"address add " + outside + "/30 dev ocml0",
		"link set ocml0 up",
		"route add 10.244.0.0/24 via " + node,
	} {
		// The kernel may still be removing what a test before this one had.
		await(t, func() bool {
			return exec.CommandContext(t.Context(), "ip", strings.Fields(command)...).Run() == nil
		}, harness.StartTimeout, poll, "ip %s fails", command)
	}
}

// removeGroups removes the control groups of pods that have ended.
func removeGroups(t *testing.T) {
	t.Helper()
	var groups []string
	for _, top := range slices.Concat(glob(t, "/sys/fs/cgroup/otelcol-ml-cluster"), glob(t, "/sys/fs/cgroup/*/otelcol-ml-cluster")) {
		_ = filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
	}
	// What is below a group goes before it.
	for _, group := range slices.Backward(groups) {
		// Processes that have been killed may be in it for a moment.
		await(t, func() bool {
			err := os.Remove(group)
			return err == nil || errors.Is(err, os.ErrNotExist)
		}, 10*time.Second, poll, "%s is in use", group)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return paths
}

// drive replaces what the library of the GPUs' driver does.
func (c *cluster) drive(t *testing.T, lines ...string) {
	t.Helper()
	nvml.Set(t, filepath.Join(c.folder, "run", "nvml", "control"), lines...)
}

// try runs kubectl or helm as an administrator and returns what it prints.
func (c *cluster) try(t *testing.T, input, program string, arguments ...string) (string, error) {
	t.Helper()
	path := filepath.Join(c.folder, "bin", "kubectl")
	if program == "helm" {
		path = harness.Binary(t, "e2e-cluster", ".cache", "bin", "helm")
	}
	command := exec.CommandContext(t.Context(), path, arguments...)
	command.Env = []string{"HOME=" + c.folder, "KUBECONFIG=" + filepath.Join(c.folder, "admin.conf")}
	command.Stdin = strings.NewReader(input)
	command.Dir = harness.Path()
	output, err := command.CombinedOutput()
	return string(output), err
}

// kubectl runs kubectl, which has to succeed, and returns what it prints.
func (c *cluster) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := c.try(t, "", "kubectl", arguments...)
	require.NoError(t, err, "kubectl %s: %s", strings.Join(arguments, " "), output)
	return output
}

// helm runs helm, which has to succeed, and then waits until all pods are ready.
func (c *cluster) helm(t *testing.T, arguments ...string) {
	t.Helper()
	output, err := c.try(t, "", "helm", append(arguments, "--namespace", "monitoring", "--wait", "--timeout", started.String())...)
	if err != nil {
		c.explain(t, "monitoring")
	}
	require.NoError(t, err, "helm %s: %s", strings.Join(arguments, " "), output)
}

// apply creates or changes objects.
func (c *cluster) apply(t *testing.T, manifests string) {
	t.Helper()
	output, err := c.try(t, manifests, "kubectl", "apply", "--filename", "-")
	require.NoError(t, err, "%s", output)
}

// explain logs what is wrong with the pods of a namespace.
func (c *cluster) explain(t *testing.T, namespace string) {
	t.Helper()
	for _, question := range [][]string{{"get", "pods", "--output", "wide"}, {"get", "events"}, {"logs", "--all-containers", "--prefix", "--tail", "20", "--selector", "app.kubernetes.io/name"}} {
		answer, err := c.try(t, "", "kubectl", append(question, "--namespace", namespace)...)
		t.Log(answer, err)
	}
}

// field returns a field of objects, by JSONPath.
func (c *cluster) field(t *testing.T, path string, arguments ...string) string {
	t.Helper()
	return c.kubectl(t, append(append([]string{"get"}, arguments...), "--output", "jsonpath="+path)...)
}

// samples returns the metrics that a pod of the chart exposes.
func (c *cluster) samples(t *testing.T, pod string) []harness.Sample {
	t.Helper()
	return c.samplesAt(t, pod, "8889")
}

// samplesAt returns those that it exposes at a port.
func (c *cluster) samplesAt(t *testing.T, pod, port string) []harness.Sample {
	t.Helper()
	address := c.field(t, "{.status.podIP}", "--namespace", "monitoring", "pod", pod)
	samples, err := harness.Scrape(t.Context(), net.JoinHostPort(address, port))
	require.NoError(t, err, pod)
	return samples
}

// pods returns the names of the pods of a part of the chart.
func (c *cluster) pods(t *testing.T, part string) []string {
	t.Helper()
	return strings.Fields(c.field(t, "{.items[*].metadata.name}", "--namespace", "monitoring", "pods", "--selector", "app.kubernetes.io/component="+part))
}

// await waits until a condition holds. Unlike that of require.Eventually, the condition may
// itself fail the test.
func await(t *testing.T, holds func() bool, within, every time.Duration, message string, arguments ...any) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf(message, arguments...)
		}
		time.Sleep(every)
	}
}

// forward leads connections to a port of the machine's address outside of the node on to a
// server, as if it were a back end outside of the cluster. It returns the address.
func forward(t *testing.T, target string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(outside, "0"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				out, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
				if err != nil {
					return
				}
				defer func() { _ = out.Close() }()
				go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return listener.Addr().String()
}
