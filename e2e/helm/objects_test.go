package helm

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// forEachValues renders the chart with each file of values.
func forEachValues(t *testing.T, test func(t *testing.T, name string, objects []metav1.Object)) {
	t.Helper()
	for name, file := range values(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name, render(t, "--values", file))
		})
	}
}

func TestPodsHaveTheLeastPrivilege(t *testing.T) {
	forEachValues(t, func(t *testing.T, name string, objects []metav1.Object) {
		for part, workload := range workloads(objects) {
			pod, container := workload.pod.Spec, workload.container(t)
			attribution := part == "gpu" && name == "every-option"
			readsLogs := part == "agent" && name == "every-option"

			assert.Equal(t, part == "gpu", pod.HostPID, part)
			assert.False(t, pod.HostNetwork || pod.HostIPC, part)
			security := container.SecurityContext
			require.NotNil(t, security, part)
			assert.False(t, *security.AllowPrivilegeEscalation, part)
			assert.True(t, *security.ReadOnlyRootFilesystem, part)
			assert.Nil(t, security.Privileged, part)
			assert.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop, part)
			assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, security.SeccompProfile.Type, part)
			switch {
			case readsLogs:
				assert.Zero(t, *security.RunAsUser)
				assert.Empty(t, security.Capabilities.Add, part)
			case attribution:
				assert.Zero(t, *security.RunAsUser)
				assert.Equal(t, []corev1.Capability{"SYS_PTRACE", "DAC_READ_SEARCH"}, security.Capabilities.Add)
				assert.Equal(t, corev1.AppArmorProfileTypeUnconfined, security.AppArmorProfile.Type)
			default:
				assert.True(t, *security.RunAsNonRoot, part)
				switch name {
				case "openshift":
					assert.Nil(t, security.RunAsUser, part)
					assert.Nil(t, security.RunAsGroup, part)
					assert.Nil(t, pod.SecurityContext.FSGroup, part)
				case "every-option":
					assert.EqualValues(t, 20001, *security.RunAsUser, part)
				default:
					assert.EqualValues(t, 10001, *security.RunAsUser, part)
				}
				assert.Empty(t, security.Capabilities.Add, part)
				assert.Nil(t, security.AppArmorProfile, part)
			}
			checkMounts(t, part, &pod, &container, attribution, readsLogs)

			// Only the agent asks Kubernetes, and only if it is to.
			token := part == "agent" && name == "every-option"
			assert.Equal(t, token, *pod.AutomountServiceAccountToken, part)
			account := named[*corev1.ServiceAccount](t, objects, pod.ServiceAccountName)
			assert.False(t, *account.AutomountServiceAccountToken, part)
			for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
				for resource := range list {
					assert.NotContains(t, resource, "nvidia.com", "%s takes a GPU from the workloads", part)
				}
			}
		}
	})
}

// Kubernetes' own check of a namespace's Pod Security Standard. "restricted" admits
// agents and gateways, unless their state is a folder of the node; of readers of
// GPUs "baseline" refuses just the paths and process ids of the host, and what
// attribution needs.
func TestPodSecurityStandards(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	refused := func(level api.Level, pod corev1.PodTemplateSpec) []string {
		reasons := []string{}
		for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				reasons = append(reasons, result.ForbiddenReason)
			}
		}
		return reasons
	}
	forEachValues(t, func(t *testing.T, name string, objects []metav1.Object) {
		for part, workload := range workloads(objects) {
			switch {
			case part == "gpu" && name == "every-option":
				assert.ElementsMatch(t, []string{"host namespaces", "hostPath volumes", "forbidden AppArmor profile", "non-default capabilities"}, refused(api.LevelBaseline, workload.pod))
			case part == "gpu":
				assert.ElementsMatch(t, []string{"host namespaces", "hostPath volumes"}, refused(api.LevelBaseline, workload.pod))
			case part == "agent" && name == "every-option":
				assert.ElementsMatch(t, []string{"hostPath volumes"}, refused(api.LevelBaseline, workload.pod))
			default:
				assert.Empty(t, refused(api.LevelRestricted, workload.pod), part)
			}
		}
	})
}

// The kernel's log makes the reader of GPUs privileged, and no other pod, and only on
// request.
func TestTheKernelLogNeedsAPrivilegedReader(t *testing.T) {
	file := values(t)["every-option"]
	before := workloads(render(t, "--values", file))
	for part, workload := range workloads(render(t, "--values", file, "--set", "gpu.privileges=privileged")) {
		if part != "gpu" {
			assert.Equal(t, before[part].pod.Spec, workload.pod.Spec, part)
			continue
		}
		container := workload.container(t)
		assert.True(t, *container.SecurityContext.Privileged)
		assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
		assert.Nil(t, container.SecurityContext.AllowPrivilegeEscalation, "Kubernetes refuses false beside privileged")
		assert.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: "kmsg", MountPath: "/dev/kmsg", ReadOnly: true})
		device := corev1.HostPathCharDev
		assert.Contains(t, workload.pod.Spec.Volumes, corev1.Volume{Name: "kmsg", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/dev/kmsg", Type: &device},
		}})
	}
}

// checkMounts expects paths of the host read-only below /hostfs, and only for the
// reader of GPUs, but for a folder of the agent's state that the values name, and the logs
// of pods.
func checkMounts(t *testing.T, part string, pod *corev1.PodSpec, container *corev1.Container, attribution, readsLogs bool) {
	t.Helper()
	sources := map[string]corev1.Volume{}
	for _, volume := range pod.Volumes {
		sources[volume.Name] = volume
	}
	var host []string
	for _, mount := range container.VolumeMounts {
		if mount.MountPath == "/state" {
			assert.False(t, mount.ReadOnly, part)
			continue
		}
		assert.True(t, mount.ReadOnly, "%s: %s", part, mount.MountPath)
		require.Contains(t, sources, mount.Name, part)
		if readsLogs && mount.MountPath == "/var/log/pods" {
			assert.Equal(t, mount.MountPath, sources[mount.Name].HostPath.Path)
			continue
		}
		if source := sources[mount.Name].HostPath; source != nil {
			assert.Equal(t, "/hostfs"+source.Path, mount.MountPath, "root_path is /hostfs")
			host = append(host, source.Path)
		}
	}
	var want []string
	if part == "gpu" {
		want = []string{"/proc", "/sys", "/etc/hostname"}
		if attribution {
			want = append(want, "/var/lib/kubelet/pod-resources", "/var/log/pods")
		}
	}
	assert.Equal(t, want, host, part)
}

// Queues and reproductions are on a volume, and damaged files of a queue are moved
// away before the collector opens them.
func TestStateIsOnVolumes(t *testing.T) {
	forEachValues(t, func(t *testing.T, _ string, objects []metav1.Object) {
		for part, workload := range workloads(objects) {
			container := workload.container(t)
			volumes := []string{}
			for _, volume := range workload.pod.Spec.Volumes {
				volumes = append(volumes, volume.Name)
			}
			if set, ok := workload.Object.(*appsv1.StatefulSet); ok {
				for _, claim := range set.Spec.VolumeClaimTemplates {
					volumes = append(volumes, claim.Name)
				}
			}
			writable := []string{}
			for _, mount := range container.VolumeMounts {
				assert.Contains(t, volumes, mount.Name, part)
				if !mount.ReadOnly {
					writable = append(writable, mount.MountPath)
				}
			}
			queue, queues := workload.variable(t, "OTELCOL_ML_QUEUE_DIR")
			if queues {
				assert.Contains(t, writable, filepath.Dir(queue), part)
				assert.Equal(t, []string{"/queuecheck", queue, "/otelcol-ml"}, container.Command, part)
			} else {
				assert.Empty(t, container.Command, "%s starts as the image does", part)
			}
			if reproductions, found := workload.variable(t, "OTELCOL_ML_REPRO_DIR"); found {
				assert.Contains(t, writable, filepath.Dir(reproductions), part)
			}
		}
	})
}

// A gateway that is replaced goes on until agents have chosen others and Prometheus has
// read its counts.
func TestGatewaysDrain(t *testing.T) {
	for set, want := range map[string]*corev1.Lifecycle{
		"gateway.replicas=2":      {PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 90}}},
		"gateway.drainSeconds=60": {PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 60}}},
		"gateway.drainSeconds=0":  nil,
	} {
		objects := render(t, "--values", valuesFile("gateways"), "--set", set)
		assert.Equal(t, want, workloads(objects)["gateway"].container(t).Lifecycle, set)
	}
}

// A folder of the node belongs to the agent's user before the agent starts.
func TestAFolderOfTheNodeIsGivenToTheAgent(t *testing.T) {
	for set, want := range map[string]string{"agent.enabled=true": "10001", "runAsUser=1000660000": "1000660000", "agent.trainingLogs=true": "0"} {
		agent := workloads(render(t, "--values", valuesFile("gateways"), "--set", "agent.state.hostPath=/var/lib/otelcol-ml", "--set", set))["agent"]
		before := agent.pod.Spec.InitContainers
		require.Len(t, before, 1, set)
		assert.Equal(t, []string{"/queuecheck", "-owner", want, "/state"}, before[0].Command)
		assert.Equal(t, agent.container(t).Image, before[0].Image)
		assert.Equal(t, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"CHOWN"}}, before[0].SecurityContext.Capabilities)
		assert.Zero(t, *before[0].SecurityContext.RunAsUser)
		assert.Equal(t, []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}, before[0].VolumeMounts)
	}
	openshift := workloads(render(t, "--values", valuesFile("openshift"), "--set", "agent.state.hostPath=/var/lib/otelcol-ml"))["agent"]
	assert.Empty(t, openshift.pod.Spec.InitContainers, "nobody knows the user")
}

// Agents and gateways have one certificate, for the name that agents ask for: of the chart,
// of cert-manager, or of one's own.
func TestTheCertificateOfGateways(t *testing.T) {
	const host = "telemetry-otelcol-ml-gateway"
	for name, secret := range map[string]string{"gateways": host + "-tls", "openshift": host + "-issued", "tls": "otelcol-ml-gateways", "every-option": "", "agents": ""} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, "--values", valuesFile(name))
			for part, workload := range workloads(objects) {
				found := ""
				for _, volume := range workload.pod.Spec.Volumes {
					if volume.Name == "gateway-tls" {
						found = volume.Secret.SecretName
					}
				}
				if part == "agent" || part == "gateway" {
					assert.Equal(t, secret, found, part)
				} else {
					assert.Empty(t, found, part)
				}
			}
			secrets, certificates := all[*corev1.Secret](objects), all[*certificate](objects)
			assert.Len(t, secrets, map[string]int{"gateways": 1}[name])
			assert.Len(t, certificates, map[string]int{"openshift": 1}[name])
			for _, made := range secrets {
				assert.Equal(t, secret, made.Name)
				pair, err := tls.X509KeyPair(made.Data["tls.crt"], made.Data["tls.key"])
				require.NoError(t, err)
				leaf, err := x509.ParseCertificate(pair.Certificate[0])
				require.NoError(t, err)
				authority := x509.NewCertPool()
				require.True(t, authority.AppendCertsFromPEM(made.Data["ca.crt"]))
				for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
					_, err = leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: authority, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: time.Now().AddDate(9, 0, 0)})
					require.NoError(t, err)
				}
			}
			for _, asked := range certificates {
				assert.Equal(t, secret, asked.Spec.SecretName)
				assert.Equal(t, []string{host}, asked.Spec.DNSNames)
				assert.Equal(t, []string{"digital signature", "server auth", "client auth"}, asked.Spec.Usages)
				assert.Equal(t, "ClusterIssuer company", asked.Spec.IssuerRef.Kind+" "+asked.Spec.IssuerRef.Name)
			}
		})
	}
}

// Without a number of gateways, an upgrade leaves it to who changes it.
func TestTheNumberOfGateways(t *testing.T) {
	sets := all[*appsv1.StatefulSet](render(t, "--values", valuesFile("openshift")))
	require.Len(t, sets, 1)
	assert.Nil(t, sets[0].Spec.Replicas)
}

// What names something else names what is there.
func TestReferences(t *testing.T) {
	forEachValues(t, func(t *testing.T, _ string, objects []metav1.Object) {
		parts := workloads(objects)
		matching := func(selector metav1.LabelSelector) string {
			matcher, err := metav1.LabelSelectorAsSelector(&selector)
			require.NoError(t, err)
			var found []string
			for part, workload := range parts {
				if matcher.Matches(labels.Set(workload.pod.Labels)) {
					found = append(found, part)
				}
			}
			require.Len(t, found, 1, "%v selects pods of one part", selector)
			return found[0]
		}
		for part, workload := range parts {
			assert.Equal(t, part, matching(*workload.selector))
			for _, probe := range []*corev1.Probe{workload.container(t).StartupProbe, workload.container(t).ReadinessProbe, workload.container(t).LivenessProbe} {
				assert.Equal(t, 13133, workload.port(t, probe.HTTPGet.Port.StrVal))
			}
			for _, object := range objects {
				assert.Equal(t, "telemetry", object.GetLabels()["app.kubernetes.io/instance"], object.GetName())
			}
		}
		for _, service := range all[*corev1.Service](objects) {
			part := matching(metav1.LabelSelector{MatchLabels: service.Spec.Selector})
			for _, port := range service.Spec.Ports {
				assert.Equal(t, parts[part].port(t, port.TargetPort.StrVal), int(port.Port), port.Name)
			}
		}
		for _, network := range all[*networkingv1.NetworkPolicy](objects) {
			part := matching(network.Spec.PodSelector)
			assert.Contains(t, network.Spec.PolicyTypes, networkingv1.PolicyTypeIngress, "what is not named is refused")
			for _, rule := range network.Spec.Ingress {
				require.NotEmpty(t, rule.From, "an empty list is everybody")
				require.NotEmpty(t, rule.Ports, "an empty list is every port")
				for _, port := range rule.Ports {
					parts[part].port(t, port.Port.StrVal)
				}
			}
			for _, rule := range network.Spec.Egress {
				for _, to := range rule.To {
					if to.PodSelector == nil {
						continue
					}
					for _, port := range rule.Ports {
						assert.Contains(t, portsOf(t, parts[matching(*to.PodSelector)]), int(port.Port.IntVal))
					}
				}
			}
		}
		for _, budget := range all[*policyv1.PodDisruptionBudget](objects) {
			assert.Equal(t, "gateway", matching(*budget.Spec.Selector))
		}
		for _, set := range all[*appsv1.StatefulSet](objects) {
			service := named[*corev1.Service](t, objects, set.Spec.ServiceName)
			assert.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP)
		}
		for _, monitor := range all[*monitoringv1.ServiceMonitor](objects) {
			checkMonitor(t, monitor, objects)
		}
		for _, monitor := range all[*monitoringv1.PodMonitor](objects) {
			gpu := parts["gpu"]
			assert.Equal(t, gpu.selector.MatchLabels, monitor.Spec.Selector.MatchLabels)
			for _, endpoint := range monitor.Spec.PodMetricsEndpoints {
				gpu.port(t, *endpoint.Port)
			}
		}
		for _, binding := range all[*rbacv1.ClusterRoleBinding](objects) {
			named[*rbacv1.ClusterRole](t, objects, binding.RoleRef.Name)
			assert.Equal(t, parts["agent"].pod.Spec.ServiceAccountName, binding.Subjects[0].Name)
			assert.Equal(t, "monitoring", binding.Subjects[0].Namespace)
		}
	})
}

// portsOf returns the numbers of the ports of a workload's container.
func portsOf(t *testing.T, w workload) []int {
	t.Helper()
	var numbers []int
	for _, port := range w.container(t).Ports {
		numbers = append(numbers, int(port.ContainerPort))
	}
	return numbers
}

// checkMonitor expects a ServiceMonitor to select one service, and ports of it.
func checkMonitor(t *testing.T, monitor *monitoringv1.ServiceMonitor, objects []metav1.Object) {
	t.Helper()
	matcher, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	require.NoError(t, err)
	var ports []string
	for _, service := range all[*corev1.Service](objects) {
		if matcher.Matches(labels.Set(service.Labels)) {
			assert.Equal(t, monitor.Name, service.Name)
			for _, port := range service.Spec.Ports {
				ports = append(ports, port.Name)
			}
		}
	}
	for _, endpoint := range monitor.Spec.Endpoints {
		assert.Contains(t, ports, endpoint.Port)
		assert.Equal(t, endpoint.Port == "metrics", endpoint.HonorLabels, "the exporter sets job and instance")
		// The alert CollectorAbsent and the dashboards choose collectors by these.
		job := map[string]string{"metrics": "otelcol-ml", "self-metrics": "otelcol-ml-internal"}[endpoint.Port]
		if assert.Len(t, endpoint.RelabelConfigs, 1) {
			assert.Equal(t, "job", endpoint.RelabelConfigs[0].TargetLabel)
			assert.Equal(t, &job, endpoint.RelabelConfigs[0].Replacement)
		}
	}
	if slices.Contains(ports, "metrics") {
		assert.Len(t, monitor.Spec.Endpoints, 2)
	}
}

// Agents find the gateways, and the readers of GPUs the agent of their node.
func TestServicesAreWhereCollectorsSend(t *testing.T) {
	objects := render(t, "--values", valuesFile("gateways"))
	parts := workloads(objects)

	host, _ := parts["agent"].variable(t, "GATEWAY_HOST")
	port, _ := parts["agent"].variable(t, "GATEWAY_PORT")
	gateways := named[*corev1.Service](t, objects, strings.TrimSuffix(host, ".monitoring.svc.cluster.local."))
	assert.Equal(t, corev1.ClusterIPNone, gateways.Spec.ClusterIP, "each gateway has an address of its own")
	assert.False(t, gateways.Spec.PublishNotReadyAddresses)
	assert.Contains(t, gateways.Spec.Ports, corev1.ServicePort{Name: "otlp-grpc", Port: atoi(t, port), TargetPort: gateways.Spec.Ports[1].TargetPort})

	endpoint, _ := parts["gpu"].variable(t, "STACK_ENDPOINT")
	name, port, _ := strings.Cut(endpoint, ":")
	agents := named[*corev1.Service](t, objects, name)
	assert.Equal(t, corev1.ServiceInternalTrafficPolicyLocal, *agents.Spec.InternalTrafficPolicy)
	assert.True(t, slices.ContainsFunc(agents.Spec.Ports, func(found corev1.ServicePort) bool { return found.Port == atoi(t, port) }))
}

func atoi(t *testing.T, number string) int32 {
	t.Helper()
	value, err := strconv.ParseInt(number, 10, 32)
	require.NoError(t, err)
	return int32(value)
}

// GOMEMLIMIT is 60 % of the limit, and the limiter of the reader of GPUs has 80 %,
// whatever its unit.
func TestMemoryLimits(t *testing.T) {
	for _, limit := range []string{"536870912", "1536Mi", "1.5Gi", "2G", "900M", "800000k", "0.5Ti"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			objects := render(t, "--values", valuesFile("gateways"),
				"--set-string", "gpu.resources.limits.memory="+limit+",gateway.resources.limits.memory="+limit+",gateway.resources.requests.memory="+limit)
			for _, part := range []string{"gpu", "gateway"} {
				workload := workloads(objects)[part]
				memory := workload.container(t).Resources.Limits[corev1.ResourceMemory]
				percent, _ := workload.variable(t, "GOGC")
				assert.Equal(t, "200", percent)
				text, _ := workload.variable(t, "GOMEMLIMIT")
				value, err := strconv.ParseInt(strings.TrimSuffix(text, "MiB"), 10, 64)
				require.NoError(t, err)
				assert.InDelta(t, float64(memory.Value())*0.6, float64(value<<20), 1<<20)
				if part == "gpu" {
					config := named[*corev1.ConfigMap](t, objects, workload.GetName())
					limit := int64(float64(memory.Value()) * 0.8 / (1 << 20))
					assert.Contains(t, config.Data["kubernetes.yaml"], "limit_mib: "+strconv.FormatInt(limit, 10)+"\n")
				}
			}
		})
	}
}

// A variable in the values replaces the chart's of that name.
func TestVariables(t *testing.T) {
	gpu := workloads(render(t, "--values", valuesFile("agents"),
		"--set", "gpu.env[0].name=GOMEMLIMIT,gpu.env[0].value=64MiB,gpu.env[1].name=NVIDIA_VISIBLE_DEVICES,gpu.env[1].value=void"))["gpu"]
	found := map[string][]string{}
	for _, variable := range gpu.container(t).Env {
		found[variable.Name] = append(found[variable.Name], variable.Value)
	}
	assert.Equal(t, []string{"64MiB"}, found["GOMEMLIMIT"])
	assert.Equal(t, []string{"void"}, found["NVIDIA_VISIBLE_DEVICES"])
	assert.Equal(t, []string{"utility"}, found["NVIDIA_DRIVER_CAPABILITIES"])
}

// A pod is replaced if its own configuration changes, and else stays.
func TestChecksum(t *testing.T) {
	checksums := func(arguments ...string) map[string]string {
		found := map[string]string{}
		for part, workload := range workloads(render(t, append([]string{"--values", valuesFile("gateways")}, arguments...)...)) {
			found[part] = workload.pod.Annotations["checksum/config"]
			require.NotEmpty(t, found[part])
		}
		return found
	}
	before := checksums()
	after := checksums("--set", "gateway.config.connectors.ml_metrics.flush_interval=10s")
	assert.NotEqual(t, before["gateway"], after["gateway"])
	assert.Equal(t, before["agent"], after["agent"])
	assert.Equal(t, before["gpu"], after["gpu"])
}

// Kubernetes refuses an upgrade that changes what selects pods, or a StatefulSet's
// service and volumes. No version of the chart is in them, nor in pods, which an
// upgrade would otherwise replace for nothing.
func TestUpgrade(t *testing.T) {
	next := filepath.Join(t.TempDir(), "otelcol-ml")
	require.NoError(t, os.CopyFS(next, os.DirFS(chart())))
	path := filepath.Join(next, "Chart.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := strings.Replace(string(text), "\nversion: ", "\nversion: 9", 1)
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))

	before := render(t, "--values", valuesFile("gateways"))
	after := renderChart(t, next, "--values", valuesFile("gateways"),
		"--set", "gateway.replicas=5,gateway.podLabels.team=ml,image.tag=9.0.0,gateway.resources.limits.memory=8Gi,gateway.terminationGracePeriodSeconds=600")
	oldSet, newSet := all[*appsv1.StatefulSet](before)[0].DeepCopy(), all[*appsv1.StatefulSet](after)[0]
	require.NotEqual(t, oldSet.Labels, newSet.Labels, "the chart's version is among the labels")
	for _, set := range []*appsv1.StatefulSet{oldSet, newSet} {
		// These alone may change.
		set.Spec.Replicas = nil
		set.Spec.Template = corev1.PodTemplateSpec{}
	}
	assert.Equal(t, oldSet.Name, newSet.Name)
	assert.Equal(t, oldSet.Spec, newSet.Spec)

	same := workloads(renderChart(t, next, "--values", valuesFile("gateways")))
	for part, workload := range workloads(before) {
		assert.Equal(t, workload.selector, same[part].selector, part)
		assert.Equal(t, workload.pod, same[part].pod, part)
	}
}

// The rules are those of docker/prometheus, but for DCGM's names, which are asked
// for.
func TestPrometheusRules(t *testing.T) {
	for name, want := range map[string][]string{
		"operator":     {"alerts", "costs", "runs", "servers", "training"},
		"every-option": {"alerts", "costs", "dcgm", "runs", "servers", "training"},
		"gateways":     nil,
	} {
		rules := map[string]*monitoringv1.PrometheusRule{}
		for _, rule := range all[*monitoringv1.PrometheusRule](render(t, "--values", valuesFile(name))) {
			rules[rule.Name[strings.LastIndex(rule.Name, "-")+1:]] = rule
		}
		require.Equal(t, want, slices.Sorted(maps.Keys(rules)), name)
		for file, rule := range rules {
			text, err := os.ReadFile(harness.Path("docker", "prometheus", "rules", file+".yaml"))
			require.NoError(t, err)
			var spec monitoringv1.PrometheusRuleSpec
			require.NoError(t, yaml.UnmarshalStrict(text, &spec))
			assert.Equal(t, spec, rule.Spec, file)
		}
	}
}
