package model_test

import (
	"fmt"
	"strconv"
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

// fleet is the page of a fleet, to which gateways send every 10 seconds.
type ofFleet struct{ *world }

func newFleet() ofFleet { return ofFleet{newWorld(input.Settings{Fleet: true})} }

// from adds a value that a collector has computed of a rank of the run "r".
func (f ofFleet) from(collector string, metric series.Series, value float64, rank string, own ...string) {
	p := series.Point{Series: metric, Update: series.Update{Value: value, Time: f.now.UnixNano()}, From: fleet.Connection{Collector: collector}}
	p.Labels.Service, p.Labels.Run, p.Labels.Rank = "trainer", "r", rank
	copy(p.Labels.Own[:], own)
	f.ApplyPoints([]series.Point{p})
}

// state adds the state of the run by a collector.
func (f ofFleet) stateOf(collector, state string) {
	for _, each := range []string{"running", "stalled", "failed", "silent", "ended", "unknown"} {
		value := 0.0
		if each == state {
			value = 1
		}
		f.from(collector, series.RunState, value, "", each)
	}
}

func (f ofFleet) seconds() float64 { return float64(f.now.Unix()) }

// TestARunThatIsHandedOver is computed by one gateway, then by another one, while the
// first still tells of a run that looks hung.
func TestARunThatIsHandedOver(t *testing.T) {
	f := newFleet()
	var stepped float64
	emit := func(collector string, steps float64, state string, goodput float64) {
		f.from(collector, series.Steps, steps, "0")
		f.from(collector, series.Tokens, 100*steps, "0", "", "", "train_step")
		f.from(collector, series.RunAttempts, 1, "0")
		f.from(collector, series.Loss, goodput, "0", "batch")
		f.from(collector, series.RunGoodput, goodput, "")
		f.from(collector, series.RunTimeRatio, goodput, "", "productive")
		f.stateOf(collector, state)
	}
	step := func(collector string) {
		stepped = f.seconds()
		f.from(collector, series.LastStep, stepped, "0")
	}
	for i := range 4 {
		f.now = f.now.Add(10 * time.Second)
		step("gw-1")
		emit("gw-1", float64(100*i), "running", 0.9)
	}
	for i := range 6 {
		f.now = f.now.Add(10 * time.Second)
		emit("gw-1", 300, "stalled", 0)
		f.from("gw-1", series.Problem, stepped, "", mlattr.ProblemLooksHung)
		step("gw-2")
		emit("gw-2", float64(100*i), "running", 0.8)
	}
	state := f.state()
	require.Len(t, state.Runs, 1, "a run is one, whoever sends it")
	run := state.Runs[0]
	assert.Equal(t, "running", run.State)
	assert.Empty(t, state.Needs, "it takes steps elsewhere")
	assert.InDelta(t, 300+500, *run.Steps, 0)
	assert.InDelta(t, 10, *run.StepRate, 0.1)
	assert.InDelta(t, 80_000, *run.Tokens, 0)
	assert.InDelta(t, 1, *run.Attempts, 0)
	assert.InDelta(t, 0.8, *run.Goodput, 0)
	assert.InDelta(t, 0.8, *run.Loss, 0)
	detail, ok := f.Run(run.Key)
	require.True(t, ok)
	assert.Equal(t, map[string]float64{"productive": 0.8}, detail.TimeRatio)
	require.Len(t, detail.Ranks, 1)
	assert.InDelta(t, 800, *detail.Ranks[0].Steps, 0)

	// It hangs where it is.
	for range 4 {
		f.now = f.now.Add(10 * time.Second)
		emit("gw-1", 300, "silent", 0)
		emit("gw-2", 500, "stalled", 0)
		f.from("gw-2", series.Problem, stepped, "", mlattr.ProblemLooksHung)
	}
	state = f.state()
	assert.Equal(t, "stalled", state.Runs[0].State)
	require.Len(t, state.Needs, 1)
	assert.Equal(t, time.Unix(int64(stepped), 0).UTC(), state.Needs[0].Since)

	// It comes back.
	ended := series.Point{Series: series.Problem, Update: series.Update{Gone: true}, From: fleet.Connection{Collector: "gw-1"}}
	ended.Labels.Service, ended.Labels.Run, ended.Labels.Own[0] = "trainer", "r", mlattr.ProblemLooksHung
	f.ApplyPoints([]series.Point{ended})
	for range 4 {
		f.now = f.now.Add(10 * time.Second)
		step("gw-1")
		emit("gw-1", 400, "running", 0.7)
		emit("gw-2", 500, "stalled", 0)
		f.from("gw-2", series.Problem, stepped, "", mlattr.ProblemLooksHung)
	}
	state = f.state()
	assert.Equal(t, "running", state.Runs[0].State)
	assert.Empty(t, state.Needs)
	assert.InDelta(t, 900, *state.Runs[0].Steps, 0)
}

// TestARunWithoutSteps is one of inference: what counts last is the newest evidence.
func TestARunWithoutSteps(t *testing.T) {
	f := newFleet()
	for i := range 8 {
		f.now = f.now.Add(10 * time.Second)
		f.from("gw-1", series.Requests, float64(min(i, 3)), "", "chat", "m")
		f.stateOf("gw-1", map[bool]string{true: "running", false: "silent"}[i < 3])
		if i > 3 {
			f.from("gw-2", series.Requests, float64(i), "", "chat", "m")
			f.stateOf("gw-2", "unknown")
		}
	}
	state := f.state()
	require.Len(t, state.Runs, 1)
	assert.Equal(t, "unknown", state.Runs[0].State)
	require.Len(t, state.Models, 1)
	assert.InDelta(t, 10, *state.Models[0].Requests, 0, "what each has counted")
}

// TestPartsOfARun has two gateways that each get some ranks of a run, and one rank
// that both get: neither is newer, and the numbers of all ranks count.
func TestPartsOfARun(t *testing.T) {
	f := newFleet()
	var states []string
	f.from("gw-1", series.LastStep, f.seconds(), "1")
	f.from("gw-1", series.Loss, 100, "1", "batch") // of a rank that has moved
	for i := range 8 {
		for j, collector := range []string{"gw-1", "gw-2"} {
			f.now = f.now.Add(5 * time.Second)
			f.from(collector, series.LastStep, f.seconds(), strconv.Itoa(j))
			f.from(collector, series.LastStep, f.seconds(), "2")
			f.from(collector, series.Steps, float64(10*i), strconv.Itoa(j))
			f.from(collector, series.Steps, float64(5*i), "2")
			f.from(collector, series.Loss, float64(1+j), strconv.Itoa(j), "batch")
			f.from(collector, series.RunGoodput, float64(1+j), "")
			f.stateOf(collector, "running")
		}
		states = append(states, fmt.Sprint(*f.state().Runs[0].Goodput))
	}
	run := f.State().Runs[0]
	assert.InDelta(t, 70, *run.Steps, 0)
	assert.InDelta(t, 1.0, *run.StepRate, 0.25)
	assert.InDelta(t, 1.5, *run.Loss, 0, "the mean of the ranks")
	assert.Equal(t, []string{"1", "1", "1", "1", "1", "1", "1", "1"}, states, "numbers of the whole run do not change from one gateway to the other")
}

// TestSeriesOfSeveralCollectors has what the collectors compute of the same service:
// a pool and a ratio of errors.
func TestSeriesOfSeveralCollectors(t *testing.T) {
	f := newFleet()
	send := func(collector string, metric series.Series, value float64, own ...string) {
		p := series.Point{Series: metric, Update: series.Update{Value: value, Time: f.now.UnixNano()}, From: fleet.Connection{Collector: collector}}
		p.Labels.Service = "serving"
		copy(p.Labels.Own[:], own)
		f.ApplyPoints([]series.Point{p})
	}
	send("gw-1", series.PoolBusy, 7, "pool", "one")
	send("gw-1", series.PoolBusy, 2, "pool", "two")
	f.now = f.now.Add(10 * time.Second)
	send("gw-1", series.PoolBusy, 7, "pool", "one")
	send("gw-2", series.PoolBusy, 3, "pool", "one")
	send("gw-2", series.WorkerCrashes, 1, "pool", "", "")
	send("gw-1", series.WorkerCrashes, 2, "pool", "", "")
	for collector, recent := range map[string]float64{"gw-1": 0.02, "gw-2": 0.2} {
		send(collector, series.Requests, 50, "chat", "m")
		send(collector, series.ErrorRatio, recent, "recent")
		send(collector, series.ErrorRatio, recent/2, "usual")
	}
	state := f.state()
	require.Len(t, state.Pools, 3)
	assert.InDelta(t, 3, *state.Pools[0+1].Busy, 0, "the newest")
	assert.InDelta(t, 2, *state.Pools[2].Busy, 0)
	assert.InDelta(t, 3, *state.Pools[0].Crashes, 0, "each counts its own")
	require.Len(t, state.Models, 1)
	assert.InDelta(t, 0.2, *state.Models[0].ErrorRatio, 0, "the worst")
	assert.InDelta(t, 0.1, *state.Models[0].ErrorRatioUsual, 0, "of the same collector")
}

// TestAGPUIsOne is sent by an agent through one gateway, then through another one.
func TestAGPUIsOne(t *testing.T) {
	f := newFleet()
	for i, gateway := range []string{"gw-1", "gw-2", "gw-1"} {
		p := series.Point{Series: series.GPUPower, Update: series.Update{Value: float64(100 + i), Time: f.now.UnixNano()}, From: fleet.Connection{Collector: gateway}}
		p.Labels.Host, p.Labels.GPU = "gpu-01", "GPU-1"
		f.ApplyPoints([]series.Point{p})
		f.now = f.now.Add(time.Second)
	}
	state := f.state()
	require.Len(t, state.GPUs, 1)
	assert.InDelta(t, 102, *state.GPUs[0].Power, 0)
	assert.Len(t, state.Collectors, 2)
}

// TestSilentCollectors has two gateways, of which one stops.
func TestSilentCollectors(t *testing.T) {
	f := newFleet()
	one, two := fleet.Connection{Collector: "gw-1", Address: "10.0.0.1", Version: "1.2.0"}, fleet.Connection{Address: "10.0.0.2"}
	for range 5 {
		f.now = f.now.Add(10 * time.Second)
		f.SeeConnection(&one)
		f.SeeConnection(&two)
	}
	stopped := f.now
	for range 2 {
		f.now = f.now.Add(10 * time.Second)
		f.SeeConnection(&one)
	}
	state := f.state()
	require.Len(t, state.Collectors, 2)
	assert.Equal(t, "1.2.0", state.Collectors[1].Version)
	assert.Nil(t, state.Collectors[0].SilentSince, "two intervals")
	f.now = f.now.Add(8 * time.Second)
	f.SeeConnection(&one)
	f.now = f.now.Add(5 * time.Second)
	state = f.state()
	assert.Equal(t, "10.0.0.2", state.Collectors[0].ID, "the silent one is first")
	assert.Equal(t, stopped.UTC(), *state.Collectors[0].SilentSince)
	assert.Nil(t, state.Collectors[1].SilentSince)
	assert.Equal(t, "collector", state.Missing[0].Kind)
	assert.Contains(t, state.Missing[0].What, "10.0.0.2")
	assert.Contains(t, state.Missing[0].Why, stopped.Format("15:04:05 UTC"))

	f.SeeConnection(&two)
	assert.Nil(t, f.state().Collectors[1].SilentSince, "it is back")
	f.now = f.now.Add(13 * time.Hour)
	f.SeeConnection(&one)
	state = f.state()
	assert.Len(t, state.Collectors, 1, "what is silent for long has left")
}

// TestTheConnectionOfANamedCollector has a collector whose series name it and whose
// other data does not.
func TestTheConnectionOfANamedCollector(t *testing.T) {
	f := newFleet()
	connection := fleet.Connection{Address: "10.0.0.1", Version: "1.2.0"}
	for i := range 12 {
		f.now = f.now.Add(10 * time.Second)
		f.SeeConnection(&connection)
		if i < 3 {
			p := series.Point{Series: series.Steps, Update: series.Update{Value: 1}, From: connection}
			p.From.Collector, p.Labels.Service, p.Labels.Run = "gw-1", "trainer", "r"
			f.ApplyPoints([]series.Point{p})
		}
	}
	state := f.state()
	require.Len(t, state.Collectors, 1)
	assert.Equal(t, api.SendingCollector{
		Key: state.Collectors[0].Key, ID: "gw-1", Address: "10.0.0.1", Version: "1.2.0",
		FirstSeen: state.Collectors[0].FirstSeen, LastSeen: f.now.Add(-2 * time.Second).UTC(),
	}, state.Collectors[0], "it is not silent: it has no run any more")
}

// TestInventedCollectors has a sender that names a new collector with each request.
func TestInventedCollectors(t *testing.T) {
	f := newFleet()
	for i := range 5000 {
		f.from(fmt.Sprint("invented-", i), series.Steps, 1, "")
	}
	state := f.state()
	assert.LessOrEqual(t, len(state.Collectors), 1025)
	assert.Positive(t, state.Collector.Hidden["collectors"])
	f.now = f.now.Add(2 * time.Minute)
	f.from("gw-1", series.Steps, 1, "")
	names := map[string]bool{}
	for _, one := range f.state().Collectors {
		names[one.ID] = true
	}
	assert.True(t, names["gw-1"], "a silent one makes room")
}

// TestOtherPagesKnowNoCollectors has clients that name collectors: that changes
// nothing.
func TestOtherPagesKnowNoCollectors(t *testing.T) {
	f := ofFleet{newWorld(input.Settings{})}
	f.SeeConnection(&fleet.Connection{Collector: "gw-1"})
	f.from("gw-1", series.Steps, 3, "0")
	f.from("gw-2", series.Steps, 4, "0")
	state := f.state()
	assert.Empty(t, state.Collectors)
	assert.InDelta(t, 4, *state.Runs[0].Steps, 0)
}

// TestGPUsOfARunOfAnotherCollector has a gateway that gets the spans of a run, and
// others that get the readings of its GPUs.
func TestGPUsOfARunOfAnotherCollector(t *testing.T) {
	f := newFleet()
	for range 3 {
		f.now = f.now.Add(10 * time.Second)
		f.from("gw-1", series.LastStep, 1_700_000_000, "0")
		f.stateOf("gw-1", "silent")
		f.from("gw-2", series.RunGPUs, 6, "")
		f.from("gw-2", series.RunGPUUtilization, 1, "")
		f.from("gw-3", series.RunGPUs, 2, "")
		f.from("gw-3", series.RunGPUUtilization, 0.6, "")
	}
	run := f.state().Runs[0]
	assert.InDelta(t, 8, *run.GPUs, 0)
	assert.InDelta(t, 0.9, *run.GPUUtilization, 1e-9)
	assert.Equal(t, "stalled", run.State, "it holds GPUs")
}

// A problem that a collector has reported, which is silent since, is over when another
// one says so.
func TestAProblemOfASilentCollector(t *testing.T) {
	f := newFleet()
	report := func(collector string) { f.from(collector, series.Problem, f.seconds(), "", mlattr.ProblemFailing) }
	f.from("gw-1", series.Steps, 1, "0")
	report("gw-1")
	require.Len(t, f.state().Needs, 1)
	f.now = f.now.Add(10 * time.Minute)
	needs := f.state().Needs
	require.Len(t, needs, 1)
	assert.NotNil(t, needs[0].NoEvidenceSince, "it is silent")
	report("gw-2")
	needs = f.state().Needs
	require.Len(t, needs, 1)
	assert.Nil(t, needs[0].NoEvidenceSince)
	end := series.Point{Series: series.Problem, Update: series.Update{Gone: true}, From: fleet.Connection{Collector: "gw-2"}}
	end.Labels.Service, end.Labels.Run, end.Labels.Own[0] = "trainer", "r", mlattr.ProblemFailing
	f.ApplyPoints([]series.Point{end})
	f.ApplyEvents([]input.Event{{Problem: &input.Record{ID: "1", Kind: mlattr.ProblemFailing, Subject: input.Subject{Service: "trainer", Run: "r"}, Onset: f.now, Ended: f.now}}})
	assert.Empty(t, f.state().Needs)
	assert.Len(t, f.State().Resolved, 1)
}

// TestRecordsOfAFleet has records of two gateways about the same run.
func TestRecordsOfAFleet(t *testing.T) {
	f := newFleet()
	record := func(id string, ended bool, evidence string) {
		r := input.Record{
			ID: id, Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Service: "trainer", Run: "r"}, Onset: f.now,
			Evidence: []string{evidence}, Advice: input.Advice{Next: "Look at rank 3."},
		}
		if ended {
			r.Ended = f.now
		}
		f.ApplyEvents([]input.Event{{Problem: &r}})
	}
	change := func(after time.Duration) {
		f.ApplyEvents([]input.Event{{Change: &api.Change{Time: f.now.Add(after), Kind: "version", Service: "trainer", From: "1", To: "2", Text: "version 2 (was 1)"}}})
	}
	f.from("gw-2", series.LastStep, f.seconds(), "0")
	f.from("gw-2", series.Problem, f.seconds(), "", mlattr.ProblemLooksHung)
	record("gw-1's", false, "rank 0 waits")
	record("gw-2's", false, "rank 3 waits")
	f.ApplyEvents([]input.Event{{Problem: &input.Record{
		ID: "gw-1's", Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Service: "trainer", Run: "r"}, Onset: f.now, Evidence: []string{"rank 0 waits on"}, Updated: true,
	}}})
	record("gw-1's", true, "")
	change(-2 * time.Hour)
	change(-time.Minute)
	change(-40 * time.Second)
	state := f.state()
	require.Len(t, state.Needs, 1)
	assert.Equal(t, []string{"rank 3 waits"}, state.Needs[0].Evidence, "the spans are there, and not here")
	assert.NotEmpty(t, state.Needs[0].Command)
	assert.Equal(t, "Look at rank 3.", state.Needs[0].Next)
	assert.Len(t, state.Changes, 2, "both gateways have seen the last one")
	record("gw-2's", true, "")
	assert.NotContains(t, f.state().Needs[0].Evidence, "rank 3 waits")
}

// TestSilentHosts has agents behind a gateway: one stops reading its GPUs, while the
// gateway repeats what it has computed of the run there.
func TestSilentHosts(t *testing.T) {
	f := newFleet()
	reading := func(host string) series.Point {
		p := series.Point{Series: series.GPUPower, Update: series.Update{Value: 100, Time: f.now.UnixNano(), Origin: uint64(len(host))}, From: fleet.Connection{Collector: "gw-1"}}
		p.Labels.Host, p.Labels.GPU = host, "GPU-1"
		return p
	}
	step := func(host string) series.Point {
		p := series.Point{Series: series.Steps, Update: series.Update{Value: 3, Time: f.now.UnixNano(), Origin: uint64(100 + len(host))}, From: fleet.Connection{Collector: "gw-1"}}
		p.Labels.Service, p.Labels.Run, p.Labels.Host = "trainer", "r", host
		return p
	}
	points := []series.Point{reading("gpu-1"), reading("gpu-22"), step("gpu-1"), step("gpu-22")}
	f.ApplyPoints(points)
	stopped := f.now
	for range 8 {
		f.now = f.now.Add(10 * time.Second)
		for _, i := range []int{0, 2, 3} {
			require.Empty(t, f.ApplyUpdates([]series.Update{{Origin: points[i].Origin, Value: points[i].Value, Time: f.now.UnixNano()}}, nil))
		}
	}
	state := f.state()
	assert.Equal(t, 2, state.Collector.Hosts)
	assert.Equal(t, 1, state.Collector.HostsReporting)
	require.NotEmpty(t, state.Missing)
	assert.Equal(t, "host", state.Missing[0].Kind)
	assert.Equal(t, "GPUs of gpu-22", state.Missing[0].What)
	assert.Contains(t, state.Missing[0].Why, stopped.Format("15:04:05 UTC"))
}

// TestManySilentCollectors has a switch that fails: not every row is of it.
func TestManySilentCollectors(t *testing.T) {
	f := newFleet()
	for i := range 100 {
		f.SeeConnection(&fleet.Connection{Collector: fmt.Sprint("gw-", i)})
	}
	f.now = f.now.Add(time.Hour)
	rows := 0
	for _, one := range f.state().Missing {
		if one.Kind == "collector" {
			rows++
			if rows == 17 {
				assert.EqualValues(t, 84, one.Count)
			}
		}
	}
	assert.Equal(t, 17, rows)
}
