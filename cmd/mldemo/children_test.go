package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func startFake(t *testing.T, role string) (_ *child, journal string) {
	t.Helper()
	folder := t.TempDir()
	program(t, folder, roleOrphan)
	journal = filepath.Join(folder, "journal")
	c, err := startChild(role, program(t, folder, role), nil, append(os.Environ(), envJournal+"="+journal), filepath.Join(folder, "log"))
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

func TestStopKillsAfterTheGrace(t *testing.T) {
	c, journal := startFake(t, roleStubborn)
	pids := untilStarted(t, journal, 1)
	err := c.stop(context.Background(), 50*time.Millisecond)
	require.ErrorContains(t, err, "did not end within 50ms and was killed")
	assert.True(t, c.ended())
	requireAllGone(t, pids)
	assert.NoError(t, c.stop(context.Background(), time.Hour), "stopping twice does nothing")
}

func TestStopTakesWhatTheProgramLeftBehind(t *testing.T) {
	c, journal := startFake(t, roleLeavesOrphan)
	pids := untilStarted(t, journal, 2)
	require.NoError(t, c.stop(context.Background(), waitFor))
	names, _ := readJournal(t, journal)
	assert.NotContains(t, names, "orphan-ended", "the orphan is killed, not asked")
	requireAllGone(t, pids)
}

func TestStartChildThatDoesNotExist(t *testing.T) {
	folder := t.TempDir()
	_, err := startChild("mlgen", filepath.Join(folder, "missing"), nil, nil, filepath.Join(folder, "log"))
	require.ErrorContains(t, err, "start mlgen")
	_, err = startChild("mlgen", filepath.Join(folder, "missing"), nil, nil, filepath.Join(folder, "no", "log"))
	require.ErrorContains(t, err, "open the log of mlgen")
}

func TestLogTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"empty":       {"", nil},
		"short":       {"a\n\tb\n", []string{"a", "  b"}},
		"no line end": {"a\nb", []string{"a", "b"}},
		"escapes":     {"\x1b]0;title\x07\n", []string{`\x1b]0;title\x07`}},
		"one long line": {
			strings.Repeat("x", 3*tailBytes),
			[]string{strings.Repeat("x", maxTextRunes) + "…"},
		},
		"many lines": {
			strings.Repeat(strings.Repeat("x", 99)+"\n", 1000) + "end\n",
			append(strings.Split(strings.Repeat(strings.Repeat("x", 99)+"\n", tailLines-1), "\n")[:tailLines-1], "end"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			lines, err := tailOf(path)
			require.NoError(t, err)
			assert.Equal(t, test.want, lines)
		})
	}
}
