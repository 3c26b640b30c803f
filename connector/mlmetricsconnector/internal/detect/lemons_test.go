package detect_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// fleet has hosts on which the runs of several people train, two ranks on each.
type fleet struct {
	random  *rand.Rand
	lemons  *detect.Lemons
	detect  detect.Detector
	now     time.Time
	running []*trained
	started int
	// hosts are all, in order; packs reports whether runs get the first ones that are free.
	hosts []string
	packs bool
	// bad is how likely a run has trouble on a host, by host, beyond that which all have.
	bad    map[string]float64
	failed map[gpus.Key]gpus.GPU
	// silent are hosts that send nothing any more, which tells nothing if it is withheld.
	silent   map[string]*gpus.SilentHost
	withheld bool
	// found are the lemons at the last emission, by host, that of a version by its kind.
	found map[string]problem.Problem
	// history has the versions, pace is how long a step of a run takes, nil if it is not known.
	history *change.History
	pace    func(*trained) float64
}

// trained is a run that trains, until it ends with what is planned.
type trained struct {
	*runs.Run
	who   string
	until time.Time
	ends  func()
}

func newFleet(seed uint64, hosts int) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(seed, 1)), now: start, packs: seed%2 == 0, bad: map[string]float64{}, history: change.NewHistory()} // #nosec G404 -- a test
	for n := range hosts {
		f.hosts = append(f.hosts, fmt.Sprintf("n%02d", n))
	}
	f.keep(new(detect.Lemons))
	return f
}

// keep has the detectors forget all but lemons.
func (f *fleet) keep(lemons *detect.Lemons) { f.lemons, f.detect = lemons, detect.New() }

// begin starts a run of somebody on hosts.
func (f *fleet) begin(who string, hosts []string, lasts time.Duration) *trained {
	f.started++
	r := &trained{who: who, until: f.now.Add(lasts), Run: &runs.Run{
		Key:   streams.RunKey{Resource: streams.Resource{Service: "train-" + who}, ID: "run-" + strconv.Itoa(f.started)},
		State: runs.Running, Since: f.now, Seen: f.now,
	}}
	for i, host := range hosts {
		for n := range 2 {
			rank := &runs.Rank{Name: strconv.Itoa(2*i + n), Host: host, State: runs.Running, Since: f.now}
			r.Ranks = append(r.Ranks, rank)
			r.GPUs.All = append(r.GPUs.All, &gpus.State{Key: gpus.Key{Host: host, ID: "GPU-" + host + strconv.Itoa(n)}, Owner: gpus.Owner{Service: "train-" + who, UserID: who, Rank: rank.Name}})
		}
	}
	if f.pace != nil {
		r.Steps.Times.Usual = f.pace(r)
	}
	f.running = append(f.running, r)
	return r
}

// throttles has heat lower the clocks of a rank's GPU, and the steps take longer.
func (r *trained) throttles(rank int) {
	r.Steps.Longer, r.GPUs.All[rank].ThrottledSince, r.GPUs.All[rank].Throttled = r.Since, r.Since, []string{"hw_slowdown"}
}

// fails ends the run with an error of a rank at the end.
func (r *trained) fails(rank int) {
	r.ends = func() {
		for i := range r.Ranks {
			r.Ranks[i].State = runs.Ended
		}
		r.State, r.Ranks[rank].State = runs.Failed, runs.Failed
		r.Ranks[rank].Failure = runs.Failure{Class: "RuntimeError", At: r.until}
	}
}

// moves has a restart leave the host of a rank for another one.
func (r *trained) moves(rank int, to string) {
	from := r.Ranks[rank].Host
	for i := range r.Ranks {
		if r.Ranks[i].Host == from {
			moved := *r.Ranks[i]
			moved.Moved = true
			r.Ranks[i].Host = to
			r.Ranks = append(r.Ranks, &moved)
		}
	}
}

// breaks has the driver report a GPU of a host as failed until the run ends.
func (f *fleet) breaks(r *trained, host string) {
	key := gpus.Key{Host: host, ID: "GPU-" + host + "0"}
	f.failed[key] = gpus.GPU{Read: f.now, Failure: &gpus.Failure{
		Since: f.now, Seen: f.now, Held: []gpus.Holding{{Run: r.Key.ID, Owner: gpus.Owner{Service: "train-" + r.who, UserID: r.who}}},
	}}
}

// emit has the detectors see the runs, and returns the lemons by host.
func (f *fleet) emit() {
	s := &detect.State{
		Now: f.now, Limits: runs.Timeouts{Stall: 5 * time.Minute}, Services: serving.NewFleet(), Owners: new(runs.Owners),
		GPUs:   &gpus.Facts{Hosts: map[string]gpus.Host{}, GPUs: map[gpus.Key]gpus.GPU{}},
		Lemons: f.lemons, Withheld: f.withheld, History: f.history,
	}
	for _, host := range f.hosts {
		if s.GPUs.Hosts[host] = (gpus.Host{Heard: f.now, Read: true}); f.silent[host] != nil {
			s.GPUs.Hosts[host] = gpus.Host{Heard: f.silent[host].Since, Silent: f.silent[host]}
		}
		s.GPUs.GPUs[gpus.Key{Host: host, ID: "GPU-" + host + "0"}] = gpus.GPU{Read: f.now}
	}
	maps.Copy(s.GPUs.GPUs, f.failed)
	for _, r := range f.running {
		r.Seen, r.Members.All = f.now, make([]ranks.Rank, len(r.Ranks))
		s.Runs = append(s.Runs, r.Run)
	}
	f.found = map[string]problem.Problem{}
	f.detect(s, func(p problem.Problem) {
		switch p.Kind {
		case mlattr.ProblemLemonHost:
			f.found[p.Subject.Host] = p
		case mlattr.ProblemLemonVersion:
			f.found[p.Kind] = p
		}
	})
}

// hour has an hour pass.
func (f *fleet) hour() {
	f.now = f.now.Add(time.Hour)
	f.failed = map[gpus.Key]gpus.GPU{}
	for _, r := range f.running {
		if !r.until.After(f.now) && r.ends != nil {
			r.ends()
		}
	}
	f.emit()
	f.running = slices.DeleteFunc(f.running, func(r *trained) bool { return !r.until.After(f.now) })
}

// free are the hosts without a run.
func (f *fleet) free() []string {
	taken := map[string]bool{}
	for _, r := range f.running {
		for i := range r.Ranks {
			taken[r.Ranks[i].Host] = taken[r.Ranks[i].Host] || !r.Ranks[i].Moved
		}
	}
	return slices.DeleteFunc(slices.Clone(f.hosts), func(host string) bool { return taken[host] })
}

// live has people train for days: most runs are short and on one host or few. One of the
// people has programs that fail often, and most errors are those of rank 0.
func (f *fleet) live(days int) { f.hours(24 * days) }

func (f *fleet) hours(hours int) {
	for range hours {
		for free := f.free(); len(free) > 8 && f.random.Float64() < 0.7; free = f.free() {
			if !f.packs {
				f.random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
			}
			who := f.random.IntN(6)
			r := f.begin("u"+strconv.Itoa(who), free[:1<<f.random.IntN(4)], time.Duration(1+f.random.ExpFloat64()*12)*time.Hour)
			f.trouble(r, who == 0)
		}
		f.hour()
	}
}

// trouble plans what happens to a run.
func (f *fleet) trouble(r *trained, fragile bool) {
	ranks := len(r.Ranks)
	fails := 0.05
	if fragile {
		fails = 0.4
	}
	switch chance, at := f.random.Float64(), f.random.IntN(ranks); {
	case chance < fails:
		r.fails(at)
	case chance < fails+0.1:
		r.fails(0)
	case chance < fails+0.13:
		r.throttles(at)
	case chance < fails+0.14:
		f.failed = map[gpus.Key]gpus.GPU{}
		f.breaks(r, r.Ranks[at].Host)
		f.emit()
	case chance < fails+0.16 && ranks >= 8:
		if free := f.free(); len(free) > 0 {
			r.moves(at, free[0])
		}
	}
	for i := range ranks {
		if host := r.Ranks[i].Host; i%2 == 0 && f.random.Float64() < f.bad[host] {
			if f.random.IntN(3) == 0 {
				r.fails(i + 1)
			} else {
				r.throttles(i + 1)
			}
		}
	}
}

// No host of 30 fleets is a lemon, with programs that fail, hosts that have more runs than
// others, and those on which rank 0 always is.
func TestHealthyFleetsHaveNoLemons(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			f := newFleet(seed, 32)
			for day := range 20 {
				f.live(1)
				require.Empty(t, f.found, "day %d", day)
			}
		})
	}
}

// A host that is the cause of trouble in about half of its runs is found among 32.
func TestALemon(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			f := newFleet(seed, 32)
			f.bad["n07"] = 0.6
			f.live(20)
			require.Equal(t, []string{"n07"}, slices.Sorted(maps.Keys(f.found)))
			evidence := strings.Join(f.found["n07"].Evidence, "; ")
			assert.Regexp(t, `^the cause in \d+ of \d+ runs, of \d people or programs, 20\d\d-\d\d-\d\d to 20\d\d-\d\d-\d\d: .*throttled \d+`, evidence)
			assert.Regexp(t, `days of runs on 3[01] other hosts`, evidence)
			assert.Contains(t, f.found["n07"].Next, "scontrol update nodename=n07 state=drain reason=")
		})
	}
}

// eight are the names of hosts.
func eight() *fleet { return newFleet(1, 8) }

// together has somebody train on hosts for hours, each time that plant plans something.
func (f *fleet) together(who string, hosts []string, times int, plant func(*trained)) {
	for range times {
		r := f.begin(who, hosts, 3*time.Hour)
		f.hour()
		plant(r)
		for range 4 {
			f.hour()
		}
		f.silent = nil
	}
}

func nothing(*trained) {}

// others has so many other runs go well.
func (f *fleet) others(runs int) {
	for n := range runs {
		f.together("u"+strconv.Itoa(n%4), f.hosts, 1, nothing)
	}
}

// alsoFails makes rank 5 of a run fail, and then rank 7 of another host, by a class.
func alsoFails(class string) func(*fleet) func(*trained) {
	return func(*fleet) func(*trained) {
		return func(r *trained) {
			r.fails(5)
			failed := r.ends
			r.ends = func() {
				failed()
				r.Ranks[7].State, r.Ranks[7].Failure = runs.Failed, runs.Failure{Class: class, At: r.until.Add(time.Second)}
			}
		}
	}
}

// What makes a host a lemon in three runs of two people, or does not.
func TestCausesOfLemons(t *testing.T) {
	goesSilent := func(f *fleet) func(*trained) {
		return func(r *trained) {
			by := gpus.Holding{Run: r.Key.ID, Owner: gpus.Owner{Service: "train-" + r.who, UserID: r.who}}
			f.silent = map[string]*gpus.SilentHost{"n02": {Since: f.now, Noticed: f.now, Workloads: []gpus.HeldBy{{Holding: by, GPU: gpus.Key{Host: "n02", ID: "GPU-n021"}, Worked: f.now}}}}
		}
	}
	for name, tt := range map[string]struct {
		plant func(f *fleet) func(*trained)
		lemon bool
		says  string
	}{
		"throttled":          {func(*fleet) func(*trained) { return func(r *trained) { r.throttles(5) } }, true, "throttled 3; runs: train-u0/run-41, train-u0/run-42, train-u1/run-43; GPU GPU-n021 in all 3"},
		"a rank fails alone": {func(*fleet) func(*trained) { return func(r *trained) { r.fails(5) } }, true, "run failed 3"},
		"rank 0 fails alone": {func(*fleet) func(*trained) {
			return func(r *trained) {
				r.Ranks[0].Name, r.Ranks[5].Name = "5", "0"
				r.fails(5)
			}
		}, false, ""},
		"another host fails too": {alsoFails("RuntimeError"), false, ""},
		"another host follows":   {alsoFails("SIGTERM"), true, "run failed 3"},
		"a GPU fails": {func(f *fleet) func(*trained) {
			return func(r *trained) {
				f.breaks(r, "n02")
				f.emit()
			}
		}, true, "GPU failed 3; runs: train-u0/run-41, train-u0/run-42, train-u1/run-43; GPU GPU-n020 in all 3"},
		"a restart leaves it": {func(*fleet) func(*trained) { return func(r *trained) { r.moves(5, "n07") } }, true, "left by a restart 3"},
		"a restart leaves several": {func(*fleet) func(*trained) {
			return func(r *trained) {
				r.moves(5, "n07")
				r.moves(3, "n06")
			}
		}, false, ""},
		"it goes silent": {func(f *fleet) func(*trained) { return goesSilent(f) }, true, "host silent 3"},
		"it goes silent while the collector refuses data": {func(f *fleet) func(*trained) {
			f.withheld = true
			return goesSilent(f)
		}, false, ""},
		"nothing": {func(*fleet) func(*trained) { return nothing }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := eight()
			f.others(40)
			plant := tt.plant(f)
			if !tt.lemon {
				f.together("u2", f.hosts[:4], 9, plant)
			}
			f.together("u0", f.hosts[:4], 2, plant)
			f.together("u1", f.hosts[:4], 1, plant)
			require.Equal(t, tt.lemon, len(f.found) == 1, f.found)
			if !tt.lemon {
				data, err := json.Marshal(f.lemons)
				require.NoError(t, err)
				assert.NotRegexp(t, `"Kind":"[^"]`, string(data))
			}
			if tt.lemon {
				p := f.found["n02"]
				assert.Contains(t, strings.Join(p.Evidence, "; "), tt.says)
				assert.InDelta(t, 3, p.Value, 0)
				assert.Less(t, p.Usual, 0.2)
			}
		})
	}
}

// Two runs are too few, however many hosts have no trouble.
func TestTwoRunsMakeNoLemon(t *testing.T) {
	f := newFleet(1, 600)
	f.together("u1", f.hosts, 1, nothing)
	for n := range 2 {
		f.together("u"+strconv.Itoa(n), f.hosts, 1, func(r *trained) { r.throttles(5) })
	}
	assert.Empty(t, f.found)
	f.together("u1", f.hosts, 1, func(r *trained) { r.throttles(5) })
	assert.Len(t, f.found, 1)
}

// What only one person has trouble with is no lemon, on however few hosts.
func TestATroubleOfOnePerson(t *testing.T) {
	f := eight()
	f.others(40)
	f.together("u0", f.hosts[:4], 9, func(r *trained) { r.fails(5) })
	assert.Empty(t, f.found, "one person only")

	f = eight()
	f.others(140)
	for n := range 12 {
		f.together("u9", f.hosts[:2], 1, func(r *trained) { r.fails(1 + n%3) })
	}
	f.together("u0", f.hosts[:2], 1, func(r *trained) { r.fails(3) })
	assert.Empty(t, f.found, "u9 has as much trouble on another host")
}

// Lemons outlive a restart, are stale and then none any more without new evidence, and are
// forgotten after four weeks.
func TestLemonsAreKept(t *testing.T) {
	f := eight()
	f.others(40)
	f.together("u0", f.hosts[:4], 2, func(r *trained) { r.throttles(5) })
	data, err := json.Marshal(f.lemons)
	require.NoError(t, err)
	kept := new(detect.Lemons)
	require.NoError(t, json.Unmarshal(data, kept))
	f.keep(kept)
	f.together("u1", f.hosts[:4], 1, func(r *trained) { r.throttles(5) })
	require.Contains(t, f.found, "n02")
	again, err := json.Marshal(f.lemons)
	require.NoError(t, err)
	assert.NotEqual(t, data, again)
	evident := f.found["n02"].Evident
	assert.WithinDuration(t, f.now, evident, 4*time.Hour)
	f.now = f.now.Add(10 * 24 * time.Hour)
	f.emit()
	assert.Equal(t, evident, f.found["n02"].Evident, "nothing new")
	f.now = f.now.Add(20 * 24 * time.Hour)
	f.emit()
	assert.Empty(t, f.found)
	data, err = json.Marshal(f.lemons)
	require.NoError(t, err)
	assert.Equal(t, "{}", string(data))
	assert.Error(t, json.Unmarshal([]byte(`{"n02": 1}`), f.lemons))
}

// A name that a shell would read otherwise is in no command.
func TestACommandHasOnlyNames(t *testing.T) {
	for name, safe := range map[string]bool{"n02.example-1.org": true, "n02;reboot": false, "-n02": false, "n02 x": false, "n`02`": false} {
		f := eight()
		f.others(40)
		f.hosts[2] = name
		f.together("u0", f.hosts[:4], 4, func(r *trained) { r.throttles(5) })
		f.together("u1", f.hosts[:4], 1, func(r *trained) { r.throttles(5) })
		require.Contains(t, f.found, name)
		next := f.found[name].Next
		assert.Equal(t, safe, strings.Contains(next, "scontrol update nodename="+name+" state=drain") && strings.Contains(next, "kubectl cordon "+name+","), next)
		assert.Equal(t, safe, strings.Contains(next, name), next)
	}
}

// Of a run on one host nobody knows whether the host or the program has failed.
func TestARunOnOneHost(t *testing.T) {
	f := eight()
	f.others(40)
	for n := range 6 {
		f.together("u"+strconv.Itoa(n), f.hosts[2:3], 1, func(r *trained) { r.fails(1) })
	}
	assert.Empty(t, f.found)
}

// Names that only clients state do not count where GPUs are read.
func TestInventedHosts(t *testing.T) {
	f := eight()
	for n := range 50 {
		f.together("u"+strconv.Itoa(n%3), []string{"invented-" + strconv.Itoa(n)}, 1, nothing)
	}
	data, err := json.Marshal(f.lemons)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "invented")
}
