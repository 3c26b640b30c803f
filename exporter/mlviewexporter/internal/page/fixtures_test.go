package page

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/history"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Flags of TestServe.
var (
	endpoint = flag.String("endpoint", "", "the address at which TestServe listens")
	interval = flag.Duration("interval", 2*time.Second, "the time between two updates of the page")
	runs     = flag.Int("runs", 0, "the runs of a simulated fleet, if no file is named")
	gpus     = flag.Int("gpus", 0, "the GPUs of a simulated fleet, if no file is named")
	change   = flag.Bool("change", false, "change the fleet after each interval")
)

// TestServe serves the page over the data of a file, of several files one after the other,
// or of a simulated fleet, for the tests of the page in a browser and for readers. It prints
// its address in one line and ends on a signal.
//
//	go test ./internal/page -v -timeout 0 -run TestServe -endpoint 127.0.0.1:8899 -args testdata/incidents.json
//	go test ./internal/page -v -timeout 0 -run TestServe -endpoint 127.0.0.1:8899 -args -runs 500 -gpus 512
func TestServe(t *testing.T) {
	if *endpoint == "" {
		t.Log("it serves for others, at the endpoint that is named")
		return
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The States of all files are shown one after the other, with what else the first one has.
	source := NewFixture(FleetData(*runs, *gpus, 0))
	var states []*api.State
	for i, file := range flag.Args() {
		of, err := LoadFixture(file)
		require.NoError(t, err)
		if states = append(states, of.State()); i == 0 {
			source = of
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *endpoint)
	require.NoError(t, err)
	handler := NewHandler(source, Settings{Interval: *interval})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		for n := 1; *change || len(states) > 1; n++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(*interval):
			}
			if len(states) > 0 {
				source.Set(states[n%len(states)])
			} else {
				source.Set(FleetData(*runs, *gpus, n).State)
			}
		}
	}()
	context.AfterFunc(ctx, func() {
		handler.Close()
		_ = server.Close()
	})
	fmt.Printf("http://%s/\n", listener.Addr())
	require.ErrorIs(t, server.Serve(listener), http.ErrServerClosed)
}

// Fixture is a source of fixed data. Set changes its State. It implements Source.
type Fixture struct {
	FixtureData
	state atomic.Pointer[api.State]
}

// FixtureData is what a Fixture has, and the content of a fixture's file. Details,
// traces and reports are found by their run's key, id and fingerprint.
type FixtureData struct {
	State  *api.State                `json:"state"`
	Runs   map[string]*api.RunDetail `json:"runs,omitempty"`
	Traces map[string]*api.Trace     `json:"traces,omitempty"`
	// Spans are found by the ids of their trace and of themselves, with a slash between.
	Spans   map[string]*api.SpanDetail `json:"spans,omitempty"`
	History *api.History               `json:"history,omitempty"`
	Reports map[string]string          `json:"reports,omitempty"`
	// Comparisons are found by the key of their first run.
	Comparisons map[string]*api.Comparison `json:"comparisons,omitempty"`
}

// LoadFixture reads a file.
func LoadFixture(file string) (*Fixture, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d FixtureData
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if d.State == nil {
		return nil, fmt.Errorf("%s: no state", file)
	}
	return NewFixture(d), nil
}

// NewFixture returns a Fixture of the data.
func NewFixture(d FixtureData) *Fixture {
	s := &Fixture{FixtureData: d}
	s.Set(cmp.Or(d.State, &api.State{Version: api.SchemaVersion}))
	return s
}

// Set replaces the State.
func (s *Fixture) Set(state *api.State) { s.state.Store(state) }

// State returns the State.
func (s *Fixture) State() *api.State { return s.state.Load() }

// Run returns the details of a run. A run without any in the file has its row.
func (s *Fixture) Run(key string) (*api.RunDetail, bool) {
	if d, ok := s.Runs[key]; ok {
		return d, true
	}
	if run := mlattr.Find(s.State().Runs, func(r *api.Run) bool { return r.Key == key }); run != nil {
		return &api.RunDetail{Run: *run}, true
	}
	return nil, false
}

// Compare returns the comparison of a run, whatever the other run is. A run without any in
// the file has no good one.
func (s *Fixture) Compare(key, _ string) (*api.Comparison, bool) {
	if c, ok := s.Comparisons[key]; ok {
		return c, true
	}
	d, ok := s.Run(key)
	if !ok {
		return nil, false
	}
	c := &api.Comparison{Run: api.Profile{Run: d.Run}, Basis: "last_good", Why: "No earlier run of this service has ended without a problem since the page keeps runs."}
	api.MakeLists(c)
	return c, true
}

// Trace returns a trace.
func (s *Fixture) Trace(id string) (*api.Trace, bool) {
	t, ok := s.Traces[id]
	return t, ok
}

// Span returns what an opened span shows.
func (s *Fixture) Span(trace, span string) (*api.SpanDetail, bool) {
	d, ok := s.Spans[trace+"/"+span]
	return d, ok
}

// History returns what it has in its file, or an hour in which each problem began at its
// onset.
func (s *Fixture) History(short bool) *api.History {
	if s.FixtureData.History != nil {
		return s.FixtureData.History
	}
	step := time.Minute
	if short {
		step = 10 * time.Second
	}
	set, now := history.New(step), *s.State()
	for i := 59; i >= 0; i-- {
		then := now
		then.Time = now.Time.Add(-time.Duration(i) * step)
		then.GPUs = slices.Clone(now.GPUs)
		for _, need := range now.Needs {
			for g := range then.GPUs {
				if need.Since.After(then.Time) && slices.Contains(need.GPUs, then.GPUs[g].Key) {
					then.GPUs[g].Activity = "working"
				}
			}
		}
		set.Add(&then)
	}
	return set.Rows()
}

// Report returns a report.
func (s *Fixture) Report(fingerprint string) ([]byte, bool) {
	r, ok := s.Reports[fingerprint]
	return []byte(r), ok
}

const perHost = 8

// FleetData returns the data of a simulated fleet after n updates: runs of ten
// teams, each on its share of the GPUs, and gateways of which one is silent. Every
// 100th run looks hung, another every 100th is slow, every 10th has ended. An update
// changes every number.
func FleetData(runs, gpus, n int) FixtureData {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC).Add(time.Duration(n) * 2 * time.Second)
	s := &api.State{
		Version: api.SchemaVersion, Time: now,
		Collector: api.Collector{
			Version: "0.0.0", Started: now.Add(-12 * time.Hour), DataTime: &now, Interval: 2, Simulated: true,
			Hosts: (gpus + perHost - 1) / perHost, HostsReporting: (gpus + perHost - 1) / perHost,
			GPUs: make(map[string]int),
		},
	}
	for i := range runs {
		s.Runs = append(s.Runs, fleetRun(i, n, now))
	}
	for i := range gpus {
		s.GPUs = append(s.GPUs, fleetGPU(i, n, now, s.Runs))
	}
	for _, gpu := range s.GPUs {
		s.Collector.GPUs[gpu.Activity]++
	}
	for _, kind := range []string{mlattr.ProblemLooksHung, mlattr.ProblemSlow} {
		for i := range s.Runs {
			if run := &s.Runs[i]; slices.Contains(run.Needs, kind) {
				s.Needs = append(s.Needs, fleetNeed(run, len(s.Needs)+1, now))
			}
		}
	}
	s.Collectors = fleetCollectors((gpus+perGateway-1)/perGateway, now)
	return FixtureData{State: s}
}

// perGateway is the number of GPUs whose agents send to one gateway.
const perGateway = 128

// fleetCollectors returns the gateways, of which the last one has been silent for a
// while.
func fleetCollectors(n int, now time.Time) []api.SendingCollector {
	rows := make([]api.SendingCollector, 0, n)
	for i := n - 1; i >= 0; i-- {
		id := "gw-" + strconv.Itoa(i)
		row := api.SendingCollector{Key: id, ID: id, Address: "10.0.0." + strconv.Itoa(i%255), Version: "0.0.0", FirstSeen: now.Add(-time.Hour), LastSeen: now}
		if len(rows) == 0 {
			row.LastSeen = time.Date(2026, 11, 21, 7, 41, 2, 0, time.UTC)
			row.SilentSince = &row.LastSeen
		}
		rows = append(rows, row)
	}
	return rows
}

func fleetRun(i, n int, now time.Time) api.Run {
	since := now.Add(-time.Duration(i%300) * time.Minute)
	run := api.Run{
		Key: "run-" + strconv.Itoa(i), ID: fmt.Sprintf("%08x", i*2654435761%(1<<32)),
		Service: fmt.Sprintf("train-%02d", i%40), Job: strconv.Itoa(48000 + i),
		Owner: "user" + strconv.Itoa(i%30), Team: "team-" + strconv.Itoa(i%10),
		State: "running", StateSince: &since, FirstSeen: since, LastSeen: now,
		Steps: new(float64(1000*i + n)), StepTime: new(0.4 + float64(i%7)/10), StepTimeUsual: new(0.41 + float64(i%7)/10),
		TokenRate: new(88000 + float64(n%10)*100), TokenBasis: "counter", Goodput: new(0.93),
		GPUs: new(float64(1)), GPUUtilization: new(0.9 + float64(n%10)/100), Bound: "gpu",
		Ranks: 8, Attempts: new(float64(1)), LastStep: &now, LastCheckpoint: &since, Simulated: true,
	}
	switch {
	case i%100 == 7:
		run.State, run.Needs = "stalled", []string{mlattr.ProblemLooksHung}
	case i%100 == 13:
		run.Needs, run.StepTime = []string{mlattr.ProblemSlow}, new(2.1)
	case i%10 == 9:
		run.State = "ended"
	}
	return run
}

func fleetGPU(i, n int, now time.Time, runs []api.Run) api.GPU {
	gpu := api.GPU{
		Key: "gpu-" + strconv.Itoa(i), ID: "GPU-" + strconv.Itoa(i), Index: strconv.Itoa(i % perHost),
		Host: fmt.Sprintf("gpu-%03d", i/perHost), Name: "H100 80GB", Source: "replay", Simulated: true,
		Activity: "working", Utilization: new(0.9 + float64((n+i)%10)/100),
		MemoryUsed: new(float64(60 << 30)), MemoryLimit: new(float64(80 << 30)), MemoryUnattributed: new(float64(1 << 30)),
		Power: new(600 + float64((n+i)%50)), PowerLimit: new(float64(700)), Temperature: new(float64(61)), Health: "ok", LastSeen: now,
	}
	if len(runs) == 0 || i%64 == 63 {
		gpu.Activity, gpu.Utilization, gpu.MemoryUsed, gpu.MemoryUnattributed = "free", new(float64(0)), new(float64(0)), nil
		return gpu
	}
	run := &runs[i%len(runs)]
	run.GPUKeys, run.Hosts = append(run.GPUKeys, gpu.Key), append(run.Hosts, gpu.Host)
	gpu.Holders = []api.Holder{{
		Run: run.Key, RunID: run.ID, Service: run.Service, Rank: "0", Owner: run.Owner,
		Name: "slurm job " + run.Job, Join: "slurm_job", Memory: new(float64(59 << 30)),
	}}
	if len(run.Needs) > 0 {
		gpu.Activity = run.Needs[0]
	}
	return gpu
}

func fleetNeed(run *api.Run, urgency int, now time.Time) api.Need {
	need := api.Need{
		Key: run.Needs[0] + "/" + run.Key, Kind: run.Needs[0], Urgency: urgency, Since: *run.StateSince, Run: run.Key, RunID: run.ID,
		Service: run.Service, Job: run.Job, Owner: run.Owner, GPUs: run.GPUKeys, Subject: run.Service,
		GPUHours: new(now.Sub(*run.StateSince).Hours()), Next: "Read the stacks of the ranks that wait.",
	}
	kind, _ := mlattr.ProblemNamed(need.Kind)
	need.Severity = string(kind.Severity)
	if need.Kind == mlattr.ProblemSlow {
		need.Value, need.Usual, need.Unit = run.StepTime, run.StepTimeUsual, "s"
		need.Evidence, need.Next = []string{"data_load 0.2 → 1.4 s/step, all ranks"}, "Look at the input pipeline."
		return need
	}
	need.Evidence = []string{"step " + strconv.FormatFloat(*run.Steps, 'f', 0, 64), "rank 0: last span data_load"}
	need.Command = "py-spy dump --pid $(pgrep -f train.py)"
	return need
}
