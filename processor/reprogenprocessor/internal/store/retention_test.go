package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	group = "0123456789abcdef"
	name  = "20261120T120000Z-00000000000000000000000000000001-0000000000000001"
)

func opened(t *testing.T, limits Limits) (*Store, string) {
	dir := filepath.Join(t.TempDir(), "reproductions")
	s, _, _, err := Open(dir, limits)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Write(group, name, share.Origin{}, []File{{"trace.json", []byte("old")}, {"repro.py", []byte("x")}}))
	return s, filepath.Join(dir, group, name)
}

// TestRetentionLeavesNoSummary: with its last artifact a group's folder goes, also
// with a summary that could not be read.
func TestRetentionLeavesNoSummary(t *testing.T) {
	s, folder := opened(t, Limits{Age: time.Hour})
	require.NoError(t, s.WriteGroup(Group{Fingerprint: group}))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "..", "group.json.backup"), []byte("{"), 0o600))
	_, err := s.Enforce(artifactTime(name).Add(2*time.Hour), share.EstablishedPath)
	require.NoError(t, err)
	assert.NoDirExists(t, filepath.Dir(folder))
}

// TestFree: the floor is what stays free after the write, and a disk that does
// not say how much it has is written to.
func TestFree(t *testing.T) {
	s, _ := opened(t, Limits{Free: 1})
	s.limits.Free = 1000
	files := []File{{"a", make([]byte, 100)}}
	for free, fits := range map[int64]bool{1099: false, 1100: true} {
		s.free = func(*os.File) (int64, bool) { return free, true }
		err := s.Write(group, ArtifactName(time.Unix(free, 0), name[17:49], name[50:]), share.Origin{}, files)
		if fits {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrNoSpace)
		}
	}
	s.free = func(*os.File) (int64, bool) { return 0, false }
	require.NoError(t, s.Write(group, ArtifactName(time.Unix(7, 0), name[17:49], name[50:]), share.Origin{}, files))
}
