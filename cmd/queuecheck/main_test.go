package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// The program checks each file in a process of its own: the tests' own program
// stands in for it.
func TestMain(m *testing.M) {
	if os.Getenv(readVariable) != "" {
		main()
		return
	}
	if os.Getenv("QUEUECHECK_MAIN") != "" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		main()
		return
	}
	os.Exit(m.Run())
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// queueFile writes a queue of so many items of a size, as file_storage does.
func queueFile(t *testing.T, items, size int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exporter_otlp_grpc_jaeger_traces")
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	require.NoError(t, err)
	for i := range items {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("default"))
			if err != nil {
				return err
			}
			return bucket.Put(fmt.Appendf(nil, "%d", i), bytes.Repeat([]byte{byte(i)}, size))
		}))
	}
	require.NoError(t, db.Close())
	return file
}

// A folder is made, and closed to others, and stays so. Only root can give it to others.
func TestOwner(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "node", "state")
	for range 2 {
		require.NoError(t, own([]string{strconv.Itoa(os.Getuid()), folder}))
		info, err := os.Stat(folder)
		require.NoError(t, err)
		assert.Equal(t, os.ModeDir|0o700, info.Mode())
		require.NoError(t, os.Chmod(folder, 0o755)) // as the kubelet makes it
	}
	for _, arguments := range [][]string{nil, {"1"}, {"otelcol", folder}, {"-1", folder}} {
		require.Error(t, own(arguments))
	}
}

func TestWholeFilesStay(t *testing.T) {
	for _, items := range []int{0, 1, 300} {
		file := queueFile(t, items, 3000)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, check(filepath.Dir(file), now))
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, before, after)
	}
}

// Wherever a page of a file is damaged, what is left opens and is written to as
// file_storage does: the file is whole, or put aside.
func TestDamagedPagesArePutAside(t *testing.T) {
	const page = 4096
	whole, err := os.ReadFile(queueFile(t, 300, 3000))
	require.NoError(t, err)
	aside := 0
	for at := 0; at < len(whole); at += 65 * page {
		for _, damage := range []byte{0, 0x5a} {
			file := filepath.Join(t.TempDir(), "exporter_otlp_grpc_jaeger_traces")
			damaged := bytes.Clone(whole)
			copy(damaged[at:min(at+page, len(damaged))], bytes.Repeat([]byte{damage}, page))
			require.NoError(t, os.WriteFile(file, damaged, 0o600))
			require.NoError(t, check(filepath.Dir(file), now))
			if _, err := os.Stat(file + ".20260102T030405.000Z.backup"); err == nil {
				assert.NoFileExists(t, file)
				aside++
			}
			drain(t, file)
		}
	}
	assert.Positive(t, aside, "no damage was found")
}

// drain opens a file, removes everything in it, and closes it.
func drain(t *testing.T, file string) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte("default"))
		if err != nil {
			return err
		}
		var keys [][]byte
		require.NoError(t, bucket.ForEach(func(key, _ []byte) error {
			keys = append(keys, bytes.Clone(key))
			return nil
		}))
		for _, key := range keys {
			require.NoError(t, bucket.Delete(key))
		}
		return nil
	}))
	require.NoError(t, db.Close())
}

func TestOtherDamageIsPutAside(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"cut in half": func(text []byte) []byte { return text[:len(text)/2] },
		"one page":    func(text []byte) []byte { return text[:4096] },
		// A branch of the tree leads to a page far behind the end, where nothing is
		// mapped: the process that reads it ends by a signal.
		"an address outside": func(text []byte) []byte {
			for page := 0; page+4096 <= len(text); page += 4096 {
				if number := binary.LittleEndian.Uint64(text[page:]); number == uint64(page/4096) && text[page+8] == 1 {
					binary.LittleEndian.PutUint64(text[page+24:], 1<<30)
				}
			}
			return text
		},
		"another text": func([]byte) []byte { return []byte("no queue\n") },
	} {
		t.Run(name, func(t *testing.T) {
			file := queueFile(t, 300, 3000)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, change(text), 0o600))
			require.NoError(t, check(filepath.Dir(file), now))
			assert.NoFileExists(t, file)
			assert.FileExists(t, file+".20260102T030405.000Z.backup")
		})
	}
}

// Of these nothing is known, or they are no queues.
func TestOthersAreLeftAlone(t *testing.T) {
	require.NoError(t, check(filepath.Join(t.TempDir(), "none"), now))

	directory := t.TempDir()
	for _, name := range []string{"tempdb123", "exporter_a.20260101T000000.000Z.backup"} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte("no queue"), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(directory, "folder"), 0o700))
	require.NoError(t, check(directory, now))
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	assert.Len(t, entries, 3)
}

// A file that a collector uses is not touched.
func TestFileInUse(t *testing.T) {
	file := queueFile(t, 1, 10)
	db, err := bbolt.Open(file, 0o600, nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, db.Close()) }()
	require.ErrorContains(t, check(filepath.Dir(file), now), "cannot be read: timeout")
	assert.FileExists(t, file)
}

func TestCommandLine(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	run := func(arguments ...string) (int, string) {
		command := exec.Command(self, append([]string{"-test.run=^$"}, arguments...)...)
		command.Env = append(os.Environ(), "QUEUECHECK_MAIN=1")
		output, err := command.CombinedOutput()
		if err != nil {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
		}
		return command.ProcessState.ExitCode(), string(output)
	}
	code, output := run()
	assert.Equal(t, 2, code)
	assert.Contains(t, output, "usage: queuecheck DIRECTORY")

	file := queueFile(t, 10, 100)
	code, output = run(filepath.Dir(file))
	assert.Zero(t, code)
	assert.Empty(t, output)

	require.NoError(t, os.WriteFile(file, []byte("no queue"), 0o600))
	code, output = run(filepath.Dir(file), "sh", "-c", "echo started; exit 7")
	assert.Equal(t, 7, code, "the command's own")
	assert.Contains(t, output, file+" is damaged")
	assert.Contains(t, output, "started")

	code, output = run(filepath.Dir(file), "/none/otelcol-ml")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "/none/otelcol-ml")
}
