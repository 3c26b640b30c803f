//go:build linux

package workload

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readerVariable is set in the process that reads as another user: the number
// of the process to describe. Its working directory is the root directory.
const readerVariable = "WORKLOAD_TEST_READER"

const (
	// Two users that nothing else runs as.
	ownerUID  = 61001
	readerUID = 61002
)

// description is what a reader prints.
type description struct {
	Found Process
	Alive bool
}

func TestMain(m *testing.M) {
	if pid := os.Getenv(readerVariable); pid != "" {
		number, err := strconv.ParseUint(pid, 10, 32)
		if err != nil {
			panic(err)
		}
		directory, err := os.Getwd()
		if err != nil {
			panic(err)
		}
		found, alive := NewProcesses(directory, true).Describe(uint32(number))
		if err := json.NewEncoder(os.Stdout).Encode(description{found, alive}); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// Linux's numbers of capabilities.
const (
	capDACOverride   = 1
	capDACReadSearch = 2
	capSysPtrace     = 19
)

// Both profiles of privileges, with a process of another user: an unprivileged
// reader learns what its cgroup, stat and status say and not its environment;
// root, and who has the two capabilities, learns everything. One of them is
// not enough.
func TestPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to run this as root: it starts processes of two other users")
		}
		t.Skip("NOT TESTED: what may be read of another user's process. It needs root, to start processes of two other users")
	}
	sleeper := exec.CommandContext(t.Context(), "cat")
	sleeper.Env = []string{"SECRET=hunter2", "RANK=3", "WANDB_RUN_ID=run-7", "SLURM_JOB_ID=42"}
	sleeper.Dir = "/"
	sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ownerUID, Gid: ownerUID}}
	input, err := sleeper.StdinPipe()
	require.NoError(t, err)
	output, err := sleeper.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	// Start returns before the kernel has set the environment of the new program.
	// The program answers when it runs.
	_, err = input.Write([]byte("."))
	require.NoError(t, err)
	_, err = output.Read(make([]byte, 1))
	require.NoError(t, err)
	pid := strconv.Itoa(sleeper.Process.Pid)

	// The tests may run in a PID namespace, whose proc is not the host's. This
	// root's is that of the real process, and says that it is the host's.
	root := hostRoot(t)
	require.NoError(t, os.Symlink(filepath.Join("/proc", pid), filepath.Join(root, "proc", pid)))
	openForAll(t, root)

	all := Workload{RunID: "run-7", RankGlobal: known(3), SlurmJobID: "42", UserID: strconv.Itoa(ownerUID)}
	found, alive := NewProcesses(root, true).Describe(uint32(sleeper.Process.Pid))
	require.True(t, alive)
	assert.Equal(t, all, withoutCgroup(found.Workload))
	assert.Equal(t, SourceOK, found.Environ)
	assert.Equal(t, SourceOK, found.Slurm)

	read, written := describeAs(t, root, pid)
	require.True(t, read.Alive)
	assert.Equal(t, Workload{UserID: strconv.Itoa(ownerUID)}, withoutCgroup(read.Found.Workload))
	assert.Equal(t, SourceDenied, read.Found.Environ)
	assert.NotEqual(t, SourceDenied, read.Found.Cgroup)
	assert.Equal(t, found.Cgroup, read.Found.Cgroup)
	assert.Equal(t, found.ContainerID, read.Found.ContainerID)
	assert.Equal(t, "cat", read.Found.Executable)
	assert.True(t, found.Start.Equal(read.Found.Start))
	assert.Equal(t, found.NamespacePID, read.Found.NamespacePID)
	assert.NotContains(t, written, "hunter2")

	if !permitted(t, capSysPtrace, capDACReadSearch, capDACOverride) {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to give this the capabilities SYS_PTRACE, DAC_READ_SEARCH and DAC_OVERRIDE")
		}
		t.Skip("NOT TESTED: what capabilities allow. They are not this process's")
	}
	for name, test := range map[string]struct {
		capabilities []uintptr
		expected     SourceState
	}{
		"SYS_PTRACE":                     {[]uintptr{capSysPtrace}, SourceDenied},
		"DAC_READ_SEARCH":                {[]uintptr{capDACReadSearch}, SourceDenied},
		"SYS_PTRACE and DAC_READ_SEARCH": {[]uintptr{capSysPtrace, capDACReadSearch}, SourceOK},
		// What root in a container has by default, and the one that it lacks.
		"SYS_PTRACE and DAC_OVERRIDE": {[]uintptr{capSysPtrace, capDACOverride}, SourceOK},
	} {
		read, written := describeAs(t, root, pid, test.capabilities...)
		assert.Equal(t, test.expected, read.Found.Environ, name)
		assert.NotContains(t, written, "hunter2", name)
		if test.expected == SourceOK {
			assert.Equal(t, all, withoutCgroup(read.Found.Workload), name)
		}
	}
}

// permitted reports whether this process has capabilities to give.
func permitted(t *testing.T, capabilities ...uint) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "CapPrm:")
	require.True(t, found)
	mask, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	require.NoError(t, err)
	for _, capability := range capabilities {
		if mask&(1<<capability) == 0 {
			return false
		}
	}
	return true
}

// describeAs describes a process as the other user with capabilities, and also
// returns everything that the reader wrote.
func describeAs(t *testing.T, root, pid string, capabilities ...uintptr) (description, string) {
	t.Helper()
	// The program is taken from proc, because its folder is not open to others.
	reader := exec.CommandContext(t.Context(), "/proc/self/exe")
	reader.Env = []string{readerVariable + "=" + pid}
	reader.Dir = root
	reader.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: readerUID, Gid: readerUID}, AmbientCaps: capabilities,
	}
	var stderr bytes.Buffer
	reader.Stderr = &stderr
	output, err := reader.Output()
	require.NoError(t, err, "%s", stderr.String())
	var read description
	require.NoError(t, json.Unmarshal(output, &read))
	return read, string(output) + stderr.String()
}

// withoutCgroup leaves out what the machine that runs the test decides.
func withoutCgroup(w Workload) Workload {
	w.ContainerID, w.PodUID = "", ""
	return w
}

// openForAll lets other users read a folder of the test's, whose files are its
// user's alone, and the folder above it.
func openForAll(t *testing.T, root string) {
	t.Helper()
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	for _, path := range []string{"", "proc", "proc/2"} {
		require.NoError(t, os.Chmod(filepath.Join(root, path), 0o755))
	}
	for _, path := range []string{"proc/stat", "proc/2/comm"} {
		require.NoError(t, os.Chmod(filepath.Join(root, path), 0o644))
	}
}
