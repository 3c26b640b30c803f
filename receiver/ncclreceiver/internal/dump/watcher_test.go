package dump_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/dump"
)

func TestDumps(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string, at time.Time) {
		path := filepath.Join(root, "tmp", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	start := time.Date(2020, 11, 22, 12, 0, 0, 0, time.UTC)
	write("nccl_trace_rank_0", "old", start.Add(-time.Hour))
	w := dump.NewWatcher(root, []string{"/tmp/nccl_trace_rank_*", "/tmp/*_rank_*"}, start)
	assert.Empty(t, w.Scan())

	write("nccl_trace_rank_12", "dump", start.Add(time.Minute))
	write("nccl_trace_rank_", "dump", start.Add(time.Minute))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(root, "tmp", "nccl_trace_rank_3")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "tmp", "nccl_trace_rank_4"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "tmp", "nccl_trace_rank_5"), 0o600))
	assert.Empty(t, w.Scan(), "it may still be written")
	assert.ElementsMatch(t, []dump.Dump{
		{Path: "/tmp/nccl_trace_rank_12", Job: "/tmp/nccl_trace_rank_", Size: 4, Written: start.Add(time.Minute).Local(), Rank: 12},
		{Path: "/tmp/nccl_trace_rank_", Job: "/tmp/nccl_trace_rank_", Size: 4, Written: start.Add(time.Minute).Local(), Rank: -1},
	}, w.Scan())
	assert.Empty(t, w.Scan(), "reported once")

	write("nccl_trace_rank_12", "larger", start.Add(time.Hour))
	assert.Empty(t, w.Scan())
	require.Len(t, w.Scan(), 1, "it was overwritten")
	assert.Empty(t, w.Scan())
}

// A dump is read from where it was found. What is too large, or a pipe by now, is not.
func TestRead(t *testing.T) {
	root := t.TempDir()
	w := dump.NewWatcher(root, nil, time.Time{})
	require.NoError(t, os.WriteFile(filepath.Join(root, "r1"), []byte("pickle"), 0o600))
	data, err := w.Read(&dump.Dump{Path: "/r1"})
	require.NoError(t, err)
	assert.Equal(t, "pickle", string(data))
	require.NoError(t, os.Truncate(filepath.Join(root, "r1"), 64<<20+1))
	_, err = w.Read(&dump.Dump{Path: "/r1"})
	require.ErrorContains(t, err, "bytes")
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "r2"), 0o600))
	_, err = w.Read(&dump.Dump{Path: "/r2"})
	require.ErrorContains(t, err, "regular")
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(root, "r3")))
	_, err = w.Read(&dump.Dump{Path: "/r3"})
	require.Error(t, err, "it leads out of the root")
}

// Any user can create a file in /tmp. Its name forges no line of a log, and its time is
// one that there has been.
func TestHostileFiles(t *testing.T) {
	root := filepath.Join(t.TempDir(), "host[1]*")
	require.NoError(t, os.Mkdir(root, 0o700))
	for _, name := range []string{"r\n1", "r\x1b[2J1", "r\xff1", "r1"} {
		path := filepath.Join(root, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		at := time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	w := dump.NewWatcher(root, []string{"/r*"}, time.Time{})
	assert.Empty(t, w.Scan())
	found := w.Scan()
	require.Len(t, found, 1)
	assert.Equal(t, "/r1", found[0].Path)
	assert.False(t, found[0].Written.After(time.Now()))
}

func TestManyDumpsAreBounded(t *testing.T) {
	root := t.TempDir()
	first := filepath.Join(root, "r")
	require.NoError(t, os.WriteFile(first, nil, 0o600))
	for i := range 1100 {
		require.NoError(t, os.Link(first, first+strconv.Itoa(i)))
	}
	w := dump.NewWatcher(root, []string{"/r*"}, time.Time{})
	assert.Empty(t, w.Scan())
	assert.Len(t, w.Scan(), 1024)
}
