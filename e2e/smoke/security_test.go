package smoke

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// With the lines of docs/operations.md, nobody sends without the token, and nobody
// reads the page without a name and a password.
func TestDocumentedSecurity(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	// A test server has a certificate for 127.0.0.1, and a client that trusts it.
	known := httptest.NewTLSServer(nil)
	t.Cleanup(known.Close)
	pair := known.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	write("server.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	write("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	write("otlp.token", []byte("a-token\n"))
	// As htpasswd -s writes it, of "secret".
	write("page.htpasswd", []byte("ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"))

	config := withDocumented(t, "docs/operations.md", "TLS and authentication")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	text = []byte(strings.ReplaceAll(string(text), "/etc/otelcol-ml/", folder+"/"))
	require.NoError(t, os.WriteFile(config, text, 0o600))
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: config})

	status := func(method, url, body, authorization string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		response, err := known.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	otlp := "https://" + collector.Address(t, "receivers::otlp::protocols::http") + "/v1/traces"
	assert.Equal(t, http.StatusUnauthorized, status(http.MethodPost, otlp, "{}", ""))
	assert.Equal(t, http.StatusUnauthorized, status(http.MethodPost, otlp, "{}", "Bearer another"))
	assert.Equal(t, http.StatusOK, status(http.MethodPost, otlp, "{}", "Bearer a-token"))

	page := "https://" + collector.Address(t, "exporters::ml_view") + "/"
	assert.Equal(t, http.StatusUnauthorized, status(http.MethodGet, page, "", ""))
	// ada:secret
	assert.Equal(t, http.StatusOK, status(http.MethodGet, page, "", "Basic YWRhOnNlY3JldA=="))

	// What speaks no TLS is refused on gRPC's port, too.
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	require.Error(t, sender.Traces(t.Context(), oneSpan("open", "step", nil)))
	require.NoError(t, sender.Close())
}
