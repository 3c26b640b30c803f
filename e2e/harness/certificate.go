package harness

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
)

// WriteCertificate writes ca.crt, tls.crt and tls.key into a folder, as cert-manager does: a
// certificate for a name and 127.0.0.1, as server and as client, for an hour.
func WriteCertificate(tb testing.TB, folder, name string) {
	tb.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "collector"}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	authorityBytes, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	require.NoError(tb, err)
	leafBytes, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	require.NoError(tb, err)
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	for file, block := range map[string]pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: authorityBytes},
		"tls.crt": {Type: "CERTIFICATE", Bytes: leafBytes},
		"tls.key": {Type: "PRIVATE KEY", Bytes: keyBytes},
	} {
		require.NoError(tb, os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(&block), 0o600))
	}
}
