package model_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// site has four hosts with two GPUs each: the run "works" on the first two, "hangs" on the
// third one, and nobody on the fourth one.
type site struct {
	*world
	from fleet.Connection
	// silent reports whether the hosts and their clients send nothing, computes whether
	// ml_metrics goes on.
	silent, computes bool
	// idle reports whether nobody holds a GPU, ended whether the runs have ended.
	idle, ended bool
	// heard is when the run "works" and the hosts have last sent anything.
	heard time.Time
}

func newSite(ofFleet bool) *site {
	s := &site{world: newWorld(input.Settings{Fleet: ofFleet, Owners: map[string]string{"1001": "ada"}}), computes: true}
	if ofFleet {
		s.from = fleet.Connection{Collector: "gw-1"}
	}
	return s
}

func (s *site) add(metric series.Series, value float64, of series.Labels, own ...string) {
	copy(of.Own[:], own)
	s.ApplyPoints([]series.Point{{Series: metric, Update: series.Update{Value: value, Time: s.now.UnixNano()}, Labels: of, From: s.from}})
}

// live has time pass: hosts are read every 10 seconds, and ml_metrics emits.
func (s *site) live(d time.Duration) {
	for range int(d / (10 * time.Second)) {
		s.now = s.now.Add(10 * time.Second)
		if !s.silent {
			s.heard = s.now
			s.read()
		}
		if s.computes {
			s.emit()
		}
	}
}

func (s *site) read() {
	for n := range 8 {
		run := []string{"works", "works", "hangs", ""}[n/2]
		of := series.Labels{Host: fmt.Sprint("h", n/2), GPU: fmt.Sprint("GPU-", n)}
		use := 0.0
		if run != "" && !s.idle {
			use = 0.9
			held := of
			held.Run = run
			s.add(series.GPUWorkload, 1<<30, held, "", "", "", "", "1001", "", "trainer")
		}
		s.add(series.GPUUtilization, use, of, "general")
		if run == "works" && !s.settings().Fleet {
			s.span(func(in *input.Span) { in.Source = &input.Source{Service: "trainer", Run: run, Host: of.Host} })
		}
	}
}

func (s *site) settings() input.Settings { return input.Settings{Fleet: s.from.Collector != ""} }

func (s *site) emit() {
	unix := func(at time.Time) float64 { return float64(at.Unix()) }
	for run, state := range map[string]string{"works": "running", "hangs": "stalled"} {
		if s.ended {
			state = "ended"
		} else if s.idle {
			state = "unknown"
		}
		of := series.Labels{Service: "trainer", Run: run}
		s.add(series.RunState, 1, of, state)
		// It goes on counting, as the time of a run does.
		of.Host = "h0"
		s.add(series.Steps, unix(s.now), of)
	}
	s.add(series.RunLastData, unix(s.heard), series.Labels{Service: "trainer", Run: "works"})
	s.add(series.RunLastData, unix(s.heard.Add(-time.Hour)), series.Labels{Service: "trainer", Run: "hangs"})
	for n := range 4 {
		s.add(series.HostLastData, unix(s.heard), series.Labels{Host: fmt.Sprint("h", n)})
		s.add(series.GPUIdle, 0, series.Labels{Host: fmt.Sprint("h", n), GPU: fmt.Sprint("GPU-", 2*n)})
	}
	s.add(series.Problem, unix(s.heard.Add(-time.Hour)), series.Labels{Service: "trainer", Run: "hangs"}, mlattr.ProblemLooksHung)
	if s.silent {
		s.add(series.Problem, unix(s.heard), series.Labels{Service: "trainer", Run: "works", Host: "h1"}, mlattr.ProblemHostSilent)
	}
}

// A cluster that dies is neither well nor free, whatever is computed of it.
func TestADeadCluster(t *testing.T) {
	for name, tt := range map[string]struct{ ofFleet, computes bool }{
		"one collector": {false, true}, "a fleet": {true, true}, "a fleet whose gateway dies, too": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(tt.ofFleet)
			s.live(5 * time.Minute)
			state := s.State()
			assert.Equal(t, map[string]int{"working": 4, "looks_hung": 2, "free": 2}, state.Collector.GPUs)
			assert.Equal(t, 4, state.Collector.HostsReporting)
			assert.Nil(t, state.Collector.NoDataSince)
			died := s.now
			s.silent = true
			for _, after := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 3 * time.Hour} {
				s.live(10 * time.Second) // ml_metrics knows that they are silent
				s.computes = tt.computes
				s.live(died.Add(after).Sub(s.now))
				state := s.State()
				if after > time.Hour {
					// GPUs that nobody held have left.
					assert.Equal(t, map[string]int{"no_data": 6}, state.Collector.GPUs, after)
					continue
				}
				assert.Equal(t, map[string]int{"no_data": 8}, state.Collector.GPUs, after)
				assert.Equal(t, died, *state.Collector.NoDataSince, after)
				assert.Equal(t, died, *state.Collector.DataTime, after)
				assert.Equal(t, 4, state.Collector.Hosts)
				assert.Zero(t, state.Collector.HostsReporting, after)
				for i, g := range state.GPUs {
					assert.Equal(t, "no_data", g.Activity, after)
					assert.Equal(t, died, *g.NoDataSince, after)
					assert.Equal(t, []string{"working", "working", "looks_hung", "free"}[i/2], g.LastActivity, after)
					if i < 6 {
						require.Len(t, g.Holders, 1, after)
						assert.Equal(t, "ada", g.Holders[0].Owner, after)
					}
				}
				require.Len(t, state.Runs, 2)
				for _, r := range state.Runs {
					assert.Equal(t, map[string]string{"works": "running", "hangs": "stalled"}[r.ID], r.State, "the last one")
					require.NotNil(t, r.NoDataSince, r.ID)
					assert.Equal(t, r.LastSeen, *r.NoDataSince, after)
					if r.ID == "works" {
						assert.Equal(t, died, *r.NoDataSince, after)
					}
				}
				var needs []string
				for _, n := range state.Needs {
					needs = append(needs, n.Kind+" "+n.Subject+" "+n.Owner)
				}
				want := []string{"looks_hung trainer ada", "host_silent h1: GPU GPU-2, GPU-3 ada"}
				if !tt.computes && after > 5*time.Minute {
					want = append(want, "host_silent collector gw-1 ")
				}
				assert.ElementsMatch(t, want, needs, after)
			}
			s.computes = false
			s.live(10 * time.Hour)
			assert.Empty(t, s.State().GPUs, "they leave after the history")

			s.silent, s.computes = false, true
			s.live(5 * time.Minute)
			assert.Equal(t, map[string]int{"working": 4, "looks_hung": 2, "free": 2}, s.State().Collector.GPUs)
			assert.Equal(t, 4, s.State().Collector.HostsReporting)
		})
	}
}

// A host that is silent to one gateway may send to another one.
func TestAHostThatSendsElsewhere(t *testing.T) {
	s := newSite(true)
	s.live(5 * time.Minute)
	s.add(series.Problem, float64(s.now.Add(-time.Minute).Unix()), series.Labels{Service: "trainer", Run: "works", Host: "h1"}, mlattr.ProblemHostSilent)
	s.from.Collector = "gw-2"
	s.live(time.Minute)
	for _, n := range s.State().Needs {
		assert.NotEqual(t, mlattr.ProblemHostSilent, n.Kind)
	}
}

// collectorsOf returns the problems that collectors are silent.
func collectorsOf(needs []api.Need) (of []api.Need) {
	for _, n := range needs {
		if strings.HasPrefix(n.Subject, "collector ") {
			of = append(of, n)
		}
	}
	return of
}

// A collector that falls silent while somebody works is a problem after five minutes, until
// it sends again, another one tells of the work, or it leaves the page.
func TestACollectorThatFallsSilentAtWork(t *testing.T) {
	for name, tt := range map[string]struct {
		ends   func(*site)
		reason string
	}{
		"it sends again":      {func(s *site) { s.silent, s.computes = false, true }, mlattr.ProblemOver},
		"another one sends":   {func(s *site) { s.silent, s.computes, s.from.Collector = false, true, "gw-2" }, mlattr.ProblemOver},
		"it leaves the page":  {func(s *site) { s.live(12 * time.Hour) }, mlattr.ProblemNoEvidence},
		"the runs have ended": {nil, ""},
		"nobody worked":       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(true)
			s.idle, s.ended = name == "nobody worked" || tt.ends == nil, name == "the runs have ended"
			s.live(5 * time.Minute)
			died := s.now
			s.silent, s.computes = true, false
			s.live(5*time.Minute - 10*time.Second)
			assert.Empty(t, collectorsOf(s.State().Needs))
			s.live(10 * time.Second)
			needs := collectorsOf(s.State().Needs)
			if tt.ends == nil {
				assert.Empty(t, needs)
				assert.NotNil(t, s.State().Collectors[0].SilentSince, "it is silent all the same")
				return
			}
			require.Len(t, needs, 1)
			n := needs[0]
			assert.Equal(t, []any{mlattr.ProblemHostSilent, "page", "collector gw-1", died}, []any{n.Kind, n.Severity, n.Subject, n.Since})
			assert.Equal(t, []string{"no data since " + died.Format("15:04:05 UTC"), "2 runs worked then, and 6 GPUs were held"}, n.Evidence)
			assert.Len(t, n.GPUs, 6)
			assert.InDelta(t, 0.5, *n.GPUHours, 1e-9)
			assert.Empty(t, s.State().Resolved)

			tt.ends(s)
			for range 7 {
				s.live(10 * time.Second)
				assert.Empty(t, collectorsOf(s.State().Needs))
			}
			resolved := collectorsOf(s.State().Resolved)
			require.Len(t, resolved, 1)
			assert.Equal(t, tt.reason, resolved[0].EndReason)
			assert.Equal(t, died, resolved[0].Since)
			assert.False(t, resolved[0].Ended.Before(died.Add(5*time.Minute)))
		})
	}
}

// The problem of a collector that told of one run names the run, as long as no other
// collector hears from it.
func TestACollectorOfOneRunFallsSilent(t *testing.T) {
	f := newFleet()
	for range 10 {
		f.now = f.now.Add(10 * time.Second)
		f.stateOf("gw-1", "running")
		f.from("gw-1", series.LastStep, f.seconds(), "0")
		f.from("gw-1", series.RunLastData, f.seconds(), "")
	}
	f.now = f.now.Add(6 * time.Minute)
	state := f.state()
	require.Len(t, state.Needs, 1)
	n := state.Needs[0]
	assert.Equal(t, []string{"collector gw-1", "trainer", "r", state.Runs[0].Key}, []string{n.Subject, n.Service, n.RunID, n.Run})
	assert.Nil(t, n.GPUHours, "it held none")
	f.from("gw-2", series.RunLastData, f.seconds(), "")
	assert.Empty(t, f.state().Needs)
	require.Len(t, f.State().Resolved, 1)
	assert.Equal(t, "r", f.State().Resolved[0].RunID)
}

// What ml_metrics of a gateway says of its process is at the top of the page of a fleet, as
// long as it says so. The page of a single collector knows of its own process.
func TestACollectorThatRefusesData(t *testing.T) {
	for _, ofFleet := range []bool{true, false} {
		w := newWorld(input.Settings{Fleet: ofFleet})
		at := w.now.Add(-time.Minute)
		tell := func(collector, notice string, since time.Time, gone bool) {
			p := series.Point{Series: series.CollectorNotice, Update: series.Update{Value: float64(since.Unix()), Gone: gone, Time: w.now.UnixNano()}, From: fleet.Connection{Collector: collector}}
			p.Labels.Own[0] = notice
			w.ApplyPoints([]series.Point{p})
		}
		told := func() (rows []string) {
			for _, m := range w.state().Missing {
				if m.Since != nil {
					rows = append(rows, m.What+" "+m.Since.Format(time.TimeOnly))
				}
			}
			return rows
		}
		tell("gw-2", "refused", at, false)
		tell("gw-1", "refused", at.Add(time.Second), false)
		tell("gw-1", "dropped", at, false)
		tell("gw-1", "something else", at, false)
		first := " " + at.Format(time.TimeOnly)
		if !ofFleet {
			assert.Empty(t, told())
			continue
		}
		assert.Equal(t, []string{"Collectors that refuse data: gw-1, gw-2" + first, "Collectors that drop data for a back end: gw-1" + first}, told())
		tell("gw-2", "refused", at, true)
		w.now = w.now.Add(4 * time.Minute)
		tell("gw-1", "refused", at.Add(time.Second), false)
		w.now = w.now.Add(4 * time.Minute)
		assert.Equal(t, []string{"Collectors that refuse data: gw-1 " + at.Add(time.Second).Format(time.TimeOnly)}, told(), "it has not dropped since")
	}
}

// GPUs that are not read any more make room for others.
func TestGPUsWithoutDataMakeRoom(t *testing.T) {
	w := newWorld(input.Settings{MaxGPUs: 2})
	read := func(ids ...string) {
		for _, id := range ids {
			p := series.Point{Series: series.GPUPower, Update: series.Update{Value: 1, Time: w.now.UnixNano()}}
			p.Labels.Host, p.Labels.GPU = "h", id
			w.ApplyPoints([]series.Point{p})
		}
		w.now = w.now.Add(10 * time.Second)
	}
	shown := func() (ids []string) {
		for _, g := range w.state().GPUs {
			ids = append(ids, g.ID)
		}
		return ids
	}
	for range 10 {
		read("a", "b")
	}
	read("a", "b", "c")
	assert.Equal(t, []string{"a", "b"}, shown(), "both are read")
	for range 4 {
		read("b")
	}
	read("b", "c")
	assert.Equal(t, []string{"b", "c"}, shown())
}
