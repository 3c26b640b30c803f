package kernellog

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what one read of a fake log returns.
type result struct {
	record string
	err    error
}

// fakeLog is a log of prepared results, first those that it has from the start.
type fakeLog struct {
	live   chan result
	closed chan struct{}
	once   sync.Once
}

func newFakeLog(first ...result) *fakeLog {
	l := &fakeLog{live: make(chan result, 64+len(first)), closed: make(chan struct{})}
	for _, next := range first {
		l.live <- next
	}
	return l
}

func (l *fakeLog) Read(record []byte) (int, error) {
	select {
	case next := <-l.live:
		return copy(record, next.record), next.err
	case <-l.closed:
		return 0, fs.ErrClosed
	}
}

func (l *fakeLog) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// seen is what a reader has called.
type seen struct {
	mu      sync.Mutex
	codes   []uint64
	uuids   []string
	lost    int64
	logger  *zap.Logger
	entries *observer.ObservedLogs
}

func (s *seen) options(open func(string) (io.ReadCloser, error)) Options {
	core, entries := observer.New(zap.InfoLevel)
	s.logger, s.entries = zap.New(core), entries
	return Options{
		Path: "/dev/kmsg", Logger: s.logger, open: open,
		Report: func(r Report) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if r.UUID != "" {
				s.uuids = append(s.uuids, r.UUID)
				return
			}
			s.codes = append(s.codes, r.Code)
		},
		Lost: func(n int64) { s.mu.Lock(); defer s.mu.Unlock(); s.lost += n },
	}
}

func (s *seen) copyOf() (codes []uint64, states []State, lost int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.entries.All() {
		state, _ := entry.ContextMap()["state"].(string)
		states = append(states, cmp.Or(State(state), OK))
	}
	return slices.Clone(s.codes), states, s.lost
}

const uuidLine = "NVRM: GPU at PCI:0000:01:00: GPU-3c1d5f0a-7b42-4e19-8a6d-52f0c9e1b374"

func xidLine(sequence, code string) result {
	return result{record: "3," + sequence + ",5,-;NVRM: Xid (PCI:0000:01:00): " + code + ", x\n"}
}

// After the kernel overwrote records, reading goes on, and they are counted.
func TestReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeLog(result{record: "3,4,5,-;" + uuidLine})
		var got seen
		reader := NewReader(got.options(func(string) (io.ReadCloser, error) { return fake, nil }))
		reader.Start()
		for _, next := range []result{
			xidLine("5", "31"),
			{record: "12,6,5,-;NVRM: Xid (PCI:0000:01:00): 48, written by a program"},
			{err: syscall.EPIPE},
			xidLine("17", "43"),
			{err: syscall.EINVAL},
			{record: "not a record"},
			xidLine("18", "45"),
		} {
			fake.live <- next
		}
		synctest.Wait()
		codes, states, lost := got.copyOf()
		assert.Equal(t, []uint64{31, 43, 45}, codes)
		assert.Equal(t, []string{"GPU-3c1d5f0a-7b42-4e19-8a6d-52f0c9e1b374"}, got.uuids)
		assert.Equal(t, []State{OK}, states)
		assert.Equal(t, OK, reader.State())
		assert.EqualValues(t, 10, lost)
		assert.Equal(t, 1, got.entries.Len())
		reader.Shutdown()
		reader.Shutdown()
	})
}

// A log that cannot be read is tried again, and each change of its state is logged
// once.
func TestReaderWithoutALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu      sync.Mutex
			failure = error(&fs.PathError{Op: "open", Path: "/dev/kmsg", Err: syscall.EPERM})
			fake    *fakeLog
			opened  int
			got     seen
		)
		reader := NewReader(got.options(func(string) (io.ReadCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			opened++
			if failure != nil {
				return nil, failure
			}
			fake = newFakeLog()
			return fake, nil
		}))
		reader.Start()
		synctest.Wait()
		assert.Equal(t, Denied, reader.State())
		time.Sleep(3 * reopenInterval)
		synctest.Wait()
		mu.Lock()
		assert.Equal(t, 4, opened)
		mu.Unlock()
		assert.Equal(t, 1, got.entries.Len(), "one line for one state")

		for _, next := range []struct {
			err      error
			expected State
		}{{syscall.ENOENT, Absent}, {syscall.EIO, Failed}, {nil, OK}} {
			mu.Lock()
			failure = next.err
			mu.Unlock()
			time.Sleep(reopenInterval)
			synctest.Wait()
			assert.Equal(t, next.expected, reader.State())
		}
		fake.live <- result{err: syscall.EIO}
		synctest.Wait()
		assert.Equal(t, Failed, reader.State())
		time.Sleep(reopenInterval)
		synctest.Wait()
		assert.Equal(t, OK, reader.State(), "it is opened again")
		_, states, _ := got.copyOf()
		assert.Equal(t, []State{Denied, Absent, Failed, OK, Failed, OK}, states)
		assert.Equal(t, 6, got.entries.Len())
		reader.Shutdown()
	})
}

// What is written while a log cannot be read is NVML's to report.
func TestReaderOfALogThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newFakeLog(), newFakeLog()
		logs := make(chan *fakeLog, 2)
		logs <- first
		logs <- second
		var got seen
		reader := NewReader(got.options(func(string) (io.ReadCloser, error) { return <-logs, nil }))
		reader.Start()
		first.live <- xidLine("3", "43")
		first.live <- result{err: syscall.EIO}
		synctest.Wait()
		time.Sleep(reopenInterval)
		synctest.Wait()
		second.live <- xidLine("8", "48")
		synctest.Wait()
		codes, _, lost := got.copyOf()
		assert.Equal(t, []uint64{43, 48}, codes)
		assert.Zero(t, lost)
		reader.Shutdown()
	})
}

// A file that never has a record, but something else or an overwritten one each time,
// does not keep a processor busy.
func TestReaderOfSomethingElse(t *testing.T) {
	for _, something := range []result{{err: syscall.EPIPE}, {record: "\x00\x00\x00"}} {
		readsSomethingElse(t, something)
	}
}

func readsSomethingElse(t *testing.T, something result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeLog(slices.Repeat([]result{something}, 10*maxFailures)...)
		var got seen
		reader := NewReader(got.options(func(string) (io.ReadCloser, error) { return fake, nil }))
		reader.Start()
		synctest.Wait()
		assert.Equal(t, Failed, reader.State())
		assert.Len(t, fake.live, 10*maxFailures-maxFailures-1)
		reader.Shutdown()
	})
}

func TestShutdownOfAReader(t *testing.T) {
	var got seen
	NewReader(got.options(nil)).Shutdown()

	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		var got seen
		reader := NewReader(got.options(func(string) (io.ReadCloser, error) {
			<-leave
			return newFakeLog(), nil
		}))
		reader.Start()
		synctest.Wait()
		go close(leave)
		reader.Shutdown()
		assert.Empty(t, reader.State(), "a log that is opened too late is not read")
	})
}

// The operating system's side: a pipe that keeps the limits of writes, as /dev/kmsg
// keeps those of records, and a Shutdown while a read waits.
func TestReaderOfAFile(t *testing.T) {
	pipe := make([]int, 2)
	require.NoError(t, syscall.Pipe2(pipe, syscall.O_DIRECT|syscall.O_CLOEXEC))
	write := os.NewFile(uintptr(pipe[1]), "write")
	read := os.NewFile(uintptr(pipe[0]), "read")
	path := filepath.Join("/proc/self/fd", strconv.Itoa(pipe[0]))
	_, err := write.WriteString(xidLine("1", "79").record)
	require.NoError(t, err)

	var got seen
	reader := NewReader(got.options(nil))
	reader.opts.Path = path
	reader.Start()
	require.Eventually(t, func() bool { return reader.State() == OK }, time.Minute, time.Millisecond)
	for _, code := range []string{"31", "43"} {
		_, err := write.WriteString(xidLine("2", code).record)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { codes, _, _ := got.copyOf(); return len(codes) == 3 }, time.Minute, time.Millisecond)
	codes, _, _ := got.copyOf()
	assert.Equal(t, []uint64{79, 31, 43}, codes)
	reader.Shutdown()
	require.NoError(t, write.Close())
	require.NoError(t, read.Close())
}

func TestFilesThatAreNoLog(t *testing.T) {
	regular := filepath.Join(t.TempDir(), "kmsg")
	require.NoError(t, os.WriteFile(regular, []byte("3,1,1,-;x\n"), 0o600))
	for path, expected := range map[string]State{
		filepath.Join(t.TempDir(), "none"): Absent,
		regular:                            Failed,
		t.TempDir():                        Failed,
	} {
		opened, err := open(path)
		if err == nil {
			_, err = opened.Read(make([]byte, maxRecord))
			require.NoError(t, opened.Close())
		}
		assert.Equal(t, expected, stateOf(err), path)
	}
}
