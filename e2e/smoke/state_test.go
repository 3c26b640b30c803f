package smoke

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The page has what another component left out, though a second file sets the list of
// extensions.
func TestThePageHasTheNoticesOfOtherComponents(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "agent.yaml"),
		Overrides: map[string]any{"service::extensions": []string{"ml_guard", "health_check"}},
		Env:       []string{"LOGS_EXPORTER=debug"},
		Dir:       t.TempDir(),
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+collector.Address(t, "exporters::ml_view"), http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(text), "A back end that keeps traces")
	assert.NotContains(t, string(text), "ml_state")
}

// A configuration has ml_state once if a component uses it, and else not.
func TestWhichConfigurationsHaveMLState(t *testing.T) {
	t.Parallel()
	listed := filepath.Join(t.TempDir(), "listed.yaml")
	require.NoError(t, os.WriteFile(listed, []byte("extensions: {ml_state/own: }\nservice: {extensions: [health_check, ml_guard, ml_state/own]}"), 0o600))
	agent := harness.Path("distribution", "config", "agent.yaml")
	for name, test := range map[string]struct {
		files []string
		has   []string
	}{
		"stock":    {files: []string{harness.Path("e2e", "stacks", "testdata", "taskweaver", "collector.yaml")}},
		"shipped":  {[]string{agent}, []string{"ml_state"}},
		"own line": {[]string{agent, listed}, []string{"ml_state/own"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arguments := []string{"print-config"}
			for _, file := range test.files {
				arguments = append(arguments, "--config", "file:"+file)
			}
			code, output := harness.Run(t, harness.Command{Name: "otelcol-ml print-config", Path: harness.CollectorBinary(t), Args: arguments}, time.Minute)
			require.Zero(t, code, output)
			var has []string
			for line := range strings.Lines(output) {
				if id, isItem := strings.CutPrefix(strings.TrimSpace(line), "- "); isItem && strings.HasPrefix(id, "ml_state") {
					has = append(has, id)
				}
			}
			assert.Equal(t, test.has, has)
		})
	}
}
