package flightrecorder

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorded returns the dumps of a case that testdata/record.py has recorded.
func recorded(t testing.TB, name string) (dumps []*Dump) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name+"_rank_*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		rank, err := strconv.ParseInt(file[strings.LastIndexByte(file, '_')+1:], 10, 64)
		require.NoError(t, err)
		d, err := Read(data, rank)
		require.NoError(t, err, file)
		dumps = append(dumps, d)
	}
	return dumps
}

// Of what four real ranks recorded, the one that does something else is named, with what it
// did.
func TestRecorded(t *testing.T) {
	for name, want := range map[string]string{
		"skip":  "Ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py:36 in train_step) for rank 2, which calls something else. Rank 2 was last in barrier #8 [] [] (record.py:39 in train_step).",
		"order": "Ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py:36 in train_step) for rank 2, which calls something else. Rank 2 was last in broadcast #8 [[16]] [Float] (record.py:41 in train_step).",
		// The connection to rank 2 ended ranks 1 and 3 before they wrote.
		"dies": "Rank 0 waits in all_gather #8 of the group default_pg (record.py:37 in train_step); of ranks 1, 2, 3 there is no dump.",
		"data": "Ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py:37 in train_step) for rank 2, which has not called it. Rank 2 was last in all_reduce #7 [[16]] [Float] (record.py:35 in train_step).",
	} {
		t.Run(name, func(t *testing.T) {
			verdicts := Conclude(recorded(t, name))
			require.Len(t, verdicts, 1)
			assert.Equal(t, want, verdicts[0].Sentence())
		})
	}
}

// A dump that is missing is said, and not that its rank is.
func TestDumpsThatAreMissing(t *testing.T) {
	v := Conclude(recorded(t, "data")[:2])
	require.Len(t, v, 1)
	assert.Equal(t, []int64{2, 3}, v[0].Unknown)
	assert.Empty(t, v[0].Missing)
	assert.Contains(t, v[0].Sentence(), "; of ranks 2, 3 there is no dump.")
}

// group is a group of a rank that has completed some collectives and called further ones.
func group(rank, completed int64, calls ...string) *Dump {
	g := &Group{Name: "0", Ranks: []int64{0, 1, 2, 3}, Completed: completed, Entries: map[int64]*Entry{}}
	for i := range completed {
		g.Entries[i+1] = &Entry{Number: i + 1, Operation: "all_reduce", Completed: true}
	}
	for i, call := range calls {
		n := completed + int64(i) + 1
		operation, shape, _ := strings.Cut(call, " ")
		g.Entries[n] = &Entry{Number: n, Operation: operation, Shape: shape}
	}
	return &Dump{Rank: rank, Groups: map[string]*Group{"0": g}}
}

func TestConclude(t *testing.T) {
	for name, tt := range map[string]struct {
		dumps                       []*Dump
		number                      int64
		waiting, missing, differing []int64
	}{
		"one is missing":                {[]*Dump{group(0, 3, "a", "b"), group(1, 3, "a"), group(2, 3, "a"), group(3, 3)}, 4, []int64{0, 1, 2}, []int64{3}, nil},
		"one is far behind":             {[]*Dump{group(0, 3, "a", "b"), group(1, 3, "a"), group(2, 3, "a"), group(3, 1)}, 4, []int64{0, 1, 2}, []int64{3}, nil},
		"other sizes":                   {[]*Dump{group(0, 3, "a [16]"), group(1, 3, "a [8]"), group(2, 3, "a [16]"), group(3, 3, "a [16]")}, 4, []int64{0, 2, 3}, nil, []int64{1}},
		"the first one is wrong":        {[]*Dump{group(0, 3, "x"), group(1, 3, "a"), group(2, 3, "a"), group(3, 3, "a")}, 4, []int64{1, 2, 3}, nil, []int64{0}},
		"none is missing":               {[]*Dump{group(0, 3, "a"), group(1, 3, "a"), group(2, 3, "a"), group(3, 3, "a")}, 4, []int64{0, 1, 2, 3}, nil, nil},
		"some have completed it":        {[]*Dump{group(0, 4, "b"), group(1, 3, "a"), group(2, 4, "b"), group(3, 4, "b")}, 4, []int64{1}, nil, nil},
		"two waits, the earlier counts": {[]*Dump{group(0, 5, "c"), group(1, 3, "a"), group(2, 3, "a"), group(3, 3, "a")}, 4, []int64{1, 2, 3}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := Conclude(tt.dumps)
			require.Len(t, v, 1)
			assert.Equal(t, tt.number, v[0].Number)
			assert.Equal(t, tt.waiting, v[0].Waiting)
			assert.Equal(t, tt.missing, v[0].Missing)
			assert.Equal(t, tt.differing, v[0].Differing)
		})
	}
	assert.Empty(t, Conclude([]*Dump{group(0, 3), group(1, 3)}))
	assert.Empty(t, Conclude(nil))
}

// Dumps of an earlier hang do not count.
func TestJobs(t *testing.T) {
	var j Jobs
	at := time.Unix(1_700_000_000, 0)
	j.Add("/tmp/a", group(3, 3), at)
	for rank := range int64(3) {
		j.Add("/tmp/a", group(rank, 3, "a"), at.Add(time.Minute))
	}
	require.Len(t, j.Conclude("/tmp/a"), 1)
	assert.Equal(t, []int64{3}, j.Conclude("/tmp/a")[0].Missing)
	assert.Empty(t, j.Conclude("/tmp/b"))
	j.Add("/tmp/a", group(0, 3, "a"), at.Add(together+2*time.Minute))
	assert.Equal(t, []int64{1, 2, 3}, j.Conclude("/tmp/a")[0].Unknown)
}

// What is cut, or has anything but data, is refused.
func TestNoDump(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("testdata", "data_rank_0"))
	require.NoError(t, err)
	for n := range whole {
		_, err := Read(whole[:n], 0)
		require.Error(t, err, n)
	}
	for name, text := range map[string]string{
		"a call":              "\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
		"a number":            "\x80\x02K\x01.",
		"nothing":             "\x80\x02.",
		"no version":          "\x80\x02}.",
		"no mark":             "\x80\x02]e.",
		"a mark":              "\x80\x02(.",
		"half an item":        "\x80\x02}(K\x01u.",
		"a list as a key":     "\x80\x02}(]K\x01u.",
		"items of a number":   "\x80\x02K\x01(K\x01K\x02u.",
		"something forgotten": "\x80\x02h\x01.",
	} {
		_, err := Read([]byte(text), 0)
		require.Error(t, err, name)
	}
	_, err = Read(bytes.Repeat([]byte("N"), maxNodes+2), 0)
	require.ErrorIs(t, err, errLarge)
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"skip", "data"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+"_rank_2"))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("\x80\x02}(X\x07\x00\x00\x00versionq\x00X\x01\x00\x00\x001\x8a\x01\xffG@\x00\x00\x00\x00\x00\x00\x00u."))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read(data, 0)
		if err != nil {
			return
		}
		for _, v := range Conclude([]*Dump{d}) {
			assert.NotEmpty(t, v.Sentence())
			assert.Less(t, len(v.Sentence()), 8*maxText)
		}
	})
}
