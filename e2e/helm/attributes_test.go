package helm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// kubernetes answers as Kubernetes' API does where k8s_attributes lists and watches
// pods, and nothing else.
type kubernetes struct {
	url  string
	pods []corev1.Pod

	mu     sync.Mutex
	asked  []string
	fields []string
}

// newKubernetes starts an API server with some pods. It ends with the test.
func newKubernetes(t *testing.T, pods ...corev1.Pod) *kubernetes {
	t.Helper()
	api := &kubernetes{pods: pods}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	// Watches end only when the server closes their connections.
	t.Cleanup(server.CloseClientConnections)
	api.url = server.URL
	return api
}

// surround makes a collector ask this API server. It would else want the files of a
// service account, at paths that only a pod has.
func (k *kubernetes) surround(t *testing.T, around *surroundings) {
	t.Helper()
	if around.overrides == nil {
		around.overrides = map[string]any{}
	}
	around.overrides["processors::k8s_attributes::auth_type"] = "kubeConfig"
	around.overrides["processors::k8s_attributes::wait_for_metadata"] = true
	around.added = append(around.added, "KUBECONFIG="+kubeConfig(t, k.url))
}

// requests returns what was asked, as "list pods", and the selectors of fields.
func (k *kubernetes) requests() (asked, fields []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.asked), slices.Clone(k.fields)
}

// ServeHTTP answers a list or a watch of pods.
func (k *kubernetes) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	verb := "list"
	if query.Get("watch") != "" {
		verb = "watch"
	}
	resource := strings.TrimPrefix(request.URL.Path, "/api/v1/")
	k.mu.Lock()
	k.asked = append(k.asked, verb+" "+resource)
	k.fields = append(k.fields, query.Get("fieldSelector"))
	k.mu.Unlock()
	if resource != "pods" {
		http.NotFound(response, request)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(response)
	if verb == "list" {
		_ = encoder.Encode(corev1.PodList{
			TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    k.pods,
		})
		return
	}
	if query.Get("sendInitialEvents") == "true" {
		for _, pod := range k.pods {
			_ = encoder.Encode(map[string]any{"type": "ADDED", "object": pod})
		}
		_ = encoder.Encode(map[string]any{"type": "BOOKMARK", "object": corev1.Pod{
			TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{"k8s.io/initial-events-end": "true"}},
		}})
	}
	response.(http.Flusher).Flush()
	<-request.Context().Done()
}

// kubeConfig is a file that names an API server.
func kubeConfig(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {}}]
current-context: test
`, url), 0o600))
	return file
}

func pod(name, address string) corev1.Pod {
	return corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "training", UID: types.UID(name + "-uid"), ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "fine-tune", UID: "job-uid", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}},
	}
}

// With kubernetesAttributes, telemetry has its pod by the address that it comes
// from, unless the sender is a reader of GPUs, and the agent's role permits what it
// asks for and no more.
func TestKubernetesAttributes(t *testing.T) {
	objects := render(t, "--values", valuesFile("agents"), "--set", "agent.kubernetesAttributes=true")
	reader := workloads(objects)["gpu"].GetName() + "-x7k2p"
	for name, test := range map[string]struct {
		sender corev1.Pod
		want   any
	}{
		"workload":       {pod("worker", "127.0.0.1"), "worker-uid"},
		"reader of GPUs": {pod(reader, "127.0.0.1"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newKubernetes(t, test.sender, pod("other", "10.0.0.2"))
			sink := harness.StartSink(t)
			around := surroundings{variables: map[string]string{
				"JAEGER_ENDPOINT": sink.Endpoint, "JAEGER_INSECURE": "true", "NODE_NAME": "node-1",
			}}
			api.surround(t, &around)
			agent := startPod(t, objects, "agent", around)
			receiver := agent.Address(t, "receivers::otlp::protocols::grpc")
			send(t, receiver, span(1, map[string]string{"k8s.pod.uid": "other-uid"}))
			send(t, receiver, span(2, nil))

			require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Len(c, sink.Spans(), 2) }, arrival, poll)
			named := resourceOf(t, sink, 1)
			assert.Equal(t, "other", named["k8s.pod.name"], "what a client says of itself comes first")
			connected := resourceOf(t, sink, 2)
			assert.Equal(t, test.want, connected["k8s.pod.uid"])
			if test.want != nil {
				assert.Equal(t, []any{"training", "node-1", "job-uid"},
					[]any{connected["k8s.namespace.name"], connected["k8s.node.name"], connected["k8s.job.uid"]})
			}
			stop(t, agent)
			checkRole(t, objects, api)
		})
	}
}

// checkRole expects the agent's role to permit exactly what was asked for, and get,
// which watchers are given with it.
func checkRole(t *testing.T, objects []metav1.Object, api *kubernetes) {
	t.Helper()
	asked, fields := api.requests()
	var permitted []string
	for _, role := range all[*rbacv1.ClusterRole](objects) {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					permitted = append(permitted, verb+" "+resource)
				}
			}
		}
	}
	assert.ElementsMatch(t, []string{"get pods", "list pods", "watch pods"}, permitted)
	assert.Subset(t, permitted, asked)
	for _, field := range fields {
		assert.Equal(t, "spec.nodeName=node-1", field, "an agent reads the pods of its own node")
	}
}

// resourceOf returns the attributes of the resource of a span.
func resourceOf(t *testing.T, sink *harness.Sink, id byte) map[string]any {
	t.Helper()
	for _, traces := range sink.Traces() {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					if span.SpanID()[0] == id {
						return resource.Resource().Attributes().AsRaw()
					}
				}
			}
		}
	}
	require.Fail(t, "no such span", "%d", id)
	return nil
}
