package upgrade

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// State that is damaged, or that a newer version wrote, is moved away with a line in
// the log, and costs no other state. queuecheck runs before the start, as the
// packages and the image have it.
func TestUnreadableState(t *testing.T) {
	for name, test := range map[string]struct {
		// lost is the kind of state that is not read.
		lost   string
		damage func(t *testing.T, folder string)
		// says is in the log, and kept a pattern of what is moved away.
		says, kept string
	}{
		"page, newer":         {page, inStorage(pageFile, newerState), "The state of the page in the storage is damaged, or a newer version wrote it.", ""},
		"page, damaged":       {page, inStorage(pageFile, garbage), "The state of the page in the storage is damaged, or a newer version wrote it.", ""},
		"changes, newer":      {changes, inStorage(changesFile, newerState), "What ml_metrics keeps over restarts is damaged, or a newer version wrote it.", ""},
		"changes, damaged":    {changes, inStorage(changesFile, garbage), "What ml_metrics keeps over restarts is damaged, or a newer version wrote it.", ""},
		"page's file, newer":  {page, newerFile(pageFile), "is damaged (version mismatch)", "storage/" + pageFile + ".*.backup"},
		"changes' file":       {changes, noFile(changesFile), "is damaged (invalid database)", "storage/" + changesFile + ".*.backup"},
		"queue's file, newer": {queue, newerFile(tracesFile), "is damaged (version mismatch)", "storage/" + tracesFile + ".*.backup"},
		"queue's file":        {queue, noFile(tracesFile), "is damaged (invalid database)", "storage/" + tracesFile + ".*.backup"},
		"group, newer":        {reproductions, inFiles("reproductions/*/group.json", newerSchema), "schema 2 is newer than 1: moved to", "reproductions/*/group.json.backup"},
		"group, damaged":      {reproductions, inFiles("reproductions/*/group.json", noJSON), "A summary cannot be read; its counts begin at zero", "reproductions/*/group.json.backup"},
		"report, damaged":     {"", inFiles("reports/*.html", noJSON), "", "reports/*.html"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, in := written(t)
			test.damage(t, folder)
			code, output := harness.Run(t, harness.Command{
				Name: "queuecheck", Path: harness.Binary(t, "build", "bin", "queuecheck"), Args: []string{filepath.Join(folder, "storage")},
			}, arrival)
			require.Zero(t, code, output)
			c := check(t, folder, in, test.lost)
			assert.Contains(t, output+c.Output(), test.says)
			kept, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(test.kept)))
			require.NoError(t, err)
			assert.NotEmpty(t, kept, "what was moved away")
			if test.kept == "" {
				backups := 0
				edit(t, folder, map[string]string{page: pageFile, changes: changesFile}[test.lost], func(key string, value []byte) []byte {
					if key == "state.backup" {
						backups++
					}
					return value
				})
				assert.Equal(t, 1, backups)
			}
		})
	}
}

// A queue's item that cannot be read costs no other item.
func TestUnreadableItem(t *testing.T) {
	folder, in := written(t)
	damaged := 0
	edit(t, folder, tracesFile, func(key string, value []byte) []byte {
		if damaged == 0 && regexp.MustCompile(`^\d+$`).MatchString(key) {
			damaged++
			return garbage(key, value)
		}
		return value
	})
	require.Equal(t, 1, damaged)
	backend := harness.StartSink(t)
	c := start(t, folder, backend.Endpoint)
	require.Eventually(t, func() bool { return len(backend.Spans()) >= len(in.spans)/2 }, arrival, poll)
	assert.Zero(t, c.Stop(t), "exit code")
	// What is being sent when the collector ends may arrive twice.
	arrived := map[pcommon.SpanID]bool{}
	for _, span := range backend.Spans() {
		arrived[span.SpanID()] = true
	}
	assert.Less(t, len(arrived), len(in.spans))
	assert.Contains(t, c.Output(), "Failed unmarshalling item")
}

func inStorage(name string, change func(string, []byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		edit(t, folder, name, change)
	}
}

func newerState(_ string, value []byte) []byte {
	return bytes.Replace(value, []byte(`"version":1`), []byte(`"version":2`), 1)
}

func garbage(string, []byte) []byte { return []byte("\xff\x00{") }

// newerFile has a file of file_storage be of a newer version of its format.
func newerFile(name string) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		file := filepath.Join(folder, "storage", name)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		// The first two pages describe the file: behind 16 bytes of each are magic,
		// version and size of a page, and at the end a checksum of them.
		size := binary.LittleEndian.Uint32(content[16+8:])
		for _, meta := range [][]byte{content[16:], content[size+16:]} {
			binary.LittleEndian.PutUint32(meta[4:], 3)
			sum := fnv.New64a()
			_, _ = sum.Write(meta[:56])
			binary.LittleEndian.PutUint64(meta[56:], sum.Sum64())
		}
		require.NoError(t, os.WriteFile(file, content, 0o600))
	}
}

// noFile replaces a file of file_storage by one of another kind.
func noFile(name string) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "storage", name), bytes.Repeat([]byte("no database "), 4096), 0o600))
	}
}

// inFiles replaces the content of files.
func inFiles(pattern string, change func(string) string) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.Chmod(name, 0o600))
			require.NoError(t, os.WriteFile(name, []byte(change(string(content))), 0o600))
		}
	}
}

func newerSchema(text string) string { return strings.Replace(text, `"schema": 1`, `"schema": 2`, 1) }

func noJSON(string) string { return "{damaged" }
