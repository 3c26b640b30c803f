package smoke

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The Compose file has no key that Compose does not know, and what it asks for
// is what the receiver's documentation says.
func TestGPUComposeFile(t *testing.T) {
	useAgent(t)
	path := harness.Path("examples", "gpu", "compose.yaml")
	for profile, capabilities := range map[string][]string{
		"rootless":    nil,
		"attribution": {"SYS_PTRACE", "DAC_READ_SEARCH"},
	} {
		t.Run(profile, func(t *testing.T) {
			options, err := cli.NewProjectOptions([]string{path}, cli.WithProfiles([]string{profile}), cli.WithName("gpu"))
			require.NoError(t, err)
			project, err := options.LoadProject(t.Context())
			require.NoError(t, err)
			require.Len(t, project.Services, 1)
			service, err := project.GetService("gpu-" + profile)
			require.NoError(t, err)

			assert.Equal(t, "host", service.Pid)
			assert.Equal(t, []string{"ALL"}, service.CapDrop)
			assert.Equal(t, capabilities, service.CapAdd)
			assert.Equal(t, profile == "attribution", service.User == "0:0")
			assert.True(t, service.ReadOnly)
			require.Len(t, service.Deploy.Resources.Reservations.Devices, 1)
			assert.Equal(t, []string{"gpu", "utility"}, service.Deploy.Resources.Reservations.Devices[0].Capabilities)
			for _, port := range service.Ports {
				assert.Equal(t, "127.0.0.1", port.HostIP)
			}
			for _, volume := range service.Volumes {
				assert.True(t, volume.ReadOnly, volume.Target)
				if strings.HasPrefix(volume.Source, harness.Path()) {
					assert.FileExists(t, volume.Source)
				}
			}
			checkAgentImage(t, &service)
		})
	}
	validate(t, harness.Path("examples", "gpu", "collector.yaml"))
}

// Each Kubernetes manifest is decoded by Kubernetes' own types, with unknown
// keys as errors, and its configuration is loaded.
func TestGPUKubernetesManifests(t *testing.T) {
	useAgent(t)
	files, err := filepath.Glob(harness.Path("examples", "gpu", "kubernetes-*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			documents := strings.Split(string(text), "\n---\n")
			require.Len(t, documents, 2)
			var config corev1.ConfigMap
			require.NoError(t, yaml.UnmarshalStrict([]byte(documents[0]), &config))
			var daemons appsv1.DaemonSet
			require.NoError(t, yaml.UnmarshalStrict([]byte(documents[1]), &daemons))
			assert.Equal(t, [2]string{"ConfigMap", "DaemonSet"}, [2]string{config.Kind, daemons.Kind})
			assert.Equal(t, config.Namespace, daemons.Namespace)
			assert.Equal(t, daemons.Spec.Selector.MatchLabels, daemons.Spec.Template.Labels)

			written := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(written, []byte(config.Data["config.yaml"]), 0o600))
			validate(t, written)
			checkPod(t, &daemons.Spec.Template.Spec, config.Name, strings.Contains(file, "attribution"))
		})
	}
}

func checkPod(t *testing.T, pod *corev1.PodSpec, config string, attribution bool) {
	t.Helper()
	assert.True(t, pod.HostPID)
	require.Len(t, pod.Containers, 1)
	container := pod.Containers[0]
	assert.Equal(t, "registry.example/otelcol-ml-agent:0.1.0", container.Image)
	for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
		for name := range list {
			assert.NotContains(t, name, "nvidia.com", "a request takes the GPU from the workloads")
		}
	}
	assert.Contains(t, container.Env, corev1.EnvVar{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"})
	assert.Contains(t, container.Env, corev1.EnvVar{Name: "NVIDIA_DRIVER_CAPABILITIES", Value: "utility"})

	security := container.SecurityContext
	assert.False(t, *security.AllowPrivilegeEscalation)
	assert.True(t, *security.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop)
	if attribution {
		assert.Zero(t, *security.RunAsUser)
		assert.Equal(t, []corev1.Capability{"SYS_PTRACE", "DAC_READ_SEARCH"}, security.Capabilities.Add)
	} else {
		assert.True(t, *security.RunAsNonRoot)
		assert.Empty(t, security.Capabilities.Add)
	}

	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = volume
	}
	assert.Len(t, volumes, len(container.VolumeMounts))
	for _, mount := range container.VolumeMounts {
		volume, found := volumes[mount.Name]
		require.True(t, found, mount.Name)
		assert.True(t, mount.ReadOnly, mount.Name)
		if volume.ConfigMap != nil {
			assert.Equal(t, config, volume.ConfigMap.Name)
			continue
		}
		assert.Equal(t, "/hostfs"+volume.HostPath.Path, mount.MountPath, "root_path is /hostfs")
	}
	for _, name := range []string{"pod-resources", "pod-logs"} {
		mounted := slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == name })
		assert.Equal(t, attribution, mounted, "%s: only root may ask the kubelet", name)
	}
}

func validate(t *testing.T, config string) {
	t.Helper()
	code, output := harness.Validate(t, nil, config)
	assert.Zero(t, code, "%s", output)
}
