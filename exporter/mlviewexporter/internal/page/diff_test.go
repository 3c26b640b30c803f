package page

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// row is a row of any list, as a client has it.
type row = map[string]any

// apply does what live.js does with an event rows.
func apply(t testing.TB, state map[string][]row, u *update) {
	t.Helper()
	encoded, err := json.Marshal(u)
	require.NoError(t, err)
	var event struct {
		Rows map[string]struct {
			Set, Change []row
			Del         []string
		}
		Order map[string][]string
	}
	require.NoError(t, json.Unmarshal(encoded, &event))
	for name, change := range event.Rows {
		rows := state[name]
		for _, key := range change.Del {
			rows = without(rows, key)
		}
		for _, r := range change.Set {
			rows = put(rows, r)
		}
		for _, r := range change.Change {
			merge(rows, r)
		}
		state[name] = rows
	}
	for name, keys := range event.Order {
		var rows []row
		for _, key := range keys {
			for _, r := range state[name] {
				if r["key"] == key {
					rows = append(rows, r)
				}
			}
		}
		state[name] = rows
	}
}

func without(rows []row, key string) []row {
	var kept []row
	for _, r := range rows {
		if r["key"] != key {
			kept = append(kept, r)
		}
	}
	return kept
}

func put(rows []row, r row) []row {
	for i := range rows {
		if rows[i]["key"] == r["key"] {
			rows[i] = r
			return rows
		}
	}
	return append(rows, r)
}

func merge(rows []row, fields row) {
	for _, r := range rows {
		if r["key"] != fields["key"] {
			continue
		}
		for name, value := range fields {
			r[name] = value
			if value == nil {
				delete(r, name)
			}
		}
	}
}

// settle leaves out what is null and what updates of runs and GPUs leave out, and
// rounds numbers as updates do.
func settle(name string, rows []row) {
	for _, r := range rows {
		for field, value := range r {
			if value == nil || (field == "last_seen" || field == "step_rate") && (name == "runs" || name == "gpus") {
				delete(r, field)
			}
			if number, ok := value.(float64); ok {
				r[field] = rounded(number)
			}
		}
	}
}

// rowsOf returns the lists of a State as a client has them, without when a run or
// GPU was last seen: that comes late.
func rowsOf(t testing.TB, s *api.State) map[string][]row {
	t.Helper()
	encoded, err := json.Marshal(s)
	require.NoError(t, err)
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(encoded, &all))
	lists := make(map[string][]row)
	for name, value := range all {
		var rows []row
		if json.Unmarshal(value, &rows) == nil && len(rows) > 0 {
			lists[name] = rows
		}
		settle(name, rows)
	}
	return lists
}

// present leaves out empty lists.
func present(lists map[string][]row) map[string][]row {
	for name, rows := range lists {
		if len(rows) == 0 {
			delete(lists, name)
		}
	}
	return lists
}

func TestAClientThatAppliesTheUpdatesHasTheState(t *testing.T) {
	incidents, err := LoadFixture("testdata/incidents.json")
	require.NoError(t, err)
	states := []*api.State{
		FleetData(30, 40, 0).State, FleetData(30, 40, 1).State, FleetData(3, 2, 2).State, incidents.State(),
		{}, FleetData(120, 10, 3).State,
	}
	// Shuffled rows, as if they moved.
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		s := *states[random.IntN(len(states))]
		s.Runs, s.GPUs = append([]api.Run(nil), s.Runs...), append([]api.GPU(nil), s.GPUs...)
		random.Shuffle(len(s.Runs), func(i, j int) { s.Runs[i], s.Runs[j] = s.Runs[j], s.Runs[i] })
		s.GPUs = s.GPUs[:random.IntN(len(s.GPUs)+1)]
		states = append(states, &s)
	}
	client := rowsOf(t, states[0])
	for i := 1; i < len(states); i++ {
		apply(t, client, diff(states[i-1], states[i]))
		for name, rows := range client {
			settle(name, rows)
		}
		require.Equal(t, rowsOf(t, states[i]), present(client), "state %d", i)
	}
}

func TestOnlyChangedFieldsAreSent(t *testing.T) {
	old := FleetData(30, 40, 0).State
	next := *FleetData(30, 40, 0).State
	next.Runs[4].Version, next.Runs[4].Bound = "2", ""

	u := diff(old, &next)
	require.Len(t, u.Rows, 1)
	assert.Equal(t, []map[string]any{{"key": "run-4", "version": "2", "bound": nil}}, u.Rows["runs"].Change)
	assert.Empty(t, u.Rows["runs"].Set)
	assert.Empty(t, u.Rows["runs"].Del)
	assert.Empty(t, u.Order, "no row moved")

	next.Runs = next.Runs[1:]
	u = diff(old, &next)
	assert.Equal(t, []string{"run-0"}, u.Rows["runs"].Del)
	assert.Len(t, u.Order["runs"], 29)
	assert.NotContains(t, u.Order, "gpus")

	assert.Empty(t, diff(old, old).Rows)
}

func TestARowThatWasOnlySeenAgainIsNotSent(t *testing.T) {
	old := FleetData(3, 3, 0).State
	next := *FleetData(3, 3, 0).State
	later := next.Time.Add(time.Minute)
	next.Runs[1].LastSeen, next.GPUs[1].LastSeen = later, later
	assert.Empty(t, diff(old, &next).Rows)

	old.Failures, next.Failures = []api.Failure{{Key: "f"}}, []api.Failure{{Key: "f", LastSeen: &later}}
	assert.Equal(t, []map[string]any{{"key": "f", "last_seen": &later}}, diff(old, &next).Rows["failures"].Change)
}

// Numbers are sent when what the page shows of them changes.
func TestNumbersAreSentAsTheyAreShown(t *testing.T) {
	change := func(from, to float64) any {
		old, next := api.Run{Key: "r", TokenRate: &from}, api.Run{Key: "r", TokenRate: &to}
		u := diff(&api.State{Runs: []api.Run{old}}, &api.State{Runs: []api.Run{next}})
		if u.Rows["runs"] == nil {
			return nil
		}
		return u.Rows["runs"].Change[0]["token_rate"]
	}
	assert.Nil(t, change(0.41234, 0.41231), "the fifth digit")
	assert.InDelta(t, 0.4124, change(0.41231, 0.412399), 0)
	assert.Nil(t, change(88_123.1, 88_123.3))
	assert.InDelta(t, 88_124, change(88_123.1, 88_123.9), 0)
	assert.InDelta(t, 12_345_678, change(12_345_677, 12_345_678), 0, "a count is exact")
	assert.InDelta(t, -1e-9, change(0, -1e-9), 0)
}

func BenchmarkDiffOfALargeFleet(b *testing.B) {
	states := []*api.State{FleetData(500, 512, 0).State, FleetData(500, 512, 1).State}
	var sent int
	for i := 0; b.Loop(); i++ {
		m := event("rows", diff(states[i%2], states[(i+1)%2]))
		sent = len(m.zip())
		b.SetBytes(int64(len(m.plain)))
	}
	b.ReportMetric(float64(sent), "compressed-B/op")
}
