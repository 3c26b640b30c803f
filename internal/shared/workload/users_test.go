package workload

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func writePasswd(t *testing.T, root, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc", "passwd"), []byte(text), 0o600))
}

func TestNamesOfUsers(t *testing.T) {
	root := hostRoot(t)
	writePasswd(t, root, strings.Repeat("# others\n", 1<<18)+"root:x:0:0:root:/root:/bin/sh\nada:x:7:7:Ada Lovelace,,,:/home/ada:/bin/bash\nalias:x:7:7::/:\n")
	process := func(pid, uid, cgroup, environ string) {
		writeProcess(t, root, pid, map[string]string{
			"status": "Uid:\t" + uid + "\t0\t0\t0\n", "cgroup": "0::" + cgroup + "\n", "environ": environ, "stat": statLine("py", "S", 3, 1),
		})
	}
	const job = "/system.slice/slurmstepd.scope/job_5/step_0/user/task_0"
	process("10", "7", "/user.slice", "")
	process("11", "8", "/user.slice", "SLURM_JOB_USER=eve\x00")
	process("12", "8", job, "SLURM_JOB_USER=grace\x00")
	process("13", "7", job, "SLURM_JOB_USER=eve\x00")
	process("14", "7", "/docker/"+containerA, "SLURM_JOB_ID=5\x00SLURM_JOB_USER=eve\x00")
	process("15", "8", job, "SLURM_JOB_USER=two words\x00")
	process("16", "8", job, "SLURM_JOB_USER=7\x00")
	for pid, want := range map[uint32]string{
		10: "ada",
		11: "", // no job
		12: "grace",
		13: "ada", // a process cannot change etc/passwd
		14: "",    // the users of a container are others
		15: "",
		16: "", // a number is not a name
	} {
		found, alive := NewProcesses(root, true).Describe(pid)
		require.True(t, alive)
		assert.Equal(t, want, found.UserName, pid)
		found, _ = NewProcesses(root, false).Describe(pid)
		assert.Empty(t, found.UserName, "names are not wanted")
	}
}

func TestTheFileOfUsersIsReadAgainWhenItChanges(t *testing.T) {
	root := hostRoot(t)
	writeProcess(t, root, "10", map[string]string{"status": "Uid:\t7\t0\t0\t0\n", "cgroup": "0::/\n", "stat": statLine("py", "S", 3, 1)})
	processes := NewProcesses(root, true)
	name := func() string {
		found, alive := processes.Describe(10)
		require.True(t, alive)
		return found.UserName
	}
	assert.Empty(t, name(), "there is no file")
	writePasswd(t, root, "ada:x:7:7::/:\n")
	assert.Equal(t, "ada", name())
	writePasswd(t, root, "grace:x:7:7::/:\n")
	assert.Equal(t, "grace", name())
	require.NoError(t, os.Remove(filepath.Join(root, "etc", "passwd")))
	assert.Equal(t, "grace", name(), "the last names stay")
	require.NoError(t, os.RemoveAll(root))
	assert.Equal(t, "grace", processes.users.name(7))
}

// A link out of the host's root directory would lead to the collector's own users.
func TestTheFileOfUsersIsTheHosts(t *testing.T) {
	root, other := hostRoot(t), t.TempDir()
	writePasswd(t, other, "eve:x:7:7::/:\n")
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o750))
	require.NoError(t, os.Symlink(filepath.Join(other, "etc", "passwd"), filepath.Join(root, "etc", "passwd")))
	known := newUsers(root)
	assert.Empty(t, known.name(7))
}

// Opening a pipe without a writer would never return.
func TestAPipeIsNoFileOfUsers(t *testing.T) {
	root := hostRoot(t)
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o750))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "etc", "passwd"), 0o600))
	known := newUsers(root)
	assert.Empty(t, known.name(7))
}

// In a container without root_path there is only the container's file.
func TestTheUsersOfAContainerAreNotRead(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	known := newUsers("")
	assert.Empty(t, known.name(0))
	known = newUsers("/")
	assert.Equal(t, "root", known.name(0))
}

func TestParsePasswd(t *testing.T) {
	for text, want := range map[string]map[int64]string{
		"":                                       {},
		"ada":                                    {},
		"ada:x:7":                                {},
		"ada:x:7:7":                              {7: "ada"},
		"ada:x:seven:7::/:\n":                    {},
		":x:7:7::/:\nada:x:7:7::/:\n":            {7: "ada"},
		"+::::::\n":                              {},
		"a b:x:7:7::/:\n":                        {},
		"42:x:7:7::/:\n":                         {},
		"\xff:x:7:7::/:\n":                       {},
		strings.Repeat("a", 65) + ":x:7:7::/:\n": {},
		"ada:x:7:7::/:\r\neve:x:99999999999999999999:1::/:": {7: "ada"},
	} {
		assert.Equal(t, want, parsePasswd([]byte(text)), text)
	}
	var many strings.Builder
	for i := range maxUsers + 10 {
		many.WriteString("u" + strconv.Itoa(i) + ":x:" + strconv.Itoa(i) + ":0::/:\n")
	}
	assert.Len(t, parsePasswd([]byte(many.String())), maxUsers)
}

func FuzzParsePasswd(f *testing.F) {
	f.Add([]byte("root:x:0:0:root:/root:/bin/sh\nada:x:7:7::/:\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, name := range parsePasswd(raw) {
			assert.True(t, isUserName(name), name)
		}
	})
}
