package helm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
				writeCertificate(t, folders[mount.MountPath])
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

func writeCertificate(t *testing.T, folder string) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "collector"}, DNSNames: []string{"telemetry-otelcol-ml-gateway"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	authorityBytes, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	require.NoError(t, err)
	leafBytes, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	require.NoError(t, err)
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: authorityBytes},
		"tls.crt": {Type: "CERTIFICATE", Bytes: leafBytes},
		"tls.key": {Type: "PRIVATE KEY", Bytes: keyBytes},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(&block), 0o600))
	}
}
