package mlmetricsconnector

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
			compare(t, folder, metricsFrom(t, folder, requestsOf(t, folder)...))
		})
	}
}
