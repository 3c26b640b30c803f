package change_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var (
	begin   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	program = change.Subject{Resource: streams.Resource{Service: "agent"}}
	ofRun   = change.Subject{Resource: streams.Resource{Service: "trainer"}, Run: "a"}
)

// see notes one value and returns the phrases of what changed.
func see(h *change.History, now time.Time, of change.Subject, kind, name, value string) []string {
	h.See([]change.Observation{{Of: of, Kind: kind, Name: name, Value: value}}, now)
	return texts(h.Take())
}

func texts(changes []change.Change) []string {
	all := []string{}
	for _, c := range changes {
		all = append(all, c.Text)
	}
	return all
}

func TestPhrases(t *testing.T) {
	for _, tt := range []struct {
		kind, name, from, to, want string
	}{
		{mlattr.ChangeVersion, "", "1.8.1", "1.8.2", "version 1.8.2 (was 1.8.1)"},
		{mlattr.ChangeCommit, "", "0123456789abcdef", "fedcba9876543210", "commit fedcba987654… (was 0123456789ab…)"},
		{mlattr.ChangeImage, "", "a:1", "a:2", "image a:2 (was a:1)"},
		{mlattr.ChangeFramework, "torch", "torch 2.8", "torch 2.9", "torch 2.9 (was torch 2.8)"},
		{mlattr.ChangeDriver, "", "570", "580", "driver 580 (was 570)"},
		{mlattr.ChangeModel, "", "m1", "m2", "model m2 (was m1)"},
		{mlattr.ChangeAnsweringModel, "m", "m-1", "m-2", "model m-2 answers for m (was m-1)"},
		{mlattr.ChangePrompt, "", "aa", "bb", "prompt bb (was aa)"},
		{mlattr.ChangePrompt, "version", "aa", "bb", "prompt version bb (was aa)"},
		{mlattr.ChangeTools, "", "aa", "bb", "tools bb (was aa)"},
		{mlattr.ChangeSettings, "temperature", "aa", "bb", "setting temperature bb (was aa)"},
		{mlattr.ChangeWorldSize, "", "8", "16", "world size 16 (was 8)"},
		{mlattr.ChangeVersion, "", "1", strings.Repeat("é", 64), "version " + strings.Repeat("é", 32) + "… (was 1)"},
		{mlattr.ChangeVersion, "", "1", "x" + strings.Repeat("é", 64), "version x" + strings.Repeat("é", 31) + "… (was 1)"},
	} {
		h := change.NewHistory()
		assert.Empty(t, see(h, begin, program, tt.kind, tt.name, tt.from), "the first value is no change")
		later := begin.Add(2 * time.Minute)
		h.See([]change.Observation{{Of: program, Kind: tt.kind, Name: tt.name, Value: tt.to, Run: "r"}}, later)
		changes := h.Take()
		require.Len(t, changes, 1, tt.want)
		c := changes[0]
		assert.Equal(t, tt.want, c.Text)
		assert.Equal(t, []string{tt.kind, tt.from, tt.to, "r"}, []string{c.Kind, c.From, c.To, c.RunID()})
		assert.Equal(t, later, c.Time)
		if tt.kind == mlattr.ChangeSettings {
			assert.Equal(t, tt.name, c.Setting)
		}
	}
}

// Two versions in use at the same time are one change. A version that returns after
// an hour is a change, too.
func TestTwoVersionsAtTheSameTime(t *testing.T) {
	h := change.NewHistory()
	var all []string
	at := begin
	for n := range 200 {
		at = at.Add(time.Minute)
		all = append(all, see(h, at, program, mlattr.ChangeVersion, "", "1."+strconv.Itoa(n%2))...)
	}
	assert.Equal(t, []string{"version 1.1 (was 1.0)"}, all)
	for range 70 {
		at = at.Add(time.Minute)
		assert.Empty(t, see(h, at, program, mlattr.ChangeVersion, "", "1.1"))
	}
	assert.Equal(t, []string{"version 1.0 (was 1.1)"}, see(h, at, program, mlattr.ChangeVersion, "", "1.0"))
}

// A service that begins with several models has not changed.
func TestSeveralModelsFromTheBeginning(t *testing.T) {
	h := change.NewHistory()
	for n := range 5 {
		assert.Empty(t, see(h, begin.Add(time.Duration(n)*time.Second), program, mlattr.ChangeModel, "", strconv.Itoa(n)))
	}
	assert.Equal(t, []string{"model 9 (was 4)"}, see(h, begin.Add(time.Hour), program, mlattr.ChangeModel, "", "9"))
}

// A prompt that is another one for each request is no flood of changes.
func TestAPromptForEachRequest(t *testing.T) {
	h := change.NewHistory()
	changes := 0
	for n := range 24 * 60 {
		at := begin.Add(time.Duration(n) * time.Minute)
		changes += len(see(h, at, program, mlattr.ChangePrompt, "", strconv.Itoa(n)))
	}
	assert.LessOrEqual(t, changes, 3)
}

// A run whose rank moves has another node; together with its new attempt that is
// one change.
func TestTheNodesOfARun(t *testing.T) {
	h := change.NewHistory()
	place := func(now time.Time, rank, host string) {
		h.See([]change.Observation{{Of: ofRun, Kind: mlattr.ChangeNodes, Name: rank, Value: host}}, now)
	}
	place(begin, "0", "n1")
	place(begin, "1", "n2")
	place(begin, "2", "n2")
	h.Attempts(ofRun, 1, begin)
	assert.Empty(t, h.Take())
	place(begin.Add(time.Minute), "1", "n1")
	assert.Empty(t, h.Take(), "the run used the host before")

	at := begin.Add(time.Hour)
	place(at, "1", "n3")
	place(at, "2", "n4")
	changes := h.Take()
	assert.Equal(t, []string{"hosts n3, n4 (was n1, n2)"}, texts(changes))
	assert.Equal(t, mlattr.ChangeNodes, changes[0].Kind)
	assert.Equal(t, "a", changes[0].RunID())

	at = at.Add(time.Hour)
	place(at, "0", "n5")
	h.Attempts(ofRun, 2, at.Add(time.Second))
	changes = h.Take()
	assert.Equal(t, []string{"attempt 2: new host n5"}, texts(changes))
	assert.Equal(t, mlattr.ChangeAttempt, changes[0].Kind)
	h.Attempts(ofRun, 2, at)
	h.Attempts(ofRun, 3, at.Add(time.Hour))
	assert.Equal(t, []string{"attempt 3"}, texts(h.Take()))
	h.Attempts(change.Subject{Run: "b"}, 2, at)
	assert.Empty(t, h.Take(), "it is first seen at its second attempt")
}

// Before a problem are the changes of its run, of its service, and of the hosts of
// its run, the newest first, of the 6 hours before.
func TestBefore(t *testing.T) {
	h := change.NewHistory()
	trainer := change.Subject{Resource: ofRun.Resource}
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	for _, o := range []struct {
		of               change.Subject
		run, kind, value string
		minute           int
	}{
		{trainer, "a", mlattr.ChangeVersion, "1", 0},
		{program, "", mlattr.ChangeVersion, "1", 0},
		{change.Subject{Host: "n1"}, "", mlattr.ChangeDriver, "1", 0},
		{change.Subject{Host: "n2"}, "", mlattr.ChangeDriver, "1", 0},
		{trainer, "", mlattr.ChangeCommit, "1", 0},
		{trainer, "a", mlattr.ChangeVersion, "2", 10},
		{trainer, "b", mlattr.ChangeVersion, "3", 20},
		{program, "", mlattr.ChangeVersion, "2", 30},
		{change.Subject{Host: "n1"}, "", mlattr.ChangeDriver, "2", 40},
		{change.Subject{Host: "n2"}, "", mlattr.ChangeDriver, "2", 50},
		{trainer, "", mlattr.ChangeCommit, "2", 60},
	} {
		h.See([]change.Observation{{Of: o.of, Run: o.run, Kind: o.kind, Value: o.value}}, at(o.minute))
	}
	h.See([]change.Observation{{Of: ofRun, Kind: mlattr.ChangeNodes, Name: "0", Value: "n1"}}, at(0))
	assert.Equal(t, []string{"commit 2 (was 1)", "driver 2 (was 1)", "version 2 (was 1)"}, texts(h.Before(ofRun, at(60))))
	assert.Equal(t, []string{"driver 2 (was 1)", "version 2 (was 1)"}, texts(h.Before(ofRun, at(59))))
	assert.Equal(t, []string{"version 2 (was 1)"}, texts(h.Before(program, at(60))))
	assert.Equal(t, []string{"driver 2 (was 1)"}, texts(h.Before(change.Subject{Host: "n2"}, at(60))))
	assert.Empty(t, h.Before(ofRun, at(60+6*60+1)))
	assert.Len(t, h.Before(trainer, at(60)), 3, "of a service those in any run")
	assert.Empty(t, h.Before(change.Subject{}, at(60)))
}

// The versions on a host are those of the host and of the program, unless these have several at
// the same time.
func TestVersions(t *testing.T) {
	h := change.NewHistory()
	host := change.Subject{Host: "n1"}
	see(h, begin, host, mlattr.ChangeDriver, "", "570")
	see(h, begin, host, mlattr.ChangeFirmware, "", "96.1")
	for name, version := range map[string]string{"torch": "torch 2.5", "nccl": "nccl 2.21", "numpy": "numpy 1.26"} {
		see(h, begin, program, mlattr.ChangeFramework, name, version)
	}
	see(h, begin, program, mlattr.ChangeFramework, "numpy", "numpy 2.0")
	of := program.Resource
	assert.Equal(t, []string{"driver=570", "firmware=96.1", "torch=2.5", "nccl=2.21"}, h.Versions("n1", of, begin))
	see(h, begin, host, mlattr.ChangeFirmware, "", "96.2")
	see(h, begin, host, mlattr.ChangeDriver, "", "580")
	assert.Equal(t, []string{"torch=2.5", "nccl=2.21"}, h.Versions("n1", of, begin), "its GPUs differ")
	see(h, begin.Add(2*time.Hour), host, mlattr.ChangeDriver, "", "580")
	assert.Equal(t, []string{"driver=580", "firmware=96.2"}, h.Versions("n1", streams.Resource{}, begin.Add(2*time.Hour)))
	assert.Empty(t, h.Versions("n2", streams.Resource{}, begin))
	assert.Empty(t, (*change.History)(nil).Versions("n1", of, begin))
}

// What a history knows outlives a restart, with the key of its hashes.
func TestARestart(t *testing.T) {
	h := change.NewHistory()
	see(h, begin, program, mlattr.ChangeVersion, "", "1")
	see(h, begin, program, mlattr.ChangePrompt, "", h.Hash("be kind"))
	see(h, begin.Add(time.Minute), program, mlattr.ChangeVersion, "", "2")
	h.See([]change.Observation{{Of: ofRun, Kind: mlattr.ChangeNodes, Name: "0", Value: "n1"}}, begin)
	data, err := h.Export()
	require.NoError(t, err)
	again, err := h.Export()
	require.NoError(t, err)
	assert.Equal(t, string(data), string(again))
	assert.NotContains(t, string(data), "be kind")

	after := change.NewHistory()
	require.NoError(t, after.Import(data))
	again, err = after.Export()
	require.NoError(t, err)
	assert.Equal(t, string(data), string(again))
	assert.Equal(t, h.Hash("be kind"), after.Hash("be kind"))
	assert.NotEqual(t, h.Hash("be kind"), change.NewHistory().Hash("be kind"))
	assert.Equal(t, []string{"version 2 (was 1)"}, texts(after.Before(program, begin.Add(time.Hour))))
	assert.Empty(t, see(after, begin.Add(10*time.Minute), program, mlattr.ChangeVersion, "", "2"))
	assert.Equal(t, []string{"version 3 (was 2)"}, see(after, begin.Add(11*time.Minute), program, mlattr.ChangeVersion, "", "3"))
	h.See([]change.Observation{{Of: ofRun, Kind: mlattr.ChangeNodes, Name: "0", Value: "n1"}}, begin)
}

func TestDamagedState(t *testing.T) {
	h := change.NewHistory()
	see(h, begin, program, mlattr.ChangeVersion, "", "1")
	for _, data := range []string{"", "{", `{"version":2}`, `{"version":1,"key":"AA=="}`, strings.Repeat(" ", 17<<20)} {
		require.Error(t, h.Import([]byte(data)), "%.20q", data)
	}
	assert.Equal(t, []string{"version 2 (was 1)"}, see(h, begin, program, mlattr.ChangeVersion, "", "2"), "nothing was changed")
}

// However much is sent, little is remembered.
func TestHistoriesAreBounded(t *testing.T) {
	h := change.NewHistory()
	long := strings.Repeat("x", 100)
	for n := range 20_000 {
		of := change.Subject{Resource: streams.Resource{Service: fmt.Sprint(long, n)}, Run: long}
		at := begin.Add(time.Duration(n) * time.Second)
		h.See([]change.Observation{
			{Of: of, Kind: mlattr.ChangeVersion, Value: "1"},
			{Of: of, Kind: mlattr.ChangeNodes, Name: "0", Value: long},
			{Of: program, Kind: mlattr.ChangeSettings, Name: "s", Value: fmt.Sprint(long, n)},
		}, at)
		h.Attempts(of, 1, at)
	}
	assert.Positive(t, h.Left())
	assert.LessOrEqual(t, len(h.Take()), 2000)
	data, err := h.Export()
	require.NoError(t, err)
	assert.Less(t, len(data), 16<<20)
	for n := range 3000 {
		see(h, begin.Add(time.Duration(n)*time.Hour), program, mlattr.ChangeVersion, "", strconv.Itoa(n))
	}
	assert.LessOrEqual(t, len(h.Before(program, begin.Add(3000*time.Hour))), 5)
	h.Tidy(begin.Add(8 * 24 * 3000 * time.Hour))
	data, err = h.Export()
	require.NoError(t, err)
	assert.Less(t, len(data), 1000)
}

// A value that is known takes no memory.
func TestKnownValuesAllocateNothing(t *testing.T) {
	h := change.NewHistory()
	known := []change.Observation{
		{Of: program, Kind: mlattr.ChangeVersion, Value: "1"},
		{Of: program, Kind: mlattr.ChangeSettings, Name: "temperature", Value: "1"},
		{Of: ofRun, Kind: mlattr.ChangeNodes, Name: "0", Value: "n1"},
	}
	h.See(known, begin)
	assert.Zero(t, testing.AllocsPerRun(100, func() { h.See(known, begin.Add(time.Second)) }))
}

func FuzzImport(f *testing.F) {
	h := change.NewHistory()
	see(h, begin, program, mlattr.ChangeVersion, "", "1")
	see(h, begin.Add(time.Minute), program, mlattr.ChangeVersion, "", "2")
	h.See([]change.Observation{{Of: ofRun, Kind: mlattr.ChangeNodes, Name: "0", Value: "n1"}}, begin)
	data, err := h.Export()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		h := change.NewHistory()
		if h.Import(data) != nil {
			return
		}
		see(h, begin, program, mlattr.ChangeVersion, "", "3")
		h.Attempts(ofRun, 2, begin)
		h.Before(ofRun, begin)
		h.Tidy(begin)
		_, err := h.Export()
		require.NoError(t, err)
	})
}

// TestInventedHosts has a rank on a new host in each span: few hosts are remembered,
// and the change has a short text.
func TestInventedHosts(t *testing.T) {
	h := change.NewHistory()
	for i := range 20_000 {
		h.See([]change.Observation{{Of: ofRun, Kind: mlattr.ChangeNodes, Name: "0", Value: "host-" + strconv.Itoa(i)}}, begin)
	}
	h.Attempts(ofRun, 1, begin)
	h.Attempts(ofRun, 2, begin)
	changes := h.Take()
	require.Len(t, changes, 1, "the attempt")
	assert.Contains(t, changes[0].Text, "attempt 2: new hosts host-1, host-2")
	assert.Equal(t, []string{"host host-1 (was host-19999)"}, see(h, begin, ofRun, mlattr.ChangeNodes, "0", "host-1"), "forgotten")
	for i := range 20_000 {
		h.See([]change.Observation{{Of: ofRun, Kind: mlattr.ChangeNodes, Name: "0", Value: "other-" + strconv.Itoa(i)}}, begin)
	}
	changes = h.Take()
	require.Len(t, changes, 1)
	assert.Less(t, len(changes[0].From)+len(changes[0].To), 1100)
	assert.True(t, strings.HasSuffix(changes[0].To, ", …"))
	kept, err := h.Export()
	require.NoError(t, err)
	assert.Less(t, len(kept), 10_000)
}

// TestInventedModels has a program that asks for ever new models: changes of others
// are recorded, and its own names make room after an hour.
func TestInventedModels(t *testing.T) {
	h := change.NewHistory()
	other := change.Subject{Resource: streams.Resource{Service: "other"}}
	for i := range 20_000 {
		h.See([]change.Observation{{Of: program, Kind: mlattr.ChangeAnsweringModel, Name: strconv.Itoa(i), Value: "m"}}, begin)
	}
	assert.Equal(t, int64(20_000-1024), h.Left())
	assert.Empty(t, see(h, begin, other, mlattr.ChangeVersion, "", "1"))
	assert.Equal(t, []string{"version 2 (was 1)"}, see(h, begin, other, mlattr.ChangeVersion, "", "2"))
	kept, err := h.Export()
	require.NoError(t, err)
	require.NoError(t, h.Import(kept))
	later := begin.Add(2 * time.Hour)
	h.See([]change.Observation{{Of: program, Kind: mlattr.ChangeVersion, Value: "1"}}, later)
	assert.Equal(t, int64(1), h.Left())
	h.Tidy(later)
	h.See([]change.Observation{{Of: program, Kind: mlattr.ChangeVersion, Value: "1"}}, later)
	assert.Zero(t, h.Left())
	assert.Equal(t, []string{"version 3 (was 2)"}, see(h, later, other, mlattr.ChangeVersion, "", "3"), "still known")
}
