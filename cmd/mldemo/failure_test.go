package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	traceAndSpan = "-0123456789abcdef0123456789abcdef-0123456789abcdef"
	groupA       = "aaaaaaaaaaaaaaaa"
	groupB       = "bbbbbbbbbbbbbbbb"
)

// write makes a file below a folder with all folders that it needs.
func write(t *testing.T, content string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

func TestNewestFailure(t *testing.T) {
	folder := t.TempDir()
	none, err := newestFailure(filepath.Join(folder, "not-there"))
	require.NoError(t, err)
	assert.Nil(t, none)

	// A, first seen before B and last seen after it, has two reproductions.
	write(t, "", folder, groupA, "20261120T100000Z"+traceAndSpan, "repro.py")
	newer := write(t, "", folder, groupA, "20261120T100500Z"+traceAndSpan, "repro.py")
	write(t, `{"kind":"python_call","type":"ValueError","message":"no","count":7,"services":["snakepit","other"],"last_seen":"2026-11-20T11:00:00Z","unknown":[1]}`,
		folder, groupA, "group.json")
	write(t, "", folder, groupB, "20261120T103000Z"+traceAndSpan, "repro.py")
	write(t, `{"type":"KeyError","count":1,"last_seen":"2026-11-20T10:30:00Z"}`, folder, groupB, "group.json")
	// What repro_gen did not write.
	write(t, "", folder, "not-a-group", "20291120T103000Z"+traceAndSpan, "repro.py")
	write(t, "", folder, groupB, "20291120T103000Z"+strings.ToUpper(traceAndSpan), "repro.py")
	write(t, "", folder, groupB, "20291120T103000Z"+traceAndSpan, "other.py")
	write(t, "", folder, "cccccccccccccccc")

	got, err := newestFailure(folder)
	require.NoError(t, err)
	assert.Equal(t, &failure{
		kind: "python_call", errorType: "ValueError", message: "no", service: "snakepit", count: 7, groups: 2,
		seen: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC), script: newer,
	}, got)
}

func TestFailureThatCanBeReplayedIsShownFirst(t *testing.T) {
	folder := t.TempDir()
	replays := write(t, "", folder, groupA, "20261120T100000Z"+traceAndSpan, "repro.py")
	write(t, `{"kind":"python_call"}`, folder, groupA, "group.json")
	write(t, "", folder, groupB, "20261120T110000Z"+traceAndSpan, "repro.py")
	write(t, `{"kind":"context"}`, folder, groupB, "group.json")
	got, err := newestFailure(folder)
	require.NoError(t, err)
	assert.Equal(t, replays, got.script)
}

func TestFailureWithoutAReadableGroup(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON": "{", "too large": strings.Repeat(" ", maxGroupBytes+1) + "{}", "another form": `{"count":"many"}`,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			script := write(t, "", folder, groupA, "20261120T100000Z"+traceAndSpan, "repro.py")
			write(t, content, folder, groupA, "group.json")
			got, err := newestFailure(folder)
			require.ErrorContains(t, err, groupA)
			assert.Equal(t, &failure{groups: 1, seen: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), script: script}, got)
		})
	}
}

func TestNewestFailureFollowsNoLinks(t *testing.T) {
	outside := t.TempDir()
	write(t, "", outside, "20261120T100000Z"+traceAndSpan, "repro.py")
	secret := write(t, `{"type":"secret"}`, outside, "group.json")

	folder := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, groupA)))
	got, err := newestFailure(folder)
	require.NoError(t, err)
	assert.Nil(t, got)

	write(t, "", folder, groupB, "20261120T100000Z"+traceAndSpan, "repro.py")
	require.NoError(t, os.Symlink(secret, filepath.Join(folder, groupB, "group.json")))
	got, err = newestFailure(folder)
	require.ErrorContains(t, err, "not a regular file")
	assert.Empty(t, got.errorType)
}
