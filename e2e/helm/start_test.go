package helm

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// arrival is how long data may take through the collectors, and poll how often a
// test looks.
const (
	arrival = time.Minute
	poll    = 100 * time.Millisecond
)

// surroundings is what a test gives a collector in place of a cluster.
type surroundings struct {
	// variables take the place of variables that the pod must have.
	variables map[string]string
	// added are further variables, as "KEY=value".
	added []string
	// overrides are settings, by their path.
	overrides map[string]any
	// folders take the place of mounted ones, by their path in the pod.
	folders map[string]string
}

// agentImage is the smaller image of the files of values.
const agentImage = "registry.example/otelcol-ml-agent"

// TestTheSmallerImage is of pods that need nothing that it lacks.
func TestTheSmallerImage(t *testing.T) {
	const agents, readers, none = "agent", "gpu", ""
	for set, want := range map[string]string{
		"gpu.enabled=true":                                    agents + readers,
		"agent.kubernetesAttributes=true":                     readers,
		"agent.trainingLogs=true":                             readers,
		"gateway.enabled=true":                                readers,
		"image.agentRepository=":                              none,
		"image.agentDigest=sha256:" + strings.Repeat("a", 64): agents + readers,
	} {
		for part, workload := range workloads(render(t, "--values", valuesFile("agents"), "--set", set)) {
			assert.Equal(t, strings.Contains(want, part), strings.Contains(workload.container(t).Image, agentImage), "%s: %s", set, part)
		}
	}
}

// startPod starts the built collector as a pod of a part would: with its files, its
// arguments and its environment. Ports are free ones of the loopback interface, and
// /state is a temporary folder.
func startPod(t *testing.T, objects []metav1.Object, part string, around surroundings) *harness.Collector {
	t.Helper()
	workload := workloads(objects)[part]
	require.NotNil(t, workload.Object, part)
	container := workload.container(t)
	files := mountedConfigs(t, objects, workload, around.folders)
	require.NotEmpty(t, files)

	state := t.TempDir()
	env := slices.Clone(around.added)
	missing := maps.Clone(around.variables)
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = "from elsewhere"
		}
		if other, ok := around.variables[variable.Name]; ok {
			value = other
			delete(missing, variable.Name)
		}
		if rest, ok := strings.CutPrefix(value, "/state/"); ok {
			value = filepath.Join(state, rest)
		}
		for mounted, folder := range around.folders {
			if rest, ok := strings.CutPrefix(value, mounted+"/"); ok {
				value = filepath.Join(folder, rest)
			}
		}
		env = append(env, variable.Name+"="+value)
	}
	require.Empty(t, missing, "the pod of %s lacks variables", part)

	code, output := harness.Validate(t, env, files...)
	require.Zero(t, code, output)
	if strings.Contains(container.Image, agentImage) {
		arguments := []string{"validate"}
		for _, file := range files {
			arguments = append(arguments, "--config", file)
		}
		code, output = harness.Run(t, harness.Command{
			Name: "otelcol-ml-agent validate", Path: harness.Binary(t, "build", "bin", "otelcol-ml-agent"), Args: arguments, Env: env,
		}, harness.StartTimeout)
		require.Zero(t, code, output)
	}
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: files[0], Merged: files[1:], Env: env, Overrides: around.overrides,
	})
	collector.AwaitHealthy(t)
	checkListeners(t, workload, collector)
	return collector
}

// mountedConfigs writes the ConfigMap of a workload to files, with other folders, and
// returns those that the container's arguments name.
func mountedConfigs(t *testing.T, objects []metav1.Object, workload workload, folders map[string]string) []string {
	t.Helper()
	const folder = "/etc/otelcol-ml/"
	container := workload.container(t)
	mounted := slices.IndexFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool { return mount.MountPath+"/" == folder })
	require.GreaterOrEqual(t, mounted, 0)
	volume := slices.IndexFunc(workload.pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.Name == container.VolumeMounts[mounted].Name
	})
	require.GreaterOrEqual(t, volume, 0)
	config := named[*corev1.ConfigMap](t, objects, workload.pod.Spec.Volumes[volume].ConfigMap.Name)

	var files []string
	for _, argument := range container.Args {
		name, found := strings.CutPrefix(argument, "--config="+folder)
		require.True(t, found, argument)
		require.Contains(t, config.Data, name)
		text := config.Data[name]
		for mounted, folder := range folders {
			text = strings.ReplaceAll(text, mounted+"/", folder+"/")
		}
		files = append(files, filepath.Join(t.TempDir(), name))
		require.NoError(t, os.WriteFile(files[len(files)-1], []byte(text), 0o600))
	}
	assert.Len(t, config.Data, len(files), "each file is read")
	return files
}

// checkListeners expects the collector to open the ports of its container to other
// pods, and no port but an agent's live page to nobody.
func checkListeners(t *testing.T, workload workload, collector *harness.Collector) {
	t.Helper()
	open := map[int]bool{}
	for path, address := range collector.ConfiguredAddresses() {
		host, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		if (path == "exporters::ml_view" && !listens(t, workload, "page")) || (path == "exporters::prometheus" && !listens(t, workload, "metrics")) {
			assert.Equal(t, "127.0.0.1", host, path)
			continue
		}
		assert.Equal(t, "0.0.0.0", host, path)
		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		open[number] = true
	}
	declared := map[int]bool{}
	for _, port := range workload.container(t).Ports {
		declared[int(port.ContainerPort)] = true
	}
	assert.Equal(t, declared, open, workload.GetName())
}

func listens(t *testing.T, workload workload, name string) bool {
	t.Helper()
	return slices.ContainsFunc(workload.container(t).Ports, func(port corev1.ContainerPort) bool { return port.Name == name })
}

// stop ends a collector and expects it to have been healthy.
func stop(t *testing.T, collector *harness.Collector) {
	t.Helper()
	assert.Zero(t, collector.Stop(t), "exit code after SIGTERM")
	assert.Empty(t, harness.LogErrors(collector.Output()), "errors in the log")
}

// Each pod of each file of values starts. A span that an agent receives arrives at
// the back end, through a gateway if there are gateways, and what the reader of
// GPUs says of the driver becomes a metric of the part that Prometheus reads.
func TestPodsStart(t *testing.T) {
	forEachValues(t, func(t *testing.T, _ string, objects []metav1.Object) {
		parts := workloads(objects)
		folders := secretFolders(t, objects)
		sink := harness.StartSink(t)
		backends := map[string]string{"JAEGER_ENDPOINT": sink.Endpoint, "JAEGER_INSECURE": "true"}
		written := new(atomic.Int64)
		var collectors []*harness.Collector
		var page *harness.Collector

		agent := surroundings{variables: backends, folders: folders}
		if gateway, found := parts["gateway"]; found {
			if _, found := gateway.variable(t, "REMOTE_WRITE_URL"); found {
				backends["REMOTE_WRITE_URL"] = remoteWrite(t, written)
			}
			if _, found := parts["fleet"]; found {
				page = startPod(t, objects, "fleet", surroundings{folders: folders})
				backends["FLEET_ENDPOINT"] = page.Address(t, "receivers::otlp::protocols::grpc")
			}
			collectors = append(collectors, startPod(t, objects, "gateway", surroundings{variables: backends, folders: folders}))
			host, port, err := net.SplitHostPort(collectors[0].Address(t, "receivers::otlp::protocols::grpc"))
			require.NoError(t, err)
			agent = surroundings{variables: map[string]string{"GATEWAY_HOST": host, "GATEWAY_PORT": port}, folders: folders}
		}
		if *parts["agent"].pod.Spec.AutomountServiceAccountToken {
			newKubernetes(t).surround(t, &agent)
		}
		collectors = append(collectors, startPod(t, objects, "agent", agent))
		receiver := collectors[len(collectors)-1].Address(t, "receivers::otlp::protocols::grpc")
		send(t, receiver, span(1, nil))
		_, gpus := parts["gpu"]
		if gpus {
			believed := collectors[len(collectors)-1].Address(t, "receivers::otlp/collectors::protocols::grpc")
			collectors = append(collectors, startPod(t, objects, "gpu", surroundings{variables: map[string]string{"STACK_ENDPOINT": believed}}))
		}

		require.EventuallyWithT(t, func(c *assert.CollectT) {
			assert.Len(c, sink.Spans(), 1)
			if _, remote := backends["REMOTE_WRITE_URL"]; remote {
				assert.Positive(c, written.Load())
				return
			}
			samples, err := harness.Scrape(t.Context(), collectors[0].Address(t, "exporters::prometheus"))
			if assert.NoError(c, err) && gpus {
				assert.NotEmpty(c, harness.Select(samples, "nvidia_gpu_driver_state", nil))
			}
		}, arrival, poll)
		for _, collector := range slices.Backward(collectors) {
			stop(t, collector)
		}
		if page != nil {
			// The last emission of a gateway has arrived when it ends.
			assert.Contains(t, pageOf(t, page, folders["/etc/fleet"]), `"id":"run-1"`)
			stop(t, page)
		}
	})
}

// pageOf returns the state of the fleet's page, as a reader with a password gets it.
func pageOf(t *testing.T, page *harness.Collector, secrets string) string {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(secrets, "ca.crt"))
	require.NoError(t, err)
	known := x509.NewCertPool()
	require.True(t, known.AppendCertsFromPEM(authority))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+page.Address(t, "exporters::ml_view")+"/api/v1/state", http.NoBody)
	require.NoError(t, err)
	request.SetBasicAuth("ada", "a password")
	response, err := client.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	return string(body)
}

func send(t *testing.T, endpoint string, traces ptrace.Traces) {
	t.Helper()
	sender, err := harness.NewGRPCSender(endpoint)
	require.NoError(t, err)
	require.NoError(t, sender.Traces(t.Context(), traces))
	require.NoError(t, sender.Close())
}

// remoteWrite starts a server that counts requests of Prometheus remote write.
func remoteWrite(t *testing.T, requests *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		if request.Header.Get("X-Prometheus-Remote-Write-Version") != "" {
			requests.Add(1)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// span returns a span of a run with an id, whose resource has these attributes too.
func span(id byte, attributes map[string]string) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "trainer")
	resource.Resource().Attributes().PutStr("ml.run.id", "run-1")
	for key, value := range attributes {
		resource.Resource().Attributes().PutStr(key, value)
	}
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("train_step")
	span.Attributes().PutStr("ml.phase", "optimizer")
	span.SetTraceID(pcommon.TraceID{id})
	span.SetSpanID(pcommon.SpanID{id})
	now := time.Now()
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-100 * time.Millisecond)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	return traces
}
