package history_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/history"
)

var start = time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC)

func gpu(host, index, activity string, use float64) api.GPU {
	return api.GPU{Host: host, Index: index, ID: host + index, Activity: activity, Utilization: &use}
}

// A step has the worst that a GPU did and its mean use; what nobody knows is empty.
func TestStepsOfGPUs(t *testing.T) {
	set := history.New(time.Minute)
	at := func(seconds int, gpus ...api.GPU) {
		set.Add(&api.State{Time: start.Add(time.Duration(seconds) * time.Second), GPUs: gpus})
	}
	at(0, gpu("b", "0", "working", 0.5))
	at(10, gpu("b", "0", "looks_hung", 1), gpu("a", "10", "free", 0))
	at(20, gpu("b", "0", "working", 0.9), gpu("a", "10", "free", 0), gpu("a", "9", "working", 0.3))
	at(130, gpu("b", "0", "working", 0.4))
	at(70, gpu("b", "0", "failed", 0.4)) // the clock went back
	got := set.Rows()
	require.Len(t, got.GPUs, 3)
	require.Len(t, got.Times, 60)
	assert.Equal(t, []float64{float64(start.Unix()), float64(start.Unix() + 60), float64(start.Unix() + 120)}, got.Times[57:])
	assert.Equal(t, []string{"b/0", "a/9", "a/10"}, []string{name(got.GPUs[0]), name(got.GPUs[1]), name(got.GPUs[2])}, "the one with a problem first")
	assert.Equal(t, []string{"", "looks_hung", "", "working"}, got.GPUs[0].Activity[56:])
	assert.Equal(t, []*float64{nil, new(0.8), nil, new(0.4)}, got.GPUs[0].Use[56:])

	at(3*3600, gpu("a", "9", "working", 1))
	got = set.Rows()
	require.Len(t, got.GPUs, 1, "after an hour nothing is left of a GPU that is not read")
	assert.Equal(t, "working", got.GPUs[0].Activity[59])
}

func name(row api.GPUHistory) string { return row.Host + "/" + row.Index }

// Many GPUs are shown by host, and of many hosts those with the most trouble.
func TestManyGPUs(t *testing.T) {
	set := history.New(time.Minute)
	state := &api.State{Time: start}
	for host := range 200 {
		for index := range 8 {
			activity := "working"
			if host == 150 && index == 3 {
				activity = "looks_hung"
			}
			state.GPUs = append(state.GPUs, gpu(fmt.Sprintf("h%03d", host), strconv.Itoa(index), activity, float64(index)/10))
		}
	}
	set.Add(state)
	got := set.Rows()
	require.Len(t, got.GPUs, 128)
	assert.Equal(t, 72, got.Hidden)
	worst := got.GPUs[0]
	assert.Equal(t, []any{"h150", 8, "looks_hung"}, []any{worst.Host, worst.GPUs, worst.Activity[59]})
	assert.InDelta(t, 0.35, *worst.Use[59], 1e-6)
}

// Tokens of runs and of requests are apart, and those that a client and its server both
// count are counted once. Costs are of GPUs and of requests.
func TestTokensAndCosts(t *testing.T) {
	set := history.New(10 * time.Second)
	at := func(seconds int, rate, cost float64) {
		state := &api.State{
			Time: start.Add(time.Duration(seconds) * time.Second),
			Runs: []api.Run{{State: "running", TokenRate: &rate, GPUPrice: new(4.0)}, {State: "ended", TokenRate: new(7.0)}},
			Models: []api.Model{
				{Side: "client", InputTokenRate: new(100.0), OutputTokenRate: new(20.0)},
				{Side: "server", InputTokenRate: new(100.0), OutputTokenRate: new(20.0), Cost: &cost},
			},
		}
		set.Add(state)
	}
	at(0, 10, 1)
	at(2, 30, 1.01)
	at(4, 20, 1.01)
	got := set.Rows()
	names := make(map[string]api.Curve)
	for _, c := range got.Curves {
		names[c.Name] = c
	}
	require.Len(t, names, 4)
	assert.Equal(t, api.Curve{Name: "token_rate", Unit: "{token}/s", Times: got.Times[59:], Values: []float64{20}, Low: []float64{10}, High: []float64{30}}, names["token_rate"])
	assert.Equal(t, []float64{120}, names["model_token_rate"].Values)
	assert.Equal(t, []float64{4}, names["gpu_cost_rate"].Values)
	assert.Equal(t, []float64{1.01}, names["request_cost"].High, "what was spent grows")
	assert.Empty(t, history.New(time.Minute).Rows().Curves)
}
