package failure

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

func scan(text string) *Failure {
	var s Scanner
	for line := range strings.SplitSeq(text, "\n") {
		s.Read(line)
	}
	return s.Found()
}

const traceback = `Traceback (most recent call last):
  File "train.py", line 10, in <module>
    main()
  File "train.py", line 7, in main
    raise ValueError("bad batch: 3")
          ^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: bad batch: 3`

func TestTraceback(t *testing.T) {
	f := scan("step: 1\n" + traceback + "\n")
	require.NotNil(t, f)
	assert.Equal(t, Failure{Class: "ValueError", Message: "bad batch: 3", Stack: traceback, Rank: -1}, *f)
}

// The last of a chain of exceptions left the program. The others stay in its stack.
func TestChain(t *testing.T) {
	for _, between := range []string{"During handling of the above exception, another exception occurred:", "The above exception was the direct cause of the following exception:"} {
		text := traceback + "\n\n" + between + "\n\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 146.00 MiB."
		f := scan(text)
		require.NotNil(t, f)
		assert.Equal(t, "torch.OutOfMemoryError", f.Class)
		assert.Equal(t, "CUDA out of memory. Tried to allocate 146.00 MiB.", f.Message)
		assert.Equal(t, text, f.Stack)
	}
}

// Lines of others between those of a traceback do not end it, and a class may stand alone.
func TestBetween(t *testing.T) {
	f := scan("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nINFO 3 warnings were given\n    g()\nKeyboardInterrupt")
	require.NotNil(t, f)
	assert.Equal(t, "KeyboardInterrupt", f.Class)
	assert.NotContains(t, f.Stack, "warnings")
}

func TestNoFailure(t *testing.T) {
	for _, text := range []string{
		"", "ValueError: nothing before", "Traceback (most recent call last):\n  File \"a.py\"",
		"Traceback (most recent call last):\n" + strings.Repeat("GET / 200\n", 20) + "ValueError: too late",
		"slurmstepd: error: *** JOB 494583 ON n1 CANCELLED AT 2024-04-20T09:09:37 ***",
		"the log said CUDA out of memory twice",
	} {
		assert.Nil(t, scan(text), text)
	}
}

const torchrun = `torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-03-01_12:00:05
  host      : n1
  rank      : 3 (local_rank: 3)
  exitcode  : -9 (pid: 2630)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 2630
============================================================`

func TestRootCause(t *testing.T) {
	launcher := "Traceback (most recent call last):\n  File \"/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n" + torchrun
	at := time.Date(2026, 3, 1, 12, 0, 5, 0, time.Local)
	f := scan(launcher)
	require.NotNil(t, f)
	assert.Equal(t, Failure{Class: "SIGKILL", Message: "Signal 9 (SIGKILL) received by PID 2630", Rank: 3, Host: "n1", Time: at, Evident: true}, *f)

	f = scan(traceback + "\n" + strings.Replace(launcher, "exitcode  : -9", "exitcode  : 1", 1))
	require.NotNil(t, f)
	assert.Equal(t, Failure{Class: "ValueError", Message: "bad batch: 3", Stack: traceback, Rank: 3, Host: "n1", Time: at, Evident: true}, *f, "the traceback of the rank says more")

	f = scan(strings.Replace(torchrun, "exitcode  : -9", "exitcode  : 1", 1))
	require.NotNil(t, f)
	assert.Equal(t, "ChildFailedError", f.Class)
}

func TestOthers(t *testing.T) {
	for text, want := range map[string]Failure{
		"[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 6] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE) ran for 600060 milliseconds before timing out.": {
			Class: "torch.distributed.DistBackendError", Message: "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE) ran for 600060 milliseconds before timing out.", Rank: 6, Evident: true,
		},
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 146.00 MiB.": {Class: "torch.OutOfMemoryError", Message: "CUDA out of memory. Tried to allocate 146.00 MiB.", Rank: -1},
		"slurmstepd: error: *** JOB 494583 ON n1 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***": {
			Class: "slurm.TIMEOUT", Message: "slurmstepd: error: *** JOB 494583 ON n1 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***", Rank: -1,
		},
		"slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM Killed.": {
			Class: "slurm.OUT_OF_MEMORY", Message: "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM Killed.", Rank: -1,
		},
	} {
		f := scan(text)
		require.NotNil(t, f, text)
		assert.Equal(t, want, *f)
	}
}

// A traceback without end keeps its beginning and its end, and no more.
func TestBounds(t *testing.T) {
	var text strings.Builder
	text.WriteString("Traceback (most recent call last):\n  File \"first.py\"\n")
	for range 100_000 {
		text.WriteString("  File \"again.py\", line 1, in f\n")
	}
	text.WriteString("  File \"last.py\"\nRecursionError: maximum recursion depth exceeded")
	f := scan(text.String())
	require.NotNil(t, f)
	assert.Equal(t, "RecursionError", f.Class)
	assert.LessOrEqual(t, len(f.Stack), maxStack+maxMessage)
	assert.Contains(t, f.Stack, "first.py")
	assert.Contains(t, f.Stack, "last.py")
}

func FuzzScanner(f *testing.F) {
	f.Add(traceback)
	f.Add(torchrun)
	f.Add("slurmstepd: error: *** JOB 1 DUE TO TIME LIMIT ***\n[Rank 99999999999999999999] Watchdog caught collective operation timeout")
	f.Fuzz(func(t *testing.T, text string) {
		if found := scan(text); found != nil {
			assert.NotEmpty(t, found.Class)
			assert.LessOrEqual(t, len(found.Stack), maxStack+maxMessage)
			assert.LessOrEqual(t, len(found.Message), maxMessage)
			assert.GreaterOrEqual(t, found.Rank, int64(-1))
		}
	})
}

// Each node's torchrun names one of its ranks. The earliest is the cause, in any order.
func TestRootCauses(t *testing.T) {
	later := strings.NewReplacer("12:00:05", "12:00:09", "rank      : 3 (local_rank: 3)", "rank      : 9 (local_rank: 1)").Replace(torchrun)
	for _, text := range []string{torchrun + "\n" + later, later + "\n" + torchrun} {
		f := scan(text)
		require.NotNil(t, f)
		assert.EqualValues(t, 3, f.Rank)
	}
}

const killed = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope,mems_allowed=0-1," +
	"oom_memcg=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice," +
	"task_memcg=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope," +
	"task=python,pid=4242,uid=1000"

func TestKill(t *testing.T) {
	k, ok := ReadKill("[ 1.5] " + killed)
	require.True(t, ok)
	assert.Equal(t, Kill{
		Group: workload.Cgroup{ContainerID: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", PodUID: "11111111-2222-3333-4444-555555555555"},
		PID:   4242, Message: "The kernel killed process 4242 (python) for lack of memory. The limit of its cgroup is reached.",
	}, k)
	k, ok = ReadKill("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/slurm/uid_1000/job_42/step_0,task=a,task_memcg=/x,pid=1,pid=7,uid=0")
	require.True(t, ok)
	assert.Equal(t, Kill{Group: workload.Cgroup{SlurmJobID: "42"}, PID: 7, Message: "The kernel killed process 7 (a,task_memcg=/x,pid=1) for lack of memory. The host is out of memory."}, k, "a task may have any name")
	for _, text := range []string{"", "oom-kill:constraint=", "oom-kill:constraint=X,task=a", "oom-kill:constraint=X,task=a,pid=-1,", "oom-kill:constraint=X,task=a,pid=99999999999"} {
		_, ok := ReadKill(text)
		assert.False(t, ok, text)
	}
}

// torchrun names the rank of what the kernel killed.
func TestKilledAndRootCause(t *testing.T) {
	for _, first := range []bool{true, false} {
		var s Scanner
		if first {
			s.Killed("no memory")
		}
		for line := range strings.SplitSeq(torchrun, "\n") {
			s.Read(line)
		}
		if !first {
			s.Killed("no memory")
		}
		assert.Equal(t, Failure{Class: "OOMKilled", Message: "no memory", Rank: 3, Host: "n1", Time: time.Date(2026, 3, 1, 12, 0, 5, 0, time.Local), Evident: true}, *s.Found())
	}
}

func FuzzKill(f *testing.F) {
	f.Add(killed)
	f.Fuzz(func(t *testing.T, text string) {
		if k, ok := ReadKill(text); ok {
			assert.Positive(t, k.PID)
			assert.True(t, utf8.ValidString(k.Message))
			assert.Less(t, len(k.Message), 300)
		}
	})
}

// A program with torch's @record has the traceback of its exception within the root cause,
// with what led to it.
func TestRecordedRootCause(t *testing.T) {
	const callstack = `Traceback (most recent call last):
    File "/opt/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 362, in wrapper
      return f(*args, **kwargs)
             ^^^^^^^^^^^^^^^^^^
    File "train.py", line 3, in main
      raise KeyError("a")
  KeyError: 'a'
  
  During handling of the above exception, another exception occurred:
  
  Traceback (most recent call last):
    File "train.py", line 8, in main
      raise ValueError("bad batch: 3")
  ValueError: bad batch: 3
  `
	text := strings.NewReplacer("Signal 9 (SIGKILL) received by PID 2630", callstack, "exitcode  : -9", "exitcode  : 1").Replace(torchrun)
	at := time.Date(2026, 3, 1, 12, 0, 5, 0, time.Local)
	f := scan(text)
	require.NotNil(t, f)
	assert.Equal(t, Failure{Class: "ValueError", Message: "bad batch: 3", Rank: 3, Host: "n1", Time: at, Evident: true}, *f)

	f = scan(strings.Replace(text, "  ValueError: bad batch: 3\n", strings.Repeat("    File \"a.py\", line 1, in f\n", 1000), 1))
	require.NotNil(t, f)
	assert.Equal(t, "KeyError", f.Class, "of a traceback without end the beginning is read")
}
