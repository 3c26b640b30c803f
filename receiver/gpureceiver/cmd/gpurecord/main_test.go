package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

// Without a driver there are frames that say so.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.yaml")
	err := run(t.Context(), []string{"-library", "/none.so", "-duration", "20ms", "-interval", "5ms", path})
	if err != nil {
		t.Skip(err) // a build without cgo
	}
	rec, err := recording.Load(path)
	require.NoError(t, err)
	assert.NotEmpty(t, rec.Frames)
	assert.EqualValues(t, "library_missing", rec.Frames[0].DriverState)
	assert.Contains(t, rec.Origin, "recorded by gpurecord on ")

	require.ErrorIs(t, run(t.Context(), []string{path}), os.ErrExist, "nothing is written over")
	for _, args := range [][]string{{}, {"a", "b"}, {"-duration", "2h", "a"}, {"-interval", "0s", "a"}} {
		require.ErrorContains(t, run(context.Background(), args), "usage: gpurecord", args)
	}
}
