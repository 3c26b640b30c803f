package flightrecorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// recorded returns the dumps of a case that testdata/record.py has recorded with a version of
// PyTorch.
func recorded(t testing.TB, version, name string) (dumps []*Dump) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", version, name+"_rank_*"))
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
	const (
		skip  = "Ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py in train_step) for rank 2, which calls something else. Rank 2 was last in barrier #8 (record.py in train_step)."
		order = "Ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py in train_step) for rank 2, which calls something else. Rank 2 was last in broadcast #8 (record.py in train_step)."
		dies  = "Rank 0 waits in all_gather #8 of the group default_pg (record.py in train_step); of rank 2 there is no dump."
		data  = "Ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py in train_step) for rank 2, which has not called it. Rank 2 was last in all_reduce #7 (record.py in train_step)."
	)
	lines := regexp.MustCompile(`:\d+`) // record.py has changed
	for version, wanted := range map[string]map[string]string{
		"2.8.0": {"skip": skip, "order": order, "data": data, "dies": dies},
		"2.9.1": {
			"skip": skip, "order": order, "data": data,
			// The connection to rank 2 ended ranks 1 and 3 before they wrote.
			"dies": "Rank 0 waits in all_gather #8 of the group default_pg (record.py in train_step); of ranks 1, 2, 3 there is no dump.",
		},
		"2.15.0": {"skip": skip, "order": order, "data": data, "dies": dies},
	} {
		for name, want := range wanted {
			t.Run(version+" "+name, func(t *testing.T) {
				verdicts := Conclude(recorded(t, version, name))
				require.Len(t, verdicts, 1)
				assert.Equal(t, want, lines.ReplaceAllString(verdicts[0].Sentence(), ""))
			})
		}
	}
}

// PyTorch's own analyser names the same ranks, as testdata/analyse.py has written. Where a dump is
// missing, it names nothing but that.
func TestAnalyser(t *testing.T) {
	for _, version := range []string{"2.8.0", "2.9.1", "2.15.0"} {
		text, err := os.ReadFile(filepath.Join("testdata", version, "analyser.json"))
		require.NoError(t, err)
		var said map[string]struct{ Numbers, Culprits, Missing, Unknown []int64 }
		require.NoError(t, json.Unmarshal(text, &said))
		require.Len(t, said, 4)
		for name, theirs := range said {
			ours := Conclude(recorded(t, version, name))
			require.Len(t, ours, 1, name)
			if len(theirs.Unknown) == 0 {
				require.Len(t, theirs.Numbers, 1)
				assert.Equal(t, theirs.Numbers[0], ours[0].Number, "%s %s", version, name)
			}
			assert.ElementsMatch(t, theirs.Culprits, ours[0].Differing, "%s %s", version, name)
			assert.ElementsMatch(t, theirs.Missing, ours[0].Missing, "%s %s", version, name)
			assert.ElementsMatch(t, theirs.Unknown, ours[0].Unknown, "%s %s", version, name)
		}
	}
}

// A dump that is missing is said, and not that its rank is.
func TestDumpsThatAreMissing(t *testing.T) {
	v := Conclude(recorded(t, "2.9.1", "data")[:2])
	require.Len(t, v, 1)
	assert.Equal(t, []int64{2, 3}, v[0].Unknown)
	assert.Empty(t, v[0].Missing)
	assert.Contains(t, v[0].Sentence(), "; of ranks 2, 3 there is no dump.")
}

// group is a group of a rank that has completed some collectives and called further ones.
func group(rank, completed int64, calls ...string) *Dump {
	g := Group{Name: "0", Ranks: "0-3:1", Newest: &Entry{Number: completed, Operation: "all_reduce"}}
	for i, call := range calls {
		operation, shape, _ := strings.Cut(call, " ")
		g.Newest = &Entry{Number: completed + int64(i) + 1, Operation: operation, Shape: shape}
		if g.Waits == nil {
			g.Waits = g.Newest
		}
	}
	return &Dump{Rank: rank, Groups: []Group{g}}
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

// in puts a group of ranks into a dump that has others.
func in(d *Dump, name, ranks string, waits bool) {
	g := Group{Name: name, Ranks: ranks, Newest: &Entry{Number: 4, Operation: "reduce"}}
	if waits {
		g.Waits = &Entry{Number: 5, Operation: "broadcast"}
		g.Newest = g.Waits
	}
	d.Groups = append(d.Groups, g)
}

// A rank that waits in another group is not the one that the others wait for.
func TestWhoWaitsItself(t *testing.T) {
	dumps := []*Dump{group(0, 7, "barrier"), group(1, 7), group(2, 7), group(3, 7)}
	in(dumps[1], "1", "1-3:1", true)
	in(dumps[2], "1", "1-3:1", true)
	in(dumps[3], "1", "1-3:1", false)
	verdicts := Conclude(dumps)
	require.Len(t, verdicts, 2)
	assert.Equal(t, "Rank 0 waits in barrier #8 of the group 0 for ranks 1, 2, 3, which have not called it. Rank 3 was last in all_reduce #7.", verdicts[0].Sentence())
	assert.EqualValues(t, 3, verdicts[1].Awaited)

	// Each waits for the other: which was wrong, nobody knows.
	dumps = []*Dump{group(0, 7, "barrier"), group(1, 7)}
	in(dumps[0], "1", "0,1", false)
	in(dumps[1], "1", "0,1", true)
	verdicts = Conclude(dumps)
	require.Len(t, verdicts, 2)
	assert.EqualValues(t, -1, verdicts[0].Awaited)
	assert.Equal(t, "Rank 0 waits in barrier #8 of the group 0 for rank 1, which has not called it.", verdicts[0].Sentence())
}

// A record that anybody has sent may have a group twice: its rank counts once.
func TestAGroupTwice(t *testing.T) {
	d := group(0, 3, "a")
	d.Groups = append(d.Groups, d.Groups[0])
	verdicts := Conclude([]*Dump{d, group(1, 3)})
	require.Len(t, verdicts, 1)
	assert.Equal(t, []int64{0}, verdicts[0].Waiting)
	assert.EqualValues(t, 1, verdicts[0].Awaited)
}

// What is not known of a group is not said of it.
func TestHalfKnownGroups(t *testing.T) {
	of := func(ranks string, others ...*Dump) string {
		d := group(0, 3, "a")
		d.Groups[0].Ranks, d.Groups[0].Description = ranks, "TENSOR PARALLEL"
		return Conclude(append(others, d))[0].Sentence()
	}
	const waits = "Rank 0 waits in a #4 of the group TENSOR_PARALLEL"
	assert.Equal(t, waits+"; which other ranks the group has is not known.", of(""))
	assert.Equal(t, waits+"; of 63 ranks there is no dump.", of("n64"))
	assert.Equal(t, waits+", and none is missing: the operation itself does not end.", of("n1"))
	assert.Equal(t, waits+"; the dumps of rank 1 have no collective of the group.", of("0-2:1", &Dump{Rank: 1}))
	assert.Equal(t, waits+"; of rank 1 there is no dump.", of("0,1"))
}

// Ranks have other sizes in some operations, and are named with theirs in the others.
func TestOtherSizes(t *testing.T) {
	for operation, want := range map[string]string{
		"alltoall_base": "Ranks 0, 1, 2, 3 wait in alltoall_base #4 of the group 0, and none is missing: the operation itself does not end.",
		"all_reduce": "Ranks 0, 2, 3 wait in all_reduce #4 of the group 0 for rank 1, which calls something else. " +
			"Rank 1 was last in all_reduce #4 with [8] instead of [16].",
	} {
		verdicts := Conclude([]*Dump{group(0, 3, operation+" [16]"), group(1, 3, operation+" [8]"), group(2, 3, operation+" [16]"), group(3, 3, operation+" [16]")})
		require.Len(t, verdicts, 1)
		assert.Equal(t, want, verdicts[0].Sentence())
	}
}

// Groups of one name are told apart by their ranks, and come in the order of their numbers.
func TestGroupsOfOneName(t *testing.T) {
	var dumps []*Dump
	for _, rank := range []int64{100, 9, 10} {
		d := group(rank, 3, "a")
		d.Groups[0].Ranks = fmt.Sprint(rank, ",1000")
		dumps = append(dumps, d)
	}
	var waiting []int64
	for _, v := range Conclude(dumps) {
		waiting = append(waiting, v.Waiting...)
	}
	assert.Equal(t, []int64{9, 10, 100}, waiting)
}

// A list with something that is no rank is not known.
func TestReadRanks(t *testing.T) {
	for text, want := range map[string]string{
		"[2, 0, 1, 2]":    "0-2:1",
		"[3, 11, 19]":     "3-19:8",
		"[0, 1, 3]":       "0,1,3",
		"[0, 4]":          "0,4",
		"[0]":             "0",
		"[]":              "",
		"[-1,0]":          "",
		"[0, -1]":         "",
		"[0, 2147483648]": "",
		"[0, null]":       "",
		"[0, x]":          "",
		"":                "",
	} {
		read := readRanks(dict{"0": dict{"ranks": text}}, "0")
		assert.Equal(t, want, read, text)
		assert.Equal(t, want, writeRanks(parseRanks(read), maxOwnList))
	}
	many := "[" + strings.Repeat("0,", maxRanks) + "0]"
	assert.Empty(t, readRanks(dict{"0": dict{"ranks": many}}, "0"))
	for _, text := range []string{"0-131072:1", "0-9:0", "9-0:-1", "-4-9:1", "0-9223372036854775807:4611686018427387904", "5-2147483647:9999999999", "5-5:9223372036854775807", "2147483647-2147483647:9223372036854775807"} {
		assert.LessOrEqual(t, len(parseRanks(text)), 1, text)
	}
}

// sent returns what arrives of a dump by a log record.
func sent(t testing.TB, d *Dump) *Dump {
	t.Helper()
	items := pcommon.NewSlice()
	require.NoError(t, items.FromRaw(d.Record()))
	return FromRecord(items, d.Rank)
}

// What log records have of dumps says the same as the dumps.
func TestRecords(t *testing.T) {
	for _, version := range []string{"2.8.0", "2.9.1", "2.15.0"} {
		for _, name := range []string{"skip", "order", "data", "dies"} {
			dumps := recorded(t, version, name)
			assert.Equal(t, Conclude(dumps), Conclude(mlattr.Mapped(dumps, func(d *Dump) *Dump { return sent(t, d) })))
		}
	}
	d := group(0, 3, "a [[16]] [Float]", "b")
	d.Groups[0].Waits.Frame = `träin.py:7 in <module> "|"`
	assert.Equal(t, []any{"0||0-3:1", "4|a|[[16]]~[Float]|tr_in.py:7~in~<module>~___", "5|b||"}, d.Record())
}

// Long texts are cut, and stay different. Of many groups, those in which a rank waits are kept.
func TestLargeRecords(t *testing.T) {
	d := &Dump{Rank: 1}
	for i := range maxGroups {
		call := &Entry{Number: math.MaxInt64, Operation: strings.Repeat("a", maxText), Shape: strings.Repeat("1", maxText), Frame: strings.Repeat("ä", maxText/2)}
		d.Groups = append(d.Groups, Group{
			Name: strings.Repeat("g", maxText) + strconv.Itoa(i), Description: strings.Repeat("d", maxText), Ranks: strings.Repeat("9", maxList), Newest: call,
		})
	}
	d.Groups[maxGroups-1].Waits = d.Groups[0].Newest
	for _, item := range d.Record() {
		assert.LessOrEqual(t, len(item.(string)), maxItem)
	}
	read := sent(t, d)
	require.Len(t, read.Groups, maxRecorded)
	require.NotNil(t, read.Groups[0].Waits)
	assert.NotEqual(t, read.Groups[0].Name, read.Groups[1].Name)
	assert.Equal(t, read.Groups[1].Newest, read.Groups[2].Newest)
	var ranks []int64
	for rank := range int64(64) {
		ranks = append(ranks, rank+rank/2)
	}
	d.Groups[0].Ranks = writeRanks(ranks, maxOwnList)
	assert.Equal(t, "n64", sent(t, &Dump{Groups: d.Groups[:1]}).Groups[0].Ranks, "a list that is cut would be another")
}

// A group of which a part was withheld is left out: its rank would look missing.
func TestWithheldRecords(t *testing.T) {
	for _, damaged := range []string{"[text: 30 bytes]", "4|a", "x|a||", "-1|a||", "4|" + strings.Repeat("a", maxItem) + "||"} {
		for i := range 2 {
			items := pcommon.NewSlice()
			require.NoError(t, items.FromRaw(group(0, 3, "a").Record()))
			items.At(i + 1).SetStr(damaged)
			assert.Empty(t, FromRecord(items, 0).Groups, damaged)
		}
	}
	items := pcommon.NewSlice()
	items.AppendEmpty().SetInt(1)
	items.AppendEmpty()
	items.AppendEmpty().SetEmptyMap()
	items.AppendEmpty()
	assert.Empty(t, FromRecord(items, 0).Groups)
}

// conclude returns the verdicts of a job.
func conclude(j *Jobs, name string) (verdicts []Verdict) {
	if of := j.byName[name]; of != nil {
		of.changed = true
	}
	j.Settle(func(settled string, said []Verdict, _ time.Time) {
		if settled == name {
			verdicts = said
		}
	})
	return verdicts
}

// Dumps of an earlier hang do not count, whichever comes first.
func TestJobs(t *testing.T) {
	var j Jobs
	at := time.Unix(1_700_000_000, 0)
	j.Add("/tmp/a", group(3, 3), at)
	for rank := range int64(3) {
		j.Add("/tmp/a", group(rank, 3, "a"), at.Add(time.Minute))
	}
	require.Len(t, conclude(&j, "/tmp/a"), 1)
	assert.Equal(t, []int64{3}, conclude(&j, "/tmp/a")[0].Missing)
	j.Settle(func(string, []Verdict, time.Time) { t.Error("nothing is new") })
	assert.Empty(t, conclude(&j, "/tmp/b"))
	for rank := range int64(4) {
		j.Add("/tmp/a", group(rank, 1, "x"), at.Add(-time.Hour))
	}
	assert.Equal(t, []int64{3}, conclude(&j, "/tmp/a")[0].Missing, "older ones come later")

	j.Add("/tmp/a", group(0, 3, "a"), at.Add(together+2*time.Minute))
	j.Settle(func(name string, verdicts []Verdict, newest time.Time) {
		assert.Equal(t, "/tmp/a", name)
		assert.Equal(t, []int64{1, 2, 3}, verdicts[0].Unknown)
		assert.Equal(t, at.Add(together+2*time.Minute), newest)
	})
	j.Add("/tmp/b", group(0, 3, "a"), at.Add(keeps+4*time.Minute))
	assert.Len(t, j.byName["/tmp/a"].dumps, 1)
	j.Add("/tmp/b", group(0, 3, "a"), at.Add(2*keeps+10*time.Minute))
	assert.Equal(t, 1, j.number)
	assert.Equal(t, j.byName["/tmp/b"].dumps[0].size, j.size)
	assert.Len(t, j.byName, 1)
}

// However many dumps there are, and however large, few are kept; a newer one of a rank is.
func TestManyDumps(t *testing.T) {
	var j Jobs
	at := time.Unix(1_700_000_000, 0)
	for rank := range int64(maxDumps) {
		require.True(t, j.Add("a", group(rank, 3), at))
	}
	assert.False(t, j.Add("b", group(0, 3), at))
	assert.True(t, j.Add("a", group(7, 3), at))
	assert.Equal(t, maxDumps, j.number)
	later := at.Add(keeps + time.Second)
	large := func(rank int64) *Dump {
		return &Dump{Rank: rank, Groups: []Group{{Name: strings.Repeat("x", maxBytes/2-1000)}}}
	}
	require.True(t, j.Add("b", large(0), later))
	require.True(t, j.Add("b", large(1), later))
	require.True(t, j.Add("b", large(1), later))
	assert.False(t, j.Add("b", large(2), later))
	assert.Equal(t, 2, j.number)
	assert.True(t, j.Add("b", large(2), later.Add(keeps+time.Second)))
	assert.Less(t, j.size, maxBytes/2)
}

// Many groups of many ranks take little memory and time: few verdicts are completed.
func TestManyGroups(t *testing.T) {
	var dumps []*Dump
	for rank := range int64(200) {
		d := &Dump{Rank: rank}
		for i := range maxRecorded {
			d.Groups = append(d.Groups, Group{Name: fmt.Sprint(rank, " ", i), Ranks: "0-131071:1", Waits: &Entry{Number: 1, Operation: "a"}})
		}
		dumps = append(dumps, d)
	}
	verdicts := Conclude(dumps)
	require.Len(t, verdicts, maxVerdicts)
	assert.Len(t, verdicts[0].Absent, 199)
	assert.Len(t, verdicts[0].Unknown, maxUnknown)
	assert.Equal(t, maxRanks-200, verdicts[0].Undumped)
}

// What is cut, or has anything but data, is refused.
func TestNoDump(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("testdata", "2.9.1", "data_rank_0"))
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
		data, err := os.ReadFile(filepath.Join("testdata", "2.9.1", name+"_rank_2"))
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

func FuzzRecord(f *testing.F) {
	f.Add("0|default_pg|0-3:1", "4|a|[16]|train.py:7~in~step", "5|b||")
	f.Add("\n||0-131071:1", "9223372036854775807|||", "")
	f.Fuzz(func(t *testing.T, of, waits, newest string) {
		items := pcommon.NewSlice()
		require.NoError(t, items.FromRaw([]any{of, waits, newest}))
		d := FromRecord(items, 0)
		for _, v := range Conclude([]*Dump{d, group(1, 3, "a")}) {
			assert.NotContains(t, v.Sentence(), "\n")
			assert.Less(t, len(v.Sentence()), 8*maxText)
		}
		once := sent(t, d)
		assert.Equal(t, once, sent(t, once))
	})
}
