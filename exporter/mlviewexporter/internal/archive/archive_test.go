package archive_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/archive"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

func open(t *testing.T, directory string, keep int) *archive.Archive {
	t.Helper()
	a, err := archive.Open(directory, keep)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	return a
}

func form(ending, text string) archive.Form {
	return archive.Form{Ending: ending, Write: func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}}
}

func names(t *testing.T, directory string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func key(n int) string { return fmt.Sprintf("%020x", n) }

func TestAReportReplacesTheEarlierOneOfItsRun(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "reports")
	a := open(t, directory, 10)
	assert.True(t, a.Written(key(1)).IsZero())
	require.NoError(t, a.Write(key(1), false, archive.Share{Again: true}, form("html", "looks hung"), form("json", "{}"), form("md", "#")))
	require.NoError(t, a.Write(key(1), false, archive.Share{Again: true}, form("html", "ended")))
	content, err := os.ReadFile(filepath.Join(directory, key(1)+".html"))
	require.NoError(t, err)
	assert.Equal(t, "ended", string(content))
	assert.Equal(t, []string{key(1) + ".html", key(1) + ".json", key(1) + ".md"}, names(t, directory))
	assert.False(t, a.Written(key(1)).IsZero())
	info, err := os.Stat(filepath.Join(directory, key(1)+".html"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestTheOldestReportsLeave(t *testing.T) {
	directory := t.TempDir()
	require.NoError(t, os.Chmod(directory, 0o700))
	a := open(t, directory, 3)
	// What does not belong to it stays.
	require.NoError(t, os.WriteFile(filepath.Join(directory, "notes.html"), nil, 0o600))
	for i := range 6 {
		require.NoError(t, a.Write(key(i), false, archive.Share{Again: true}, form("html", "x"), form("md", "x")))
		at := time.Now().Add(time.Duration(i-100) * time.Hour)
		for _, ending := range []string{".html", ".md"} {
			require.NoError(t, os.Chtimes(filepath.Join(directory, key(i)+ending), at, at))
		}
	}
	assert.Equal(t, []string{key(3) + ".html", key(3) + ".md", key(4) + ".html", key(4) + ".md", key(5) + ".html", key(5) + ".md", "notes.html"}, names(t, directory))
}

// Slight reports fill the room that is left, also those of before a restart, and push out
// no other.
func TestSlightReportsLeaveFirst(t *testing.T) {
	directory := t.TempDir()
	require.NoError(t, os.Chmod(directory, 0o700))
	write := func(run int, slight bool) (kept []string) {
		a := open(t, directory, 3)
		require.NoError(t, a.Write(key(run), slight, archive.Share{Again: true}, form("html", "x"), form("md", "x")))
		at := time.Now().Add(time.Duration(run-100) * time.Hour)
		for _, name := range names(t, directory) {
			if strings.HasPrefix(name, key(run)) {
				require.NoError(t, os.Chtimes(filepath.Join(directory, name), at, at))
			}
			if of, is := strings.CutSuffix(name, ".md"); is {
				kept = append(kept, of)
			}
		}
		return kept
	}
	write(0, false)
	write(1, true)
	write(2, true)
	assert.Equal(t, []string{key(0), key(2), key(3)}, write(3, true))
	write(4, false)
	assert.Equal(t, []string{key(0), key(4), key(5)}, write(5, false))
	assert.Equal(t, []string{key(0), key(4), key(5)}, write(6, true), "others have no room for it")
	assert.Equal(t, []string{key(4), key(5), key(7)}, write(7, false))

	// A run may be slight no longer in its next report.
	write(5, true)
	assert.Equal(t, []string{key(4), key(5), key(7)}, write(5, false))
	assert.Equal(t, []string{key(4), key(5), key(7)}, write(8, true))
}

func TestAReportThatFailsLeavesNothing(t *testing.T) {
	directory := t.TempDir()
	require.NoError(t, os.Chmod(directory, 0o700))
	a := open(t, directory, 3)
	require.NoError(t, a.Write(key(1), false, archive.Share{Again: true}, form("html", "whole")))
	broken := archive.Form{Ending: "html", Write: func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("no more")
	}}
	require.ErrorContains(t, a.Write(key(1), false, archive.Share{Again: true}, broken), "no more")
	content, err := os.ReadFile(filepath.Join(directory, key(1)+".html"))
	require.NoError(t, err)
	assert.Equal(t, "whole", string(content))
	assert.Equal(t, []string{key(1) + ".html"}, names(t, directory))

	// A collector that was killed leaves a file behind.
	require.NoError(t, os.WriteFile(filepath.Join(directory, key(2)+".html.new"), []byte("half"), 0o600))
	require.NoError(t, a.Write(key(1), false, archive.Share{Again: true}, form("html", "again")))
	assert.Equal(t, []string{key(1) + ".html"}, names(t, directory))
}

func TestNamesComeFromKeysOnly(t *testing.T) {
	directory := t.TempDir()
	require.NoError(t, os.Chmod(directory, 0o700))
	a := open(t, directory, 3)
	for _, name := range []string{"", "..", "../../etc/passwd", "a/b", "abcdefgh.", "ABCDEF0123456789", "0123456789abcdeg", "0123456789\n"} {
		require.Error(t, a.Write(name, false, archive.Share{Again: true}, form("html", "x")), "%q", name)
		assert.True(t, a.Written(name).IsZero())
	}
	require.Error(t, a.Write(key(1), false, archive.Share{Again: true}, form("../x", "x")))
	assert.Empty(t, names(t, directory))
}

func TestLinksAreNotFollowed(t *testing.T) {
	directory := t.TempDir()
	require.NoError(t, os.Chmod(directory, 0o700))
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("kept"), 0o600))
	for _, name := range []string{key(1) + ".html", key(1) + ".html.new"} {
		require.NoError(t, os.Symlink(outside, filepath.Join(directory, name)))
	}
	a := open(t, directory, 3)
	assert.True(t, a.Written(key(1)).IsZero())
	require.NoError(t, a.Write(key(1), false, archive.Share{Again: true}, form("html", "report")))
	content, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(content))
	info, err := os.Lstat(filepath.Join(directory, key(1)+".html"))
	require.NoError(t, err)
	assert.True(t, info.Mode().IsRegular())
}

func TestDirectoriesThatOthersCanUseAreRefused(t *testing.T) {
	parent := t.TempDir()
	open := filepath.Join(parent, "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	link := filepath.Join(parent, "link")
	require.NoError(t, os.Symlink(parent, link))
	file := filepath.Join(parent, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, directory := range []string{open, link, file} {
		_, err := archive.Open(directory, 1)
		assert.Error(t, err, directory)
	}
}

// TestReportsOfOthersTakeNoRoom: whatever runs come once under invented names, a report of
// a service that was seen again stays, and so does one from before the start.
func TestReportsOfOthersTakeNoRoom(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "reports")
	history, now := share.NewHistory(), time.Unix(1_800_000_000, 0)
	path := func(service string) share.Path { return history.Path(share.OriginOf(1, service)) }
	for range 3 {
		history.Succeeded(share.OriginOf(1, "honest"), now)
		now = now.Add(time.Minute)
	}
	write := func(a *archive.Archive, run int, of archive.Share) {
		require.NoError(t, a.Write(key(run), false, of, form("html", "x")))
	}
	before, err := archive.Open(directory, 10)
	require.NoError(t, err)
	write(before, 1, archive.Share{Path: path("honest"), Again: true})
	require.NoError(t, before.Close())

	a := open(t, directory, 10)
	write(a, 2, archive.Share{Path: path("honest"), Again: true})
	for i := range 200 {
		invented := fmt.Sprint("s", i)
		history.Succeeded(share.OriginOf(1, invented), now)
		write(a, 100+i, archive.Share{Path: path(invented), Again: i%2 == 0})
		write(a, 400+i, archive.Share{Path: path("honest")})
	}
	assert.False(t, a.Written(key(1)).IsZero())
	assert.False(t, a.Written(key(2)).IsZero())
	assert.Len(t, names(t, directory), 10)
}
