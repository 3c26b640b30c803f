package text_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

func written(t *testing.T, s *api.State, o text.Options) string {
	t.Helper()
	return string(text.Of(s, o))
}

func TestGolden(t *testing.T) {
	empty := &api.State{Version: api.SchemaVersion, Time: now}
	for name, state := range map[string]*api.State{"incident": incident(), "empty": empty} {
		for _, width := range []int{80, 120, 200} {
			file := filepath.Join("testdata", fmt.Sprintf("%s-%d.txt", name, width))
			golden.File(t, file, written(t, state, text.Options{Width: width}))
		}
	}
}

// What loses data now stands at the top, in red, with since when and how much.
func TestWhatLosesDataStandsAtTheTop(t *testing.T) {
	since := now.Add(-9 * time.Minute)
	state := &api.State{Time: now, Missing: []api.Missing{
		{What: "Drops traces for the back end jaeger:4317", Why: "Its queue is full.", Count: 12345, Since: &since},
		{What: "Refuses data: logs\x1b[2J", Why: "Memory is short.", Since: &since},
		{What: "GPUs", Why: "No receiver reports GPUs."},
	}}
	at := since.UTC().Format("2 Jan 15:04:05 UTC")
	top, _, _ := strings.Cut(written(t, state, text.Options{Color: true, Width: 200}), "DATA GAPS")
	assert.Contains(t, top, "\x1b[1;31mDrops traces for the back end jaeger:4317, since "+at+" (12345): Its queue is full.\x1b[0m\n")
	assert.Contains(t, top, "\x1b[1;31mRefuses data: logs, since "+at+": Memory is short.\x1b[0m\n")
	assert.NotContains(t, top, "No receiver")
}

// Each command says what it does, also under what needs someone.
func TestCommands(t *testing.T) {
	state := &api.State{Time: now, Failures: []api.Failure{
		{Class: "known", Command: "known"},
		{Class: "without"},
		{Class: "asks", Command: "asks URL", Replays: true, Requires: []string{"--base-url URL", "Python module numpy"}, Fill: []string{"URL"}},
	}, Needs: []api.Need{
		{Subject: "fails", Next: "See what is known.", Command: "known"},
		{Subject: "hangs", Next: "Look.", Command: "py-spy dump --pid 4"},
	}}
	out := written(t, state, text.Options{})
	const known = "    prints what is known of it; no replay:\n    $ known\n"
	assert.Contains(t, out, "    next: See what is known.\n"+known)
	assert.Contains(t, out, "    next: Look.\n    $ py-spy dump --pid 4\n")
	assert.Regexp(t, `(?s)FAILURES.* known\n.* without\n.* asks\n`, out, "in the order of the state")
	assert.Contains(t, out, " known\n"+known)
	assert.Contains(t, out, "    runs the failed call again, and may ask first; needs Python module numpy; replace URL by your own:\n    $ asks URL\n")
}

// A failure that has no command says why; one that cannot be run again, too.
func TestWhyNotReproduced(t *testing.T) {
	out := written(t, &api.State{Time: now, Failures: []api.Failure{
		{Class: "new", Why: "not yet written; repro_gen writes it some seconds after the failure"},
		{Class: "_OTHER", Command: "python3 a.py", Why: "the call was not recorded"},
		{Class: "writes", Command: "python3 b.py --body FILE", Replays: true, Requires: []string{"--body FILE"}, Fill: []string{"FILE"}},
	}}, text.Options{})
	assert.Contains(t, out, " new\n    reproduction: not yet written; repro_gen writes it some seconds after the failure\n")
	assert.Contains(t, out, " error without a type\n    prints what is known of it; no replay: the call was not recorded:\n    $ python3 a.py\n")
	assert.Contains(t, out, "    runs the failed call again, and may ask first; replace FILE by your own:\n    $ python3 b.py --body FILE")
}

// Runs of one service are told apart, and say why they have no tokens per second.
func TestTokensOfRuns(t *testing.T) {
	none := map[string]string{"token_rate": "unknown: tokens per step not set. Set it."}
	samples := map[string]string{"token_rate": "counts samples, not tokens"}
	out := written(t, &api.State{Time: now, Runs: []api.Run{
		{Key: "1", ID: "0123456789abcdef", Service: "tuft", State: "running", Why: none},
		{Key: "2", ID: "fedcba9876543210", Service: "tuft", State: "running", Why: samples, Samples: new(9.0), SampleRate: new(446.0)},
		{Key: "3", ID: "fedcba9876543210", Service: "other", State: "running", Tokens: new(9.0), TokenRate: new(777.0)},
	}}, text.Options{Width: 80})
	assert.Regexp(t, `\ntuft 01234567….* none .*\n    tok/s: unknown: tokens per step not set \(fix: DATA GAPS\)\n`, out)
	assert.Regexp(t, `\ntuft fedcba98….* none .*\n    tok/s: 446 samples/s\n`, out)
	assert.Regexp(t, `\nother .* 777 `, out)
}

// Runs that are over are one line under the others, unless all are or they have a problem.
func TestRunsThatAreOverAreFolded(t *testing.T) {
	runs := []api.Run{
		{Key: "1", Service: "trains", State: "running"}, {Key: "2", Service: "one", State: "silent"}, {Key: "3", Service: "two", State: "ended"},
		{Key: "4", Service: "lost", State: "silent", Needs: []string{"run_silent"}}, {Key: "5", Service: "broke", State: "failed"},
	}
	out := written(t, &api.State{Time: now, Runs: runs}, text.Options{})
	assert.Contains(t, out, "\nRUNS (3)\n")
	assert.Contains(t, out, "\n2 more are silent or have ended: one, two\n")
	assert.Regexp(t, `(?s)\nlost .*\ntrains `, out)
	assert.Regexp(t, `\nbroke +failed`, out)
	out = written(t, &api.State{Time: now, Runs: runs[1:3]}, text.Options{})
	assert.Regexp(t, `(?s)\nRUNS \(2\)\n.*\none +silent.*\ntwo +ended`, out)
}

// Rows have a mark of simulated data only where others have none.
func TestSimulatedRows(t *testing.T) {
	state := &api.State{Time: now, Collector: api.Collector{Simulated: true}, Runs: []api.Run{{Key: "1", Service: "a", Simulated: true}, {Key: "2", Service: "b", Simulated: true}}}
	out := written(t, state, text.Options{})
	assert.Contains(t, out, "ALL DATA IS SIMULATED OR RECORDED\nSIMULATED DATA: no run and no GPU is real\n")
	assert.NotContains(t, out, "sim\n")
	state.Runs[1].Simulated = false
	out = written(t, state, text.Options{})
	assert.Contains(t, out, `SIMULATED DATA: what is marked "sim" is not real`)
	assert.Regexp(t, `\na +sim`, out)
	assert.NotContains(t, out, "ALL DATA")
	state.Runs[0].Recorded = true
	out = written(t, state, text.Options{})
	assert.NotContains(t, out, "SIMULATED")
	assert.Contains(t, out, `RECORDED DATA: what is marked "rec" is played from a recording, not live`)
	assert.Regexp(t, `\na +rec`, out)
}

// The most important columns of runs have room in a narrow terminal.
func TestColumnsOf80Cells(t *testing.T) {
	out := written(t, incident(), text.Options{Width: 80})
	assert.Regexp(t, `\nrun +data +owner +state .* goodput +limited by\n`, out)
}

// A run that makes no steps shows no rate as if it made some.
func TestRatesOfRuns(t *testing.T) {
	for state, shown := range map[string]bool{"running": true, "unknown": true, "stalled": false, "silent": false, "ended": false} {
		run := api.Run{Service: "run", State: state, StepTime: new(1.5), StepTimeUsual: new(1.0), TokenRate: new(777.0), SampleRate: new(888.0), Bound: "checkpoint"}
		out := written(t, &api.State{Time: now, Runs: []api.Run{run, {Service: "other"}}}, text.Options{Width: 200})
		for _, rate := range []string{"1.50", "+50 %", "777", "888", "checkpoint"} {
			assert.Equal(t, shown, strings.Contains(out, rate), "%s: %s", state, rate)
		}
	}
}

// GPUs of a host that differ in nothing but their numbers share a line.
func TestGPUsOfAHost(t *testing.T) {
	state := &api.State{Time: now}
	add := func(host, index, rank string, change func(*api.GPU)) {
		g := api.GPU{Host: host, Index: index, Activity: "working", Utilization: new(0.5), Power: new(300.0), PowerLimit: new(700.0),
			Holders: []api.Holder{{Run: "r", Service: "sft", Rank: rank, Owner: "user1"}}}
		if change != nil {
			change(&g)
		}
		state.GPUs = append(state.GPUs, g)
	}
	add("a", "0", "0", nil)
	add("a", "1", "1", func(g *api.GPU) { g.Utilization, g.Power = new(0.7), new(350.0) })
	add("a", "2", "2", func(g *api.GPU) { g.XID = &api.XID{Code: "63", Time: *ago(time.Minute)} })
	add("a", "3", "3", nil)
	add("a", "4", "4", func(g *api.GPU) { g.Holders[0].Owner = "user2" })
	add("a", "5", "", func(g *api.GPU) { g.Holders = nil })
	add("b", "0", "5", func(g *api.GPU) { g.Health = "failed" })
	out := written(t, state, text.Options{})
	assert.Contains(t, out, "\nGPUS (7)\n")
	assert.Regexp(t, `\na:0-1,3 +working +50-70 % +300-350/700 W +sft ranks 0-1,3 \(user1\)\n`, out)
	assert.Regexp(t, `\na:2 +working .* sft rank 2 \(user1\)\n    last error of the driver: XID 63 1 min ago\n`, out)
	assert.Regexp(t, `\na:4 +working .* sft rank 4 \(user2\)\n`, out)
	assert.Regexp(t, `\na:5 +working .* -\n`, out)
	assert.Regexp(t, `\nb:0 +working .*\n    health: failed\n`, out)
}

// Of hosts and programs that send nothing, the text says since when and what was last.
func TestNothingArrives(t *testing.T) {
	since := now.Add(-5 * time.Minute)
	gpu := api.GPU{Host: "a", Index: "0", Activity: "no_data", LastActivity: "working", NoDataSince: &since, Utilization: new(0.9), Power: new(300.0),
		Holders: []api.Holder{{Service: "sft", Owner: "user1"}}}
	hung := gpu
	hung.Index, hung.LastActivity = "1", "looks_hung"
	out := written(t, &api.State{
		Time: now, GPUs: []api.GPU{gpu, hung},
		Collector: api.Collector{DataTime: &since, Hosts: 1, GPUs: map[string]int{"no_data": 2}, NoDataSince: &since},
		Runs:      []api.Run{{Key: "r", Service: "sft", Owner: "user1", State: "running", NoDataSince: &since, StepTime: new(1.5)}},
	}, text.Options{Width: 160})
	at := since.UTC().Format("15:04:05")
	assert.Contains(t, out, "2 GPUs: 2 without data since "+at+" · 0 of 1 hosts sending · newest data 5 min old")
	assert.Contains(t, out, "NO DATA since ")
	assert.Contains(t, out, "NO PROBLEMS DETECTED, AS FAR AS DATA TELLS\n")
	assert.Regexp(t, `\na:0 +no data since `+at+`, was working +sft \(user1\)\n`, out)
	assert.Regexp(t, `\na:1 +no data since `+at+`, was looks hung +sft \(user1\)\n`, out)
	assert.Regexp(t, `\nsft +user1 +running, no data since `+at, out)
	assert.NotContains(t, out, "90 %", "nobody knows")
	assert.NotContains(t, out, "1.5", "nobody knows")
}

// What has no room is named once, with the way to it.
func TestColumnsLeftOut(t *testing.T) {
	narrow, wide := written(t, incident(), text.Options{Width: 80}), written(t, incident(), text.Options{Width: 200})
	assert.Regexp(t, `(?s)\nColumns left out at this width: .*RUNS: .*restarts.* \?width=200\s+shows\s+more\.\n`, narrow)
	assert.NotContains(t, wide, "?width=")
	assert.Contains(t, wide, "/api/v1/state has every row and column as JSON.\n")
}

func TestRemediesSayWhereTheyBelong(t *testing.T) {
	out := written(t, &api.State{Time: now, Missing: []api.Missing{
		{What: "tokens of a", Why: "none sent", Fix: "ml_enrich: {training: [a]}"},
		{What: "tokens of b", Why: "none sent", Fix: "ml_enrich: {training: [a]}"},
		{What: "series", Why: "limit", Fix: "ml_metrics/derived: {max_series: 2}"},
		{What: "the run", Why: "unnamed", Fix: "OTEL_RESOURCE_ATTRIBUTES=ml.run.id=1"},
		{What: "GPUs", Why: "no driver", Fix: "modprobe nvidia"},
	}}, text.Options{})
	assert.Contains(t, out, `
tokens of a; tokens of b: none sent
    in the collector's configuration file, under processors:
    > ml_enrich: {training: [a]}
series: limit
    in the collector's configuration file, under connectors:
    > ml_metrics/derived: {max_series: 2}
the run: unnamed
    in the environment of the program:
    > OTEL_RESOURCE_ATTRIBUTES=ml.run.id=1
GPUs: no driver
    > modprobe nvidia
`)
}

// The collectors of a fleet are counted, and listed if one is silent.
func TestCollectors(t *testing.T) {
	silent := now.Add(-9 * time.Minute)
	state := &api.State{Time: now, Collectors: []api.SendingCollector{
		{ID: "gw-1", LastSeen: silent, SilentSince: &silent, Address: "10.0.0.1"}, {ID: "gw-0", LastSeen: now, Version: "1.2.0"},
	}}
	out := written(t, state, text.Options{})
	assert.Contains(t, out, "1 of 2 collectors sending")
	assert.Regexp(t, `(?m)^COLLECTORS \(2\)$\n^collector .*\n^gw-1 +SILENT since `+silent.Format("15:04:05")+` .* 10\.0\.0\.1 +-$\n^gw-0 +sending .* 1\.2\.0$`, out)
	state.Collectors = state.Collectors[1:]
	out = written(t, state, text.Options{})
	assert.Contains(t, out, "1 of 1 collectors sending")
	assert.NotContains(t, out, "COLLECTORS")
}
