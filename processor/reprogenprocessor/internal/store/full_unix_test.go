//go:build unix

package store

import (
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// TestFailedWritesLeaveNothing: a file that cannot be written whole is removed,
// whatever it was to become.
func TestFailedWritesLeaveNothing(t *testing.T) {
	s, folder := opened(t, Limits{})
	dir := filepath.Join(folder, "..", "..")
	for name, write := range map[string]func() error{
		"an artifact": func() error {
			return s.Write(group, "20261120T120001Z"+name[16:], share.Origin{}, []File{{"trace.json", []byte("content")}})
		},
		"a summary": func() error { return s.WriteGroup(Group{Fingerprint: group}) },
	} {
		t.Run(name, func(t *testing.T) {
			full(t, write)
			left, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
			require.NoError(t, err)
			assert.Empty(t, left)
			require.NoError(t, write(), "and later it can be")
		})
	}
}

// full runs a write while no file may be larger than one byte, as on a disk
// that is full.
func full(t *testing.T, write func() error) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limit := before
	limit.Cur = 1
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	err := write()
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	require.ErrorIs(t, err, syscall.EFBIG)
}
