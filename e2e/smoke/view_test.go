package smoke

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// TestPageWithAPassword has the page of the default configuration behind the stock
// extension.
func TestPageWithAPassword(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Overrides: map[string]any{
			"extensions::basicauth::htpasswd::inline": "ada:secret",
			"service::extensions":                     []string{"health_check", "ml_guard", "basicauth"},
			"exporters::ml_view::auth::authenticator": "basicauth",
		},
		Env: []string{"LOGS_EXPORTER=debug"},
		Dir: t.TempDir(),
	})
	url := "http://" + collector.Address(t, "exporters::ml_view")
	ask := func(path, password string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, http.NoBody)
		require.NoError(t, err)
		request.SetBasicAuth("ada", password)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		return response
	}
	refused := ask("/", "guess")
	require.NoError(t, refused.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	assert.Equal(t, `Basic realm="otelcol-ml", charset="UTF-8"`, refused.Header.Get("WWW-Authenticate"))

	page := ask("/", "secret")
	text, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	assert.Equal(t, http.StatusOK, page.StatusCode)
	assert.Contains(t, string(text), "no run has sent data yet")

	// An open stream does not keep the collector from stopping.
	stream := ask("/api/v1/events", "secret")
	defer func() { assert.NoError(t, stream.Body.Close()) }()
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan())
	assert.Equal(t, "event: state", lines.Text())
	require.True(t, lines.Scan())
	var state struct{ Version int }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &state))
	assert.Equal(t, 1, state.Version)
	stopDropIn(t, collector)
}

// TestPageIsNotOpenByAccident has addresses that other machines can reach.
func TestPageIsNotOpenByAccident(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"agent.yaml", "demo.yaml", "production.yaml"} {
		file := harness.Path("distribution", "config", config)
		code, output := harness.Validate(t, []string{recording(), "ML_VIEW_ENDPOINT=0.0.0.0:8890"}, file)
		assert.NotZero(t, code, config)
		assert.Contains(t, output, `exporters::ml_view: "endpoint" is "0.0.0.0:8890", which other machines can reach`)
		code, output = harness.Validate(t, []string{recording(), "ML_VIEW_ENDPOINT=0.0.0.0:8890", "ML_VIEW_INSECURE_NO_AUTH=true"}, file)
		assert.Zero(t, code, output)
	}
}
