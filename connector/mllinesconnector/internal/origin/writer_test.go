package origin

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// writing starts a program, below a shell, whose output is a file, and waits until it runs.
func writing(t *testing.T, path string, env ...string) (pid int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	// The shell waits for the program, which tells its id by another descriptor and lives
	// until its input ends.
	input, release, err := os.Pipe()
	require.NoError(t, err)
	told, tell, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(context.Background(), "bash", "-c", `cat <&4 & echo $! >&3; wait`)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = file, file, []*os.File{tell, input}
	cmd.Env = append(os.Environ(), env...)
	require.NoError(t, cmd.Start())
	require.NoError(t, file.Close())
	require.NoError(t, tell.Close())
	require.NoError(t, input.Close())
	t.Cleanup(func() {
		require.NoError(t, release.Close())
		require.NoError(t, cmd.Wait())
	})
	line, err := bufio.NewReader(told).ReadString('\n')
	require.NoError(t, err)
	pid, err = strconv.ParseInt(line[:len(line)-1], 10, 32)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.FormatInt(pid, 10), "comm"))
		return err == nil && string(name) == "cat\n"
	}, 10*time.Second, 10*time.Millisecond)
	return pid
}

func originOf(t *testing.T, k *Known, path string) *Origin {
	t.Helper()
	record := pcommon.NewMap()
	record.PutStr(FilePath, path)
	return k.Of(pcommon.NewMap(), record)
}

// The process that writes a file tells its run, its rank and itself. The shell around it
// does not count.
func TestWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.log")
	pid := writing(t, path, "TORCHELASTIC_RUN_ID=llama-7b", "RANK=3", "WORLD_SIZE=8", "OTEL_SERVICE_NAME=trainer")
	at := time.Now()
	k := NewKnown(16, func() time.Time { return at })
	o := originOf(t, k, path)
	attrs := o.Resource.AsRaw()
	assert.NotEmpty(t, attrs["process.creation.time"])
	delete(attrs, "process.creation.time")
	for _, container := range []string{"container.id", "k8s.pod.uid"} {
		delete(attrs, container) // where the test runs in one
	}
	assert.Equal(t, map[string]any{
		"ml.run.id": "llama-7b", "ml.rank.global": int64(3), "ml.world_size": int64(8), "service.name": "trainer", "process.pid": pid,
	}, attrs)
	assert.Same(t, o, originOf(t, k, path))
}

// A program that starts again with the same file is another process, one that has ended is
// still that of its lines.
func TestAnotherWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.log")
	at := time.Now()
	k := NewKnown(16, func() time.Time { return at })
	var first *Origin
	t.Run("first", func(t *testing.T) {
		writing(t, path, "TORCHELASTIC_RUN_ID=one")
		first = originOf(t, k, path)
	})
	at = at.Add(askAgain)
	assert.Same(t, first, originOf(t, k, path), "it has ended")
	writing(t, path, "TORCHELASTIC_RUN_ID=two")
	assert.Same(t, first, originOf(t, k, path), "asked each minute")
	at = at.Add(askAgain)
	second := originOf(t, k, path)
	assert.NotEqual(t, first.Owner, second.Owner)
	run, _ := second.Resource.Get("ml.run.id")
	assert.Equal(t, "two", run.Str())
}

// Ranks that write to one file have their run in common.
func TestSeveralWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.log")
	writing(t, path, "TORCHELASTIC_RUN_ID=one", "RANK=0")
	writing(t, path, "TORCHELASTIC_RUN_ID=one", "RANK=1")
	attrs := originOf(t, NewKnown(16, time.Now), path).Resource.AsRaw()
	assert.Equal(t, "one", attrs["ml.run.id"])
	assert.NotContains(t, attrs, "ml.rank.global")
}
