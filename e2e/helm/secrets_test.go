package helm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// secretFolders makes a folder for each path at which a pod has a secret: with what the
// chart renders, or else with what cert-manager puts into one: a certificate, its key, and
// that of the authority that signed it. One certificate serves all pods.
func secretFolders(t *testing.T, objects []metav1.Object) map[string]string {
	t.Helper()
	parts := workloads(objects)
	folders := map[string]string{}
	for _, workload := range parts {
		for _, volume := range workload.pod.Spec.Volumes {
			for _, mount := range workload.container(t).VolumeMounts {
				if volume.Secret == nil && volume.Projected == nil || mount.Name != volume.Name || folders[mount.MountPath] != "" {
					continue
				}
				folders[mount.MountPath] = t.TempDir()
				harness.WriteCertificate(t, folders[mount.MountPath], "telemetry-otelcol-ml-gateway")
				for _, secret := range all[*corev1.Secret](objects) {
					for name, value := range secret.Data {
						if volume.Secret != nil && volume.Secret.SecretName == secret.Name {
							require.NoError(t, os.WriteFile(filepath.Join(folders[mount.MountPath], name), value, 0o600))
						}
					}
				}
				for name, text := range map[string]string{"token": "a token", "readers": "ada:a password\n"} {
					require.NoError(t, os.WriteFile(filepath.Join(folders[mount.MountPath], name), []byte(text), 0o600))
				}
			}
		}
	}
	return folders
}
