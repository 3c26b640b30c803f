package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// statLine is a process's stat that began at a time in clock ticks since the
// boot.
func statLine(name, state string, threads, start int) string {
	return "10 (" + name + ") " + state + " 1 10 10 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 " +
		strconv.Itoa(threads) + " 0 " + strconv.Itoa(start) + " 1 1 1\n"
}

func writeProcess(t *testing.T, root, pid string, files map[string]string) {
	t.Helper()
	directory := filepath.Join(root, "proc", pid)
	require.NoError(t, os.MkdirAll(directory, 0o750))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600))
	}
}

// hostRoot is a root directory whose proc shows the host's processes.
func hostRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	writeProcess(t, root, "2", map[string]string{"comm": "kthreadd\n"})
	require.NoError(t, os.WriteFile(filepath.Join(root, "proc", "stat"), []byte("cpu 1 2\nbtime 1700000000\n"), 0o600))
	return root
}

func TestDescribe(t *testing.T) {
	root := hostRoot(t)
	writeProcess(t, root, "10", map[string]string{
		"environ": "RANK=1\x00", "cgroup": "0::/slurm/uid_1/job_5\n",
		"status": "Name:\tpy\nUid:\t7\t8\t8\t8\nNSpid:\t10\t3\n", "stat": statLine("a) R (b", "S", 3, 1234),
	})
	writeProcess(t, root, "11", map[string]string{
		"cgroup": "0::/docker/" + containerA + "\n", "stat": statLine("x", "R", 1, 5),
	})
	writeProcess(t, root, "13", map[string]string{"stat": statLine("x", "Z", 1, 5)})
	writeProcess(t, root, "14", map[string]string{"stat": statLine("x", "Z", 2, 5), "cgroup": "0::/user.slice\n"})
	writeProcess(t, root, "15", map[string]string{"stat": "garbage", "cgroup": "0::/\n", "environ": "RANK=2"})
	writeProcess(t, root, "16", map[string]string{"stat": statLine("x", "S", 1, 5)})
	processes := NewProcesses(root, true)
	require.True(t, processes.Visible())

	found, alive := processes.Describe(10)
	require.True(t, alive)
	assert.Equal(t, Workload{RankGlobal: known(1), SlurmJobID: "5", UserID: "7"}, found.Workload)
	assert.Equal(t, "a) R (b", found.Executable)
	assert.Equal(t, known(3), found.NamespacePID)
	assert.Equal(t, time.Unix(1700000012, 340_000_000), found.Start)
	assert.Equal(t, Evidence{Cgroup: SourceOK, Environ: SourceOK, Slurm: SourceOK, cgroupRead: true}, found.Evidence)
	assert.True(t, found.OnHost(&found.Workload))

	found, alive = processes.Describe(11)
	require.True(t, alive)
	assert.Equal(t, Workload{ContainerID: containerA}, found.Workload)
	assert.Equal(t, Evidence{Cgroup: SourceOK, Environ: SourceAbsent, Slurm: SourceAbsent, cgroupRead: true}, found.Evidence)
	assert.False(t, found.OnHost(&found.Workload))

	for pid, expected := range map[uint32]bool{
		12: false, // there is none
		13: false, // a zombie
		14: true,  // its first thread has ended, another has not
		15: true,  // a stat that says nothing
		16: false, // it ended after its stat was read
	} {
		_, alive := processes.Describe(pid)
		assert.Equal(t, expected, alive, pid)
	}
}

func TestAlive(t *testing.T) {
	root := hostRoot(t)
	files := func(stat string) map[string]string {
		return map[string]string{"stat": stat, "cgroup": "0::/\n"}
	}
	writeProcess(t, root, "10", files(statLine("x", "S", 1, 7)))
	processes := NewProcesses(root, true)
	found, _ := processes.Describe(10)

	for name, test := range map[string]struct {
		stat     string
		expected bool
	}{
		"the same":                         {statLine("x", "R", 1, 7), true},
		"renamed":                          {statLine("y", "R", 1, 7), true},
		"another of the same number":       {statLine("x", "R", 1, 8), false},
		"zombie":                           {statLine("x", "Z", 1, 7), false},
		"first thread ended":               {statLine("x", "Z", 2, 7), true},
		"dead":                             {statLine("x", "X", 1, 7), false},
		"what cannot be read says nothing": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			writeProcess(t, root, "10", files(test.stat))
			assert.Equal(t, test.expected, processes.Alive(10, &found.Details))
		})
	}
	require.NoError(t, os.RemoveAll(filepath.Join(root, "proc", "10")))
	assert.False(t, processes.Alive(10, &found.Details))
}

// In a PID namespace of its own, the driver's number would name another
// process.
func TestProcessesOfAnotherNamespaceAreNotUsed(t *testing.T) {
	root := hostRoot(t)
	writeProcess(t, root, "2", map[string]string{"comm": "sh\n"})
	writeProcess(t, root, "10", map[string]string{"environ": "RANK=1\x00", "stat": statLine("x", "R", 1, 1)})
	processes := NewProcesses(root, true)
	assert.False(t, processes.Visible())
	for _, pid := range []uint32{10, 11} {
		found, alive := processes.Describe(pid)
		assert.True(t, alive)
		assert.Equal(t, Process{}, found)
		assert.True(t, processes.Alive(pid, &found.Details))
	}
}

// What is longer than 1 MiB is cut off, whatever a process has put there.
func TestFilesAreReadInPart(t *testing.T) {
	const maxSize = 1 << 20
	root := hostRoot(t)
	writeProcess(t, root, "10", map[string]string{
		"stat":    statLine("x", "R", 1, 1),
		"cgroup":  strings.Repeat("0::/x\n", maxSize/6+1) + "0::/slurm/job_1\n",
		"environ": "RANK=1\x00" + strings.Repeat("A", maxSize) + "\x00LOCAL_RANK=2\x00",
		"status":  strings.Repeat("x\n", maxSize/2) + "Uid:\t7\n",
	})
	found, alive := NewProcesses(root, true).Describe(10)
	require.True(t, alive)
	assert.Equal(t, Workload{RankGlobal: known(1)}, found.Workload)
}

func TestParseStat(t *testing.T) {
	for raw, expected := range map[string]stat{
		statLine("python3", "S", 2, 99):              {executable: "python3", state: 'S', threads: 2, start: 99},
		statLine("a) (b c", "R", 1, 0):               {executable: "a) (b c", state: 'R', threads: 1},
		statLine("\xff", "R", 1, 1):                  {executable: "\uFFFD", state: 'R', threads: 1, start: 1},
		statLine("", "R", 1, 1):                      {state: 'R', threads: 1, start: 1},
		statLine(strings.Repeat("k", 80), "R", 1, 1): {executable: strings.Repeat("k", 64), state: 'R', threads: 1, start: 1},
	} {
		found, ok := parseStat([]byte(raw))
		assert.True(t, ok, raw)
		assert.Equal(t, expected, found, raw)
	}
	for _, nonsense := range []string{
		"", "10", "10 (x", "10 x) S", ")10 (", "10 (x) S 1 2",
		strings.Replace(statLine("x", "S", 1, 1), " S ", " SS ", 1),
		strings.Replace(statLine("x", "S", 1, 77), "77", "-77", 1),
		strings.Replace(statLine("x", "S", 1, 77), "77", "99999999999999999999", 1),
		strings.Replace(statLine("x", "S", 1, 77), "77", "9999999999999", 1),
		strings.Replace(statLine("x", "S", 66, 1), "66", "x", 1),
	} {
		_, ok := parseStat([]byte(nonsense))
		assert.False(t, ok, nonsense)
	}
}

func TestParseStatus(t *testing.T) {
	for status, expected := range map[string][2]Number{
		"Name:\tx\nUid:\t1000\t0\t0\t0\nNSpid:\t77\n": {known(1000), known(77)},
		"NSpid:\t4242\t17\t1\n":                       {{}, known(1)},
		"Uid:\t1\nUid:\t2\nNSpid:\t3\nNSpid:\t4\n":    {known(1), known(3)},
		"Uid:\nNSpid:\n":                              {},
		"Uid:\t-1\nNSpid:\tx\n":                       {},
		"Uid:\t4294967296\n":                          {},
		"":                                            {},
		"Gid:\t5\nNStgid:\t6\n":                       {},
	} {
		userID, namespacePID := parseStatus([]byte(status))
		assert.Equal(t, expected, [2]Number{userID, namespacePID}, status)
	}
}

func TestParseBoot(t *testing.T) {
	assert.Equal(t, time.Unix(1700000000, 0), parseBoot([]byte("cpu 1 2\nintr 1 2 3\nbtime 1700000000\nprocesses 4\n")))
	for _, nonsense := range []string{"", "btime\n", "btime x\n", "btime -1\n", "btime 99999999999999\n", "xbtime 1\n"} {
		assert.True(t, parseBoot([]byte(nonsense)).IsZero(), nonsense)
	}
}

func TestEvidenceAdds(t *testing.T) {
	sum := func(all ...Evidence) map[Source]SourceState {
		states := map[Source]SourceState{SourceCgroup: SourceAbsent, SourceEnviron: SourceAbsent, SourceSlurm: SourceAbsent}
		for i := range all {
			all[i].Add(states)
		}
		return states
	}
	own := Evidence{Cgroup: SourceOK, Environ: SourceOK, Slurm: SourceAbsent}
	other := Evidence{Cgroup: SourceOK, Environ: SourceDenied, Slurm: SourceOK}
	assert.Equal(t, map[Source]SourceState{SourceCgroup: SourceAbsent, SourceEnviron: SourceAbsent, SourceSlurm: SourceAbsent}, sum(Evidence{}))
	assert.Equal(t, map[Source]SourceState{SourceCgroup: SourceOK, SourceEnviron: SourceOK, SourceSlurm: SourceAbsent}, sum(Evidence{}, own))
	denied := map[Source]SourceState{SourceCgroup: SourceOK, SourceEnviron: SourceDenied, SourceSlurm: SourceOK}
	assert.Equal(t, denied, sum(own, other))
	assert.Equal(t, denied, sum(other, own))
}

// TestThreads has the threads of a process with their states and what they wait in.
func TestThreads(t *testing.T) {
	root := t.TempDir()
	task := filepath.Join(root, "proc", "7", "task")
	for id, state := range map[string]string{"7": "S", "8": "D", "9": ""} {
		require.NoError(t, os.MkdirAll(filepath.Join(task, id), 0o700))
		if state != "" {
			require.NoError(t, os.WriteFile(filepath.Join(task, id, "stat"), []byte(statLine("a) name", state, 1, 99)), 0o600))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(task, "7", "wchan"), []byte("0"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(task, "8", "wchan"), []byte("wait_on_0"), 0o600))
	p := NewNamespaceProcesses(root)
	assert.Equal(t, []Thread{{State: 'S'}, {State: 'D', Channel: "wait_on_0"}}, p.Threads(7, 10))
	assert.Len(t, p.Threads(7, 1), 1)
	assert.Empty(t, p.Threads(8, 10), "it has ended")
}

// FuzzStat shows that a start is one that a time can hold, and that a name is
// bounded text.
func FuzzStat(f *testing.F) {
	f.Add([]byte(statLine("python3", "S", 1, 99)))
	f.Add([]byte(statLine(") S 1 (", "Z", 2, 1)))
	f.Add([]byte("1 ()))))((( S"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		found, ok := parseStat(raw)
		if !ok {
			assert.Equal(t, stat{}, found)
			return
		}
		assert.True(t, utf8.ValidString(found.executable))
		assert.LessOrEqual(t, utf8.RuneCountInString(found.executable), maxExecutableLength)
		start := time.Duration(found.start) * (time.Second / ticksPerSecond)
		assert.GreaterOrEqual(t, start, time.Duration(0), "no overflow")
		assert.True(t, bytes.Contains(raw, []byte{found.state}))
	})
}

// FuzzStatus shows that ids are those of the kernel's types.
func FuzzStatus(f *testing.F) {
	f.Add([]byte("Name:\tx\nUid:\t1000\t0\t0\t0\nNSpid:\t4242\t17\n"))
	f.Add([]byte("Uid:\nNSpid:\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		userID, namespacePID := parseStatus(raw)
		for _, id := range []Number{userID, namespacePID} {
			assert.GreaterOrEqual(t, id.Value, int64(0))
			assert.Less(t, id.Value, int64(1)<<32)
			assert.True(t, id.Known || id.Value == 0)
		}
	})
}
