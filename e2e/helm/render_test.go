package helm

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// oldestKubernetes is the oldest version that Chart.yaml admits. The helm that is
// built here does not know a version of its own.
const oldestKubernetes = "1.30.0"

// kinds are what the chart may render. Kubernetes' own types decode them, with
// unknown keys as errors.
var kinds = map[string]func() metav1.Object{
	"Certificate":         func() metav1.Object { return &certificate{} },
	"ClusterRole":         func() metav1.Object { return &rbacv1.ClusterRole{} },
	"ClusterRoleBinding":  func() metav1.Object { return &rbacv1.ClusterRoleBinding{} },
	"ConfigMap":           func() metav1.Object { return &corev1.ConfigMap{} },
	"DaemonSet":           func() metav1.Object { return &appsv1.DaemonSet{} },
	"Deployment":          func() metav1.Object { return &appsv1.Deployment{} },
	"NetworkPolicy":       func() metav1.Object { return &networkingv1.NetworkPolicy{} },
	"PodDisruptionBudget": func() metav1.Object { return &policyv1.PodDisruptionBudget{} },
	"PodMonitor":          func() metav1.Object { return &monitoringv1.PodMonitor{} },
	"PrometheusRule":      func() metav1.Object { return &monitoringv1.PrometheusRule{} },
	"Secret":              func() metav1.Object { return &corev1.Secret{} },
	"Service":             func() metav1.Object { return &corev1.Service{} },
	"ServiceAccount":      func() metav1.Object { return &corev1.ServiceAccount{} },
	"ServiceMonitor":      func() metav1.Object { return &monitoringv1.ServiceMonitor{} },
	"StatefulSet":         func() metav1.Object { return &appsv1.StatefulSet{} },
}

// certificate is one of cert-manager, as far as the chart has it.
type certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SecretName string   `json:"secretName"`
		CommonName string   `json:"commonName"`
		DNSNames   []string `json:"dnsNames"`
		Usages     []string `json:"usages"`
		PrivateKey struct {
			Algorithm      string `json:"algorithm"`
			Size           int    `json:"size"`
			RotationPolicy string `json:"rotationPolicy"`
		} `json:"privateKey"`
		IssuerRef struct {
			Group string `json:"group"`
			Kind  string `json:"kind"`
			Name  string `json:"name"`
		} `json:"issuerRef"`
	} `json:"spec"`
}

// chart is the folder of the chart.
func chart() string { return harness.Path("deploy", "helm", "otelcol-ml") }

// values returns the files of values for tests, by their names without .yaml.
func values(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart(), "ci", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	byName := map[string]string{}
	for _, file := range files {
		byName[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return byName
}

// valuesFile returns a file of values for tests.
func valuesFile(name string) string { return filepath.Join(chart(), "ci", name+".yaml") }

// runHelm runs helm and returns its output, or its messages as an error.
func runHelm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), harness.Binary(t, "e2e-helm", ".cache", "bin", "helm"), arguments...)
	command.Env = []string{"HOME=" + t.TempDir()}
	output, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", errors.New(string(exit.Stderr) + string(output))
	}
	return string(output), err
}

// template renders a chart as `helm install telemetry` in the namespace monitoring
// would.
func template(t *testing.T, chart string, arguments ...string) (string, error) {
	t.Helper()
	return runHelm(t, append([]string{
		"template", "telemetry", chart, "--namespace", "monitoring", "--kube-version", oldestKubernetes,
	}, arguments...)...)
}

// render renders the chart and decodes all of its objects.
func render(t *testing.T, arguments ...string) []metav1.Object {
	t.Helper()
	return renderChart(t, chart(), arguments...)
}

func renderChart(t *testing.T, chart string, arguments ...string) []metav1.Object {
	t.Helper()
	output, err := template(t, chart, arguments...)
	require.NoError(t, err)
	var objects []metav1.Object
	for document := range strings.SplitSeq("\n"+output, "\n---\n") {
		// The last line may be of a text whose end counts.
		document += "\n"
		var header metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(document), &header))
		if header.Kind == "" {
			continue
		}
		require.Contains(t, kinds, header.Kind)
		object := kinds[header.Kind]()
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), object), document)
		objects = append(objects, object)
	}
	return objects
}

// all returns the objects of a type.
func all[T metav1.Object](objects []metav1.Object) []T {
	var found []T
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// named returns the object of a type with a name.
func named[T metav1.Object](t *testing.T, objects []metav1.Object, name string) T {
	t.Helper()
	for _, object := range all[T](objects) {
		if object.GetName() == name {
			return object
		}
	}
	require.Fail(t, "no such object", "%T %s", *new(T), name)
	panic("unreachable")
}

// workload is a DaemonSet, StatefulSet or Deployment.
type workload struct {
	metav1.Object
	selector *metav1.LabelSelector
	pod      corev1.PodTemplateSpec
}

// workloads returns the workloads by the part of the chart that they are: agent,
// gpu, gateway or fleet.
func workloads(objects []metav1.Object) map[string]workload {
	found := map[string]workload{}
	add := func(object metav1.Object, selector *metav1.LabelSelector, pod *corev1.PodTemplateSpec) {
		found[object.GetLabels()["app.kubernetes.io/component"]] = workload{object, selector, *pod}
	}
	for _, set := range all[*appsv1.DaemonSet](objects) {
		add(set, set.Spec.Selector, &set.Spec.Template)
	}
	for _, set := range all[*appsv1.StatefulSet](objects) {
		add(set, set.Spec.Selector, &set.Spec.Template)
	}
	for _, one := range all[*appsv1.Deployment](objects) {
		add(one, one.Spec.Selector, &one.Spec.Template)
	}
	return found
}

// container returns the only container of a workload's pods that goes on. Before it there is
// one only where a folder of the node is written.
func (w workload) container(t *testing.T) corev1.Container {
	t.Helper()
	written := slices.ContainsFunc(w.pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.HostPath != nil && *volume.HostPath.Type == corev1.HostPathDirectoryOrCreate
	})
	require.Equal(t, written, len(w.pod.Spec.InitContainers) == 1)
	require.Len(t, w.pod.Spec.Containers, 1)
	return w.pod.Spec.Containers[0]
}

// port returns the number of a named port of the workload's container.
func (w workload) port(t *testing.T, name string) int {
	t.Helper()
	for _, port := range w.container(t).Ports {
		if port.Name == name {
			return int(port.ContainerPort)
		}
	}
	require.Fail(t, "no such port", "%s of %s", name, w.GetName())
	return 0
}

// variable returns the value of an environment variable, and whether there is one.
func (w workload) variable(t *testing.T, name string) (string, bool) {
	t.Helper()
	for _, variable := range w.container(t).Env {
		if variable.Name == name {
			return variable.Value, true
		}
	}
	return "", false
}
