package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func startFake(t *testing.T, role string, grace time.Duration) (_ *child, journal string) {
	t.Helper()
	folder := t.TempDir()
	program(t, folder, roleOrphan)
	journal = filepath.Join(folder, "journal")
	c, err := startChild(role, program(t, folder, role), nil, append(os.Environ(), envJournal+"="+journal), filepath.Join(folder, "log"), grace)
	require.NoError(t, err)
	return c, journal
}

func untilStarted(t *testing.T, journal string, count int) map[string]int {
	t.Helper()
	var pids map[string]int
	require.Eventually(t, func() bool {
		_, pids = readJournal(t, journal)
		return len(pids) >= count
	}, waitFor, lookEvery)
	return pids
}

// stopped stops a child and returns what that says.
func stopped(c *child) string {
	var said strings.Builder
	c.stop(context.Background(), func(format string, arguments ...any) { _, _ = fmt.Fprintf(&said, format, arguments...) })
	return said.String()
}

func TestStopKillsAfterTheGrace(t *testing.T) {
	c, journal := startFake(t, roleStubborn, 50*time.Millisecond)
	pids := untilStarted(t, journal, 1)
	assert.Equal(t, "Stopping "+roleStubborn+" … signal: killed\n", stopped(c))
	assert.True(t, c.ended())
	requireAllGone(t, pids)
	assert.Empty(t, stopped(c), "stopping twice does nothing")
}

func TestStopTakesWhatTheProgramLeftBehind(t *testing.T) {
	c, journal := startFake(t, roleLeavesOrphan, waitFor)
	pids := untilStarted(t, journal, 2)
	assert.Equal(t, "Stopping "+roleLeavesOrphan+" … done\n", stopped(c))
	names, _ := readJournal(t, journal)
	assert.NotContains(t, names, "orphan-ended", "the orphan is killed, not asked")
	requireAllGone(t, pids)
}

func TestStartChildThatDoesNotExist(t *testing.T) {
	folder := t.TempDir()
	_, err := startChild("mlgen", filepath.Join(folder, "missing"), nil, nil, filepath.Join(folder, "log"), time.Second)
	require.ErrorContains(t, err, "start mlgen")
	_, err = startChild("mlgen", filepath.Join(folder, "missing"), nil, nil, filepath.Join(folder, "no", "log"), time.Second)
	require.ErrorContains(t, err, "open the log of mlgen")
}

func TestBecause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	c := &child{name: "mlgen", log: path}
	require.ErrorContains(t, c.because("ended"), "no such file")
	for name, test := range map[string]struct{ text, want string }{
		"empty":       {"", ""},
		"short":       {"a\n\tb\n", "a\n    b"},
		"no line end": {"a\nb", "a\n  b"},
		"escapes":     {"\x1b]0;title\x07\u202e\n", "\ufffd]0;title\ufffd\ufffd"},
		"many lines":  {strings.Repeat("x\n", 1000) + "end\n", strings.Repeat("x\n  ", 14) + "end"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			assert.EqualError(t, c.because("ended"), "mlgen ended; the end of its log "+path+":\n  "+test.want)
		})
	}
}
