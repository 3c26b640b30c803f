package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The test binary plays the programs that the demo starts, and the demo
// itself, when it is called by one of these names.
const (
	roleDemo           = "fake-mldemo"
	roleCollector      = "fake-collector"
	roleSickCollector  = "fake-sick-collector"
	roleMlgen          = "fake-mlgen"
	roleDies           = "fake-dies"
	roleStubborn       = "fake-stubborn"
	roleLeavesOrphan   = "fake-leaves-orphan"
	roleOrphan         = "fake-orphan"
	envJournal         = "MLDEMO_TEST_JOURNAL"
	waitFor            = 20 * time.Second
	lookEvery          = 10 * time.Millisecond
	exitOfProgramDying = 3
	// longestLife ends programs that a failing test has lost.
	longestLife = time.Minute
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case roleDemo:
		main()
	case roleCollector:
		playCollector(true)
	case roleSickCollector:
		playCollector(false)
	case roleMlgen:
		play("mlgen", strings.Join(os.Args[1:], " "))
	case roleOrphan:
		play("orphan", "")
	case roleDies:
		fmt.Println("first line")
		fmt.Println("cannot go on:\x1b[2Jcause")
		os.Exit(exitOfProgramDying)
	case roleStubborn:
		signal.Ignore(syscall.SIGTERM)
		journal("stubborn")
		time.Sleep(longestLife)
	case roleLeavesOrphan:
		orphan := exec.Command(filepath.Join(filepath.Dir(os.Args[0]), roleOrphan))
		if err := orphan.Start(); err != nil {
			panic(err)
		}
		play("leaver", "")
	default:
		goleak.VerifyTestMain(m)
	}
}

// journal adds a line with the process id to the file that the test reads.
func journal(what string) {
	file, err := os.OpenFile(os.Getenv(envJournal), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	// One write, so that the lines of several processes do not mix.
	if _, err := fmt.Fprintf(file, "%s %d\n", what, os.Getpid()); err != nil {
		panic(err)
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
}

// play is a program that runs until it is asked to end.
func play(name, arguments string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println(name, arguments)
	journal(name + "-started")
	select {
	case <-asked:
		journal(name + "-ended")
	case <-time.After(longestLife):
	}
	os.Exit(0)
}

func playCollector(healthy bool) {
	serve := func(address string, handle http.HandlerFunc) {
		go func() {
			server := &http.Server{Addr: address, Handler: handle, ReadHeaderTimeout: time.Second}
			panic(server.ListenAndServe())
		}()
	}
	serve(os.Getenv("ML_VIEW_ENDPOINT"), playPage)
	if healthy {
		serve(os.Getenv("HEALTH_ENDPOINT"), func(http.ResponseWriter, *http.Request) {})
	}
	play("collector", strings.Join(os.Args[1:], " "))
}

// playPage is a page as the configuration names it.
func playPage(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.Contains(strings.Join(os.Args, " "), "no-page"):
		http.NotFound(w, r)
	case r.URL.Path == "/api/v1/state" && strings.Contains(strings.Join(os.Args, " "), "no-run"):
		_, _ = io.WriteString(w, `{"runs":[]}`)
	case r.URL.Path == "/api/v1/state" && strings.Contains(strings.Join(os.Args, " "), "incomplete"):
		_, _ = io.WriteString(w, `{"runs":[{}],"gpus":[],"failures":[{"class":"E"}]}`)
	case r.URL.Path == "/api/v1/state":
		_, _ = io.WriteString(w, `{"version":1,"runs":[{"key":"a"}],"gpus":[{"key":"g"}],"failures":[{"class":"E"},{"replays":true}],"needs":[]}`)
	case r.URL.Path == "/" && r.Header.Get("Accept") == "text/plain":
		_, _ = fmt.Fprintf(w, "SIMULATED DATA\nwidth %s, color %s\n", r.FormValue("width"), r.FormValue("color"))
	default:
		http.NotFound(w, r)
	}
}

// program makes the test binary callable by a role's name.
func program(t *testing.T, folder, role string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(folder, role)
	require.NoError(t, os.Symlink(self, path))
	return path
}

// readJournal returns what the programs wrote: the names in order, and the
// process ids.
func readJournal(t *testing.T, path string) (names []string, pids map[string]int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	require.NoError(t, err)
	pids = map[string]int{}
	for line := range strings.Lines(string(data)) {
		name, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
		pids[name], err = strconv.Atoi(pid)
		require.NoError(t, err)
	}
	return names, pids
}

// gone says whether a process has ended, reaped or not.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(state, []byte("Z"))
}

func requireAllGone(t *testing.T, pids map[string]int) {
	t.Helper()
	for name, pid := range pids {
		require.Eventually(t, func() bool { return gone(pid) }, waitFor, lookEvery, "%s (%d) is still there", name, pid)
	}
}

func TestParseFlagsNamesWhatIsWrong(t *testing.T) {
	var help bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	_, err := parseFlags([]string{"left over"}, none, &help)
	require.ErrorContains(t, err, `unexpected argument "left over"`)
	_, err = parseFlags([]string{"--duration", "long"}, none, &help)
	require.ErrorContains(t, err, "duration")
}

func TestParseFlagsTakesAddressesFromFlagsThenEnvironment(t *testing.T) {
	environment := map[string]string{
		"OTLP_GRPC_ENDPOINT": "127.0.0.1:1111", "OTLP_HTTP_ENDPOINT": "127.0.0.1:2222",
		"SELF_METRICS_PORT": "3333", "OTELCOL_ML_REPRO_DIR": "/somewhere/else",
	}
	lookup := func(name string) (string, bool) { value, ok := environment[name]; return value, ok }
	s, err := parseFlags([]string{
		"--otlp-grpc-endpoint", "127.0.0.1:4444", "--once",
	}, lookup, &bytes.Buffer{})
	require.NoError(t, err)
	addresses := map[string]string{}
	explicit := map[string]bool{}
	for _, e := range s.endpoints {
		addresses[e.flag], explicit[e.flag] = e.address, e.explicit
	}
	assert.Equal(t, map[string]string{
		"view-endpoint": "127.0.0.1:8890", "otlp-grpc-endpoint": "127.0.0.1:4444", "otlp-http-endpoint": "127.0.0.1:2222", "prometheus-endpoint": "127.0.0.1:8889",
		"health-endpoint": "127.0.0.1:13133", "self-metrics-endpoint": "127.0.0.1:3333",
	}, addresses)
	assert.Equal(t, map[string]bool{
		"view-endpoint": false, "otlp-grpc-endpoint": true, "otlp-http-endpoint": true, "prometheus-endpoint": false,
		"health-endpoint": false, "self-metrics-endpoint": true,
	}, explicit)
	assert.Equal(t, "/somewhere/else", s.reproductions)
	assert.Equal(t, time.Minute, s.duration)
}

func TestExitCodes(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, 0, runDemo([]string{"-help"}, os.LookupEnv, os.Stdout, &stderr))
	assert.Contains(t, stderr.String(), "-view-endpoint address")
	assert.Equal(t, 2, runDemo([]string{"-no-such-flag"}, os.LookupEnv, os.Stdout, &stderr))
}
