package mlmetricsconnector

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestRecordings sends what real clients sent, request by request as recorded
// by examples/record.py and without ml_enrich before it, with the default
// configuration. The series are compared with the expected.txt of each client.
func TestRecordings(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "recordings", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, "traces.json"))
			require.NoError(t, err)
			var requests []ptrace.Traces
			for request := range bytes.Lines(text) {
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
				require.NoError(t, err)
				requests = append(requests, td)
			}
			compare(t, folder, metricsFrom(t, folder, requests...))
		})
	}
}
