package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// running is a demo that runs as a process of its own.
type running struct {
	command        *exec.Cmd
	stdout, stderr *buffer
	journal, dir   string
}

// buffer is a bytes.Buffer that can be read while a process writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// runFake starts a demo with the given programs on free ports.
func runFake(t *testing.T, collector, mlgen string, stdout io.Writer, more ...string) *running {
	t.Helper()
	folder := t.TempDir()
	r := &running{
		stdout: &buffer{}, stderr: &buffer{},
		journal: filepath.Join(folder, "journal"), dir: filepath.Join(folder, "output"),
	}
	program(t, folder, roleOrphan)
	arguments := []string{
		"--collector", program(t, folder, collector), "--mlgen", program(t, folder, mlgen),
		"--config", "the-configuration", "--dir", r.dir,
	}
	for _, e := range demoEndpoints() {
		arguments = append(arguments, "--"+e.flag, "127.0.0.1:0")
	}
	r.command = exec.Command(program(t, folder, roleDemo), append(arguments, more...)...)
	r.command.Env = append(os.Environ(), envJournal+"="+r.journal)
	r.command.Stdout, r.command.Stderr = r.stdout, r.stderr
	if stdout != nil {
		r.command.Stdout = stdout
	}
	require.NoError(t, r.command.Start())
	t.Cleanup(func() {
		// Only where a test has failed before its end; its children end with
		// the demo on Linux.
		if r.command.ProcessState == nil {
			_ = r.command.Process.Kill()
			_ = r.command.Wait()
		}
	})
	return r
}

// until waits until the journal has a line.
func (r *running) until(t *testing.T, line string) {
	t.Helper()
	require.Eventually(t, func() bool {
		names, _ := readJournal(t, r.journal)
		return slices.Contains(names, line)
	}, waitFor, lookEvery, "no %q; stderr: %s", line, r.stderr)
}

func (r *running) wait(t *testing.T) int {
	t.Helper()
	_ = r.command.Wait() // the exit code says it all
	return r.command.ProcessState.ExitCode()
}

func TestSignalsStopEverythingInOrder(t *testing.T) {
	for name, asked := range map[string]syscall.Signal{
		"Ctrl-C": syscall.SIGINT, "a supervisor": syscall.SIGTERM, "a closed terminal": syscall.SIGHUP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runFake(t, roleCollector, roleMlgen, nil)
			r.until(t, "mlgen-started")
			require.Eventually(t, func() bool { return bytes.Contains([]byte(r.stdout.String()), []byte("Send your own OTLP")) }, waitFor, lookEvery)
			require.NoError(t, r.command.Process.Signal(asked))
			assert.Equal(t, 0, r.wait(t), r.stderr.String())
			names, pids := readJournal(t, r.journal)
			assert.Equal(t, []string{"collector-started", "mlgen-started", "mlgen-ended", "collector-ended"}, names)
			requireAllGone(t, pids)
			assert.Contains(t, r.stdout.String(), "Stopping mlgen … done\nStopping the collector … done\nLogs are left in "+r.dir)
			assert.Regexp(t, "\n\nhttp://127\\.0\\.0\\.1:\\d+/\n\nSIMULATED DATA\nwidth 120, color false\n$", r.stdout.String(), "the last text, whole")
			assert.Regexp(t, "\nhttp://127\\.0\\.0\\.1:\\d+/\nCtrl-C ends .*\n\nSIMULATED DATA\nwidth 120, color false\n", r.stdout.String())
			assert.Empty(t, r.stderr.String())
			log, err := os.ReadFile(filepath.Join(r.dir, "mlgen.log"))
			require.NoError(t, err)
			assert.Regexp(t, `^mlgen --scenario all --protocol auto --incident all --incident-rate 20 --incident-steps 1800 --metrics-interval 1s --endpoint 127\.0\.0\.1:\d+ --http-endpoint http://127\.0\.0\.1:\d+\n`, string(log))
		})
	}
}

func TestChildThatDiesEndsTheDemo(t *testing.T) {
	for name, test := range map[string]struct {
		collector, mlgen string
		says             string
	}{
		"collector": {roleDies, roleMlgen, "the collector ended with exit status 3"},
		"mlgen":     {roleCollector, roleDies, "mlgen ended with exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runFake(t, test.collector, test.mlgen, nil)
			assert.Equal(t, 1, r.wait(t))
			assert.Contains(t, r.stderr.String(), test.says)
			assert.Contains(t, r.stderr.String(), ":\n  first line\n  cannot go on:\ufffd[2Jcause\n")
			_, pids := readJournal(t, r.journal)
			requireAllGone(t, pids)
		})
	}
}

func TestCtrlCWhileTheCollectorStarts(t *testing.T) {
	t.Parallel()
	r := runFake(t, roleSickCollector, roleMlgen, nil)
	r.until(t, "collector-started")
	require.NoError(t, r.command.Process.Signal(os.Interrupt))
	assert.Equal(t, 0, r.wait(t), r.stderr.String())
	names, pids := readJournal(t, r.journal)
	assert.Equal(t, []string{"collector-started", "collector-ended"}, names)
	requireAllGone(t, pids)
}

func TestSecondCtrlCKillsAProgramThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	r := runFake(t, roleCollector, roleStubborn, nil)
	r.until(t, "stubborn")
	require.NoError(t, r.command.Process.Signal(os.Interrupt))
	require.Eventually(t, func() bool { return bytes.Contains([]byte(r.stdout.String()), []byte("Stopping mlgen")) }, waitFor, lookEvery)
	// One that comes at once is taken for the same Ctrl-C, a later one not.
	require.Eventually(t, func() bool {
		return r.command.Process.Signal(os.Interrupt) == nil && bytes.Contains([]byte(r.stdout.String()), []byte("signal: killed"))
	}, waitFor, 100*lookEvery)
	assert.Equal(t, 0, r.wait(t), r.stderr.String())
	_, pids := readJournal(t, r.journal)
	requireAllGone(t, pids)
}

func TestCtrlCThatComesTwiceIsOne(t *testing.T) {
	t.Parallel()
	r := runFake(t, roleCollector, roleMlgen, nil)
	r.until(t, "mlgen-started")
	require.NoError(t, r.command.Process.Signal(os.Interrupt))
	require.NoError(t, r.command.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 0, r.wait(t), r.stderr.String())
	assert.NotContains(t, r.stdout.String(), "killed")
	names, _ := readJournal(t, r.journal)
	assert.Equal(t, []string{"collector-started", "mlgen-started", "mlgen-ended", "collector-ended"}, names)
}

func TestReaderThatGoesAwayEndsTheDemo(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	r := runFake(t, roleCollector, roleMlgen, writer)
	require.NoError(t, writer.Close())
	r.until(t, "mlgen-started")
	require.NoError(t, reader.Close())
	assert.Equal(t, 1, r.wait(t))
	assert.Contains(t, r.stderr.String(), "broken pipe")
	_, pids := readJournal(t, r.journal)
	requireAllGone(t, pids)
}

func TestKilledDemoLeavesNoChildren(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux ends the children of a process that is killed")
	}
	t.Parallel()
	r := runFake(t, roleCollector, roleMlgen, nil)
	r.until(t, "mlgen-started")
	require.NoError(t, r.command.Process.Kill())
	r.wait(t)
	_, pids := readJournal(t, r.journal)
	require.Contains(t, pids, "collector-started")
	requireAllGone(t, pids)
}

func TestOnce(t *testing.T) {
	for name, test := range map[string]struct{ config, duration string }{
		"a complete page at once":               {"complete", "1m"},
		"an incomplete page after the duration": {"incomplete", "3s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runFake(t, roleCollector, roleMlgen, nil, "--once", "--duration", test.duration, "--config", test.config)
			assert.Equal(t, 0, r.wait(t), r.stderr.String())
			assert.Equal(t, 1, bytes.Count([]byte(r.stdout.String()), []byte("SIMULATED")))
			_, pids := readJournal(t, r.journal)
			requireAllGone(t, pids)
		})
	}
}

func TestPageWithoutARun(t *testing.T) {
	for config, says := range map[string]string{"no-run": "\n$", "no-page": `\n.* answers 404 Not Found`} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			r := runFake(t, roleCollector, roleMlgen, nil, "--duration", "1s", "--config", config)
			assert.Equal(t, 1, r.wait(t))
			assert.Regexp(t, `http://127\.0\.0\.1:\d+/ showed no run within 1s`+says, r.stderr.String())
			assert.NotContains(t, r.stdout.String(), "SIMULATED")
		})
	}
}

func TestComplete(t *testing.T) {
	for document, complete := range map[string]bool{
		`{"runs":[{}],"gpus":[{}],"failures":[{"replays":false},{"replays":true}]}`: true,
		`{"runs":[],"gpus":[{}],"failures":[{"replays":true}]}`:                     false,
		`{"runs":[{}],"gpus":[],"failures":[{"replays":true}]}`:                     false,
		`{"runs":[{}],"gpus":[{}],"failures":[{"command":"known"}]}`:                false,
	} {
		var s state
		require.NoError(t, json.Unmarshal([]byte(document), &s))
		assert.Equal(t, complete, s.complete(), document)
	}
}

// What a terminal has no room for is left out, and cleared.
func TestFrame(t *testing.T) {
	assert.Equal(t, "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J", frame("a\nb\n", 80, 24))
	assert.Equal(t, "\x1b[Ha\x1b[K\n… 3 more lines\x1b[K\n\x1b[J", frame("a\nb\nc\nd\n", 80, 3))
	assert.Equal(t, "\x1b[Ha\x1b[K\n… 2 more lines\x1b[K\n\x1b[J", frame("a\n"+strings.Repeat("x", 161)+"\nc\n", 80, 4), "a line that wraps")
	assert.NotPanics(t, func() { frame("", 0, 0) })
}

func TestSecondDemoInTheSameFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, err := lockFolder(folder)
	require.NoError(t, err)
	_, err = lockFolder(folder)
	require.ErrorContains(t, err, "choose another one with --dir")
	require.NoError(t, unlockFolder(first))
	again, err := lockFolder(folder)
	require.NoError(t, err)
	require.NoError(t, unlockFolder(again))
}

func TestReserve(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	address := taken.Addr().String()
	var notes strings.Builder
	say := func(format string, arguments ...any) { _, _ = fmt.Fprintf(&notes, format, arguments...) }
	health := endpoint{use: "health check", flag: "health-endpoint", env: []string{"HEALTH_ENDPOINT"}, address: address}
	t.Run("moves an address that nobody asked for", func(t *testing.T) {
		chosen, err := reserve([]endpoint{health}, say)
		require.NoError(t, err)
		assert.NotEqual(t, address, chosen[0].address)
		assert.Equal(t, "note: "+address+" is taken by another program: health check is on "+chosen[0].address+" (--health-endpoint sets it)\n", notes.String())
	})
	t.Run("keeps one that was asked for", func(t *testing.T) {
		asked := health
		asked.explicit = true
		_, err := reserve([]endpoint{asked}, say)
		require.ErrorContains(t, err, "the address for health check cannot be used")
		require.ErrorContains(t, err, address+": bind: address already in use")
		assert.ErrorContains(t, err, "--health-endpoint or HEALTH_ENDPOINT")
	})
	t.Run("gives no port twice", func(t *testing.T) {
		twice := endpoint{use: "x", flag: "x", env: []string{"X"}, address: "127.0.0.1:0"}
		chosen, err := reserve([]endpoint{twice, twice}, say)
		require.NoError(t, err)
		assert.NotEqual(t, chosen[0].address, chosen[1].address)
		one := twice
		one.address, one.explicit = chosen[0].address, true
		_, err = reserve([]endpoint{one, one}, say)
		require.ErrorContains(t, err, "already in use")
	})
	t.Run("says why an address is no good", func(t *testing.T) {
		for bad, why := range map[string]string{
			"192.0.2.1:80": "assign requested address", // of the documentation range, which no machine has
			"localhost":    "missing port", "localhost:70000": "invalid port",
		} {
			asked := health
			asked.address = bad
			_, err := reserve([]endpoint{asked}, say)
			require.ErrorContains(t, err, "the address for health check cannot be used")
			assert.ErrorContains(t, err, why)
		}
	})
}

func TestDialable(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:1": "127.0.0.1:1", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "127.0.0.1:1", ":1": "127.0.0.1:1",
		"localhost:1": "localhost:1", "nonsense": "nonsense",
	} {
		assert.Equal(t, want, dialable(address))
	}
}
