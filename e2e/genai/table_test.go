package genai

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	recordings, err := ReadRecordings("recordings")
	require.NoError(t, err)
	for _, r := range recordings {
		requests, err := r.Requests()
		require.NoError(t, err)
		result, err := Process(t.Context(), requests)
		require.NoError(t, err)
		t.Logf("%-26s truth %v", r.Client, truth(&r))
		t.Logf("%-26s seen  %v", "", seen(&result))
	}
}
