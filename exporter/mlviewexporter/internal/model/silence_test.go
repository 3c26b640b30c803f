package model_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// site has four hosts with two GPUs each: the run "works" on the first two, "hangs" on the
// third one, and nobody on the fourth one.
type site struct {
	*world
	from model.Connection
	// silent reports whether the hosts and their clients send nothing, computes whether
	// ml_metrics goes on.
	silent, computes bool
	// heard is when the run "works" and the hosts have last sent anything.
	heard time.Time
}

func newSite(fleet bool) *site {
	s := &site{world: newWorld(model.Settings{Fleet: fleet, Owners: map[string]string{"1001": "ada"}}), computes: true}
	if fleet {
		s.from = model.Connection{Collector: "gw-1"}
	}
	return s
}

func (s *site) add(series model.Series, value float64, of model.Labels, own ...string) {
	copy(of.Own[:], own)
	s.ApplyPoints([]model.Point{{Series: series, Value: value, Labels: of, Time: s.now.UnixNano(), From: s.from}})
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
		of := model.Labels{Host: fmt.Sprint("h", n/2), GPU: fmt.Sprint("GPU-", n)}
		use := 0.0
		if run != "" {
			use = 0.9
			held := of
			held.Run = run
			s.add(model.GPUWorkload, 1<<30, held, "", "", "", "", "1001", "", "trainer")
		}
		s.add(model.GPUUtilization, use, of, "general")
		if run == "works" && !s.settings().Fleet {
			s.span(func(in *model.SpanInput) { in.Source = &model.Source{Service: "trainer", Run: run, Host: of.Host} })
		}
	}
}

func (s *site) settings() model.Settings { return model.Settings{Fleet: s.from.Collector != ""} }

func (s *site) emit() {
	unix := func(at time.Time) float64 { return float64(at.Unix()) }
	for run, state := range map[string]string{"works": "running", "hangs": "stalled"} {
		of := model.Labels{Service: "trainer", Run: run}
		s.add(model.RunState, 1, of, state)
		// It goes on counting, as the time of a run does.
		of.Host = "h0"
		s.add(model.Steps, unix(s.now), of)
	}
	s.add(model.RunLastData, unix(s.heard), model.Labels{Service: "trainer", Run: "works"})
	s.add(model.RunLastData, unix(s.heard.Add(-time.Hour)), model.Labels{Service: "trainer", Run: "hangs"})
	for n := range 4 {
		s.add(model.HostLastData, unix(s.heard), model.Labels{Host: fmt.Sprint("h", n)})
		s.add(model.GPUIdle, 0, model.Labels{Host: fmt.Sprint("h", n), GPU: fmt.Sprint("GPU-", 2*n)})
	}
	s.add(model.Problem, unix(s.heard.Add(-time.Hour)), model.Labels{Service: "trainer", Run: "hangs"}, model.LooksHung)
	if s.silent {
		s.add(model.Problem, unix(s.heard), model.Labels{Service: "trainer", Run: "works", Host: "h1"}, model.HostSilent)
	}
}

// A cluster that dies is neither well nor free, whatever is computed of it.
func TestADeadCluster(t *testing.T) {
	for name, tt := range map[string]struct{ fleet, computes bool }{
		"one collector": {false, true}, "a fleet": {true, true}, "a fleet whose gateway dies, too": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(tt.fleet)
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
				kinds := map[string]string{}
				for _, n := range state.Needs {
					kinds[n.Kind] = n.Subject + " " + n.Owner
				}
				assert.Equal(t, map[string]string{"looks_hung": "trainer ada", "host_silent": "h1: GPU GPU-2, GPU-3 ada"}, kinds, after)
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
	s.add(model.Problem, float64(s.now.Add(-time.Minute).Unix()), model.Labels{Service: "trainer", Run: "works", Host: "h1"}, model.HostSilent)
	s.from.Collector = "gw-2"
	s.live(time.Minute)
	for _, n := range s.State().Needs {
		assert.NotEqual(t, model.HostSilent, n.Kind)
	}
}

// GPUs that are not read any more make room for others.
func TestGPUsWithoutDataMakeRoom(t *testing.T) {
	w := newWorld(model.Settings{MaxGPUs: 2})
	read := func(ids ...string) {
		for _, id := range ids {
			p := model.Point{Series: model.GPUPower, Value: 1, Time: w.now.UnixNano()}
			p.Labels.Host, p.Labels.GPU = "h", id
			w.ApplyPoints([]model.Point{p})
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
