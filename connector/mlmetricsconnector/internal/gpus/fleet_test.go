package gpus_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
)

var (
	a = gpus.Key{Host: "n1", ID: "GPU-a"}
	b = gpus.Key{Host: "n1", ID: "GPU-b"}

	r1 = gpus.Run{ID: "r1", Service: "trainer"}
	r2 = gpus.Run{ID: "r2", Service: "trainer"}
)

// site is a fleet with a clock, and what was known of it when it was settled last.
type site struct {
	*gpus.Fleet
	*gpus.Facts
	services map[string][]string
	now      time.Time
}

func newSite() *site {
	return &site{Fleet: gpus.NewFleet(), now: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}
}

// reading is a reading now, with the host's clock an hour behind.
func (s *site) reading() gpus.Reading { return gpus.Reading{At: s.now.Add(-time.Hour), Now: s.now} }

func (s *site) hold(key gpus.Key, run string) {
	s.Hold(key, gpus.Workload{Run: run}, true, gpus.Owner{Service: "trainer"}, s.reading())
}

// after moves the clock, reads and settles.
func (s *site) after(d time.Duration, read func()) {
	s.now = s.now.Add(d)
	read()
	s.Facts = s.Fleet.Facts(s.services, new(gpus.Hosts), s.now)
}

// uses are those of the runs that hold GPUs.
func (s *site) uses() map[gpus.Run]*gpus.Use {
	uses := make(map[gpus.Run]*gpus.Use)
	for run, of := range s.Runs {
		if of.Use != nil {
			uses[run] = of.Use
		}
	}
	return uses
}

// failed are the GPUs that have.
func (s *site) failed() map[gpus.Key]gpus.Failure {
	failed := make(map[gpus.Key]gpus.Failure)
	for key, g := range s.GPUs {
		if g.Failure != nil {
			failed[key] = *g.Failure
		}
	}
	return failed
}

// silent are the hosts that are.
func (s *site) silent() map[string]gpus.SilentHost {
	silent := make(map[string]gpus.SilentHost)
	for name, host := range s.Hosts {
		if host.Silent != nil {
			silent[name] = *host.Silent
		}
	}
	return silent
}

// A GPU that several workloads hold is divided; the utilization is that of the
// SMs where it is known.
func TestRuns(t *testing.T) {
	s := newSite()
	s.after(0, func() {
		s.hold(a, "r1")
		s.hold(a, "r1") // another rank
		s.hold(b, "r1")
		s.Hold(b, gpus.Workload{Other: 7}, true, gpus.Owner{}, s.reading())
		s.hold(gpus.Key{Host: "n2", ID: "GPU-a"}, "r2")
		s.Set(a, gpupoint.SMUtilization, 0.4, s.reading())
		s.Set(a, gpupoint.Utilization, 0.9, s.reading())
		s.Set(b, gpupoint.Utilization, 0.8, s.reading())
	})
	runs := s.uses()
	assert.Len(t, runs, 2)
	assert.InDelta(t, 1.5, runs[r1].GPUs, 1e-9)
	assert.InDelta(t, 0.6, runs[r1].Mean(), 1e-9)
	assert.InDelta(t, 1, runs[r2].GPUs, 0)
	assert.True(t, math.IsNaN(runs[r2].Mean()))
	assert.True(t, math.IsNaN(runs[r2].Price))

	s.after(15*time.Second, func() {
		s.hold(b, "r1")
		s.Set(a, gpupoint.Utilization, 0.9, s.reading())
		s.Set(b, gpupoint.Utilization, 0.8, s.reading())
	})
	runs = s.uses()
	assert.InDelta(t, 1, runs[r1].GPUs, 1e-9, "the newest reading has it on one GPU, alone")
	s.after(6*time.Minute, func() {})
	assert.Empty(t, s.uses(), "no host was heard of for five minutes")
}

func TestIdle(t *testing.T) {
	s := newSite()
	idle := func() time.Duration {
		if found := s.GPUs[a].Idle; found != nil {
			return found.For
		}
		return -1
	}
	s.after(0, func() { s.Set(a, gpupoint.Utilization, 0, s.reading()) })
	assert.Equal(t, time.Duration(-1), idle(), "nobody holds it")
	s.after(time.Minute, func() { s.hold(a, "r1") })
	assert.Equal(t, time.Duration(0), idle())
	s.after(time.Minute, func() {
		s.hold(a, "r1")
		s.Set(a, gpupoint.Utilization, 0, s.reading())
		s.Set(a, gpupoint.BusyTime, 55, s.reading())
	})
	assert.Equal(t, time.Minute, idle())
	s.after(time.Minute, func() { s.hold(a, "r2"); s.Set(a, gpupoint.BusyTime, 55, s.reading()) })
	assert.Equal(t, 2*time.Minute, idle(), "another workload has it")
	s.after(time.Minute, func() { s.hold(a, "r2"); s.Set(a, gpupoint.BusyTime, 55.5, s.reading()) })
	assert.Equal(t, time.Duration(0), idle(), "it worked")
	worked := s.now
	s.after(time.Minute, func() { s.hold(a, "r2"); s.Set(a, gpupoint.BusyTime, 0, s.reading()) })
	assert.Equal(t, time.Minute, idle(), "the counter began anew")
	assert.Equal(t, worked, s.GPUs[a].Idle.Since)
	s.after(time.Minute, func() {})
	assert.Equal(t, time.Minute, idle(), "up to the last reading")
	s.after(time.Minute, func() { s.hold(a, "r2"); s.Set(a, gpupoint.SMUtilization, 0.01, s.reading()) })
	assert.Equal(t, time.Duration(0), idle())
	s.after(time.Minute, func() { s.Hold(a, gpus.Workload{Run: "r2"}, false, gpus.Owner{}, s.reading()) })
	assert.Equal(t, time.Duration(-1), idle(), "without memory it is not held")

	s.after(0, func() { s.hold(b, "r3") })
	assert.Nil(t, s.GPUs[b].Idle, "nothing is known of its use")
}

func TestFailed(t *testing.T) {
	s := newSite()
	s.after(0, func() { s.hold(a, "r1"); s.Set(a, gpupoint.Status, 0, s.reading()) })
	assert.Empty(t, s.failed())
	assert.Empty(t, s.Hit)
	s.after(time.Minute, func() { s.Set(a, gpupoint.Status, 1, s.reading()) })
	assert.Equal(t, map[string]bool{"r1": true}, s.Hit)
	failed := s.now
	want := map[gpus.Key]gpus.Failure{a: {Since: failed, Seen: failed, Held: []gpus.Holding{{Run: "r1", Owner: gpus.Owner{Service: "trainer"}}}}}
	assert.Equal(t, want, s.failed())
	for range 60 {
		s.after(time.Minute, func() { s.Set(a, gpupoint.Status, 1, s.reading()) })
	}
	lasting := want[a]
	lasting.Seen = s.now
	want[a] = lasting
	assert.Equal(t, want, s.failed(), "its run has been gone for an hour")
	s.after(time.Minute, func() { s.Set(a, gpupoint.Status, 0, s.reading()) })
	assert.Empty(t, s.failed())
	assert.Empty(t, s.Hit)

	s.after(time.Minute, func() { s.Set(b, gpupoint.Status, 1, s.reading()) })
	want = map[gpus.Key]gpus.Failure{b: {Since: s.now, Seen: s.now}}
	assert.Equal(t, want, s.failed(), "nobody held it")
	s.after(23*time.Hour, func() {})
	assert.Equal(t, want, s.failed(), "nothing is heard of it")
	s.after(2*time.Hour, func() {})
	assert.Empty(t, s.failed())
}

// However many GPUs and workloads are sent, few are remembered, and none for long.
func TestBounds(t *testing.T) {
	s := newSite()
	s.after(0, func() {
		for n := range 50_000 {
			s.hold(a, "run-"+strconv.Itoa(n))
			s.Set(gpus.Key{ID: strconv.Itoa(n)}, gpupoint.Utilization, 0, s.reading())
			s.Set(gpus.Key{ID: strconv.Itoa(n)}, gpupoint.Status, 1, s.reading())
		}
	})
	assert.Len(t, s.uses(), 32_768)
	assert.Len(t, s.failed(), 8192-1)
	s.after(24*time.Hour+time.Second, func() {})
	s.after(time.Second, func() { s.hold(b, "r") })
	assert.Len(t, s.uses(), 1)
	assert.Empty(t, s.failed())
}

// A host whose clock is far ahead does not hide later readings.
func TestAClockThatIsAhead(t *testing.T) {
	s := newSite()
	s.after(0, func() {
		s.Hold(a, gpus.Workload{Run: "r1"}, true, gpus.Owner{}, gpus.Reading{At: s.now.AddDate(100, 0, 0), Now: s.now})
	})
	assert.Len(t, s.uses(), 1)
	s.after(time.Minute, func() { s.Hold(a, gpus.Workload{Run: "r2"}, true, gpus.Owner{}, gpus.Reading{Now: s.now}) })
	assert.Contains(t, s.uses(), gpus.Run{ID: "r2"})
	assert.NotContains(t, s.uses(), gpus.Run{ID: "r1"})
}

// A wrong reading of the power is not the highest power, below which a busy GPU waits.
func TestImplausiblePower(t *testing.T) {
	s := newSite()
	s.after(0, func() {
		s.hold(a, "r")
		s.Set(a, gpupoint.Utilization, 1, s.reading())
		s.Set(a, gpupoint.Power, 700, s.reading())
		s.Set(a, gpupoint.Power, 1e38, s.reading())
		s.Set(a, gpupoint.PowerLimit, 1e38, s.reading())
	})
	states := s.Runs[gpus.Run{ID: "r", Service: "trainer"}].All
	assert.Len(t, states, 1)
	assert.Equal(t, gpus.Works, states[0].Activity())
	assert.InDelta(t, 700, states[0].High, 1e-9)
	assert.Zero(t, states[0].PowerLimit)
}

// A reading that arrives late says nothing about now. After a while without newer ones,
// the host's clock was set back.
func TestALateReading(t *testing.T) {
	s := newSite()
	reads := func(r gpus.Reading) func() {
		return func() {
			s.Hold(a, gpus.Workload{Run: "r"}, true, gpus.Owner{}, r)
			s.Set(a, gpupoint.Utilization, 0.9, r)
		}
	}
	s.after(0, reads(s.reading()))
	older := s.reading()
	s.after(time.Minute, func() { reads(s.reading())() })
	older.Now = s.now.Add(10 * time.Second)
	s.after(10*time.Second, func() {
		s.Hold(a, gpus.Workload{Run: "r"}, true, gpus.Owner{}, older)
		s.Set(a, gpupoint.Utilization, 0.2, older)
	})
	assert.InDelta(t, 0.9, s.uses()[gpus.Run{ID: "r"}].Mean(), 1e-9)
	s.after(40*time.Second, func() {})
	assert.False(t, s.Runs[gpus.Run{ID: "r"}].Since.IsZero(), "it has not released its GPU")

	back := func() gpus.Reading { return gpus.Reading{At: s.now.Add(-2 * time.Hour), Now: s.now} }
	s.after(4*time.Minute, func() { reads(back())() })
	s.after(time.Minute, func() { reads(back())() })
	assert.InDelta(t, 0.9, s.uses()[gpus.Run{ID: "r"}].Mean(), 1e-9)
}

// others are the values of a GPU besides its workloads, as another collector may send them.
var others = map[string]func(*site, gpus.Reading){
	"utilization":        func(s *site, r gpus.Reading) { s.Set(a, gpupoint.Utilization, 1, r) },
	"utilization of SMs": func(s *site, r gpus.Reading) { s.Set(a, gpupoint.SMUtilization, 1, r) },
	"busy time":          func(s *site, r gpus.Reading) { s.Set(a, gpupoint.BusyTime, 1, r) },
	"health":             func(s *site, r gpus.Reading) { s.Set(a, gpupoint.Status, 0, r) },
	"power":              func(s *site, r gpus.Reading) { s.Set(a, gpupoint.Power, 300, r) },
	"power limit":        func(s *site, r gpus.Reading) { s.Set(a, gpupoint.PowerLimit, 700, r) },
	"memory":             func(s *site, r gpus.Reading) { s.Set(a, gpupoint.MemoryUsed, 1, r) },
	"memory limit":       func(s *site, r gpus.Reading) { s.Set(a, gpupoint.MemoryLimit, 2, r) },
	"throttle":           func(s *site, r gpus.Reading) { s.Throttle(a, "sw_power_cap", false, r) },
	"price":              func(s *site, r gpus.Reading) { s.Set(a, gpus.Price, 2, r) },
}

// A value that comes every second, whatever its clock says, makes no other value old: the
// workload, which is read every 10 s, holds the GPU throughout.
func TestMetricsHaveReadingsOfTheirOwn(t *testing.T) {
	for name, other := range others {
		for _, ahead := range []time.Duration{0, time.Hour, 2 * time.Hour} {
			t.Run(fmt.Sprint(name, " ", ahead), func(t *testing.T) {
				s := newSite()
				for n := range 90 {
					s.after(time.Second, func() {
						if n%10 == 0 {
							s.hold(a, "r1")
						}
						other(s, gpus.Reading{At: s.now.Add(ahead - 2*time.Hour), Now: s.now})
					})
					if n > 10 {
						assert.InDelta(t, 1, s.uses()[r1].GPUs, 1e-9, n)
						assert.Len(t, s.Runs[r1].All, 1, n)
						assert.False(t, s.Runs[r1].Since.IsZero(), n)
					}
				}
				for range 50 {
					s.after(time.Second, func() { other(s, gpus.Reading{At: s.now, Now: s.now}) })
				}
				assert.Empty(t, s.uses(), "it has released the GPU")
				assert.True(t, s.Runs[r1].Since.IsZero())
			})
		}
	}
}

// A GPU is idle only as long as its use is read.
func TestIdleIsRead(t *testing.T) {
	s := newSite()
	for n := range 60 {
		s.after(10*time.Second, func() {
			s.hold(a, "r1")
			if n < 7 {
				s.Set(a, gpupoint.Utilization, 0, s.reading())
			}
		})
	}
	assert.Equal(t, time.Minute, s.GPUs[a].Idle.For)
}

// Two services may have runs with one id. A workload belongs to that of its service, and
// where it names none, or one that has no such run, to both.
func TestServicesWithOneID(t *testing.T) {
	s := newSite()
	s.services = map[string][]string{"r1": {"trainer", "tuner"}}
	hold := func(key gpus.Key, service string) {
		s.Hold(key, gpus.Workload{Run: "r1"}, true, gpus.Owner{Service: service}, s.reading())
	}
	c, d := gpus.Key{ID: "GPU-c"}, gpus.Key{ID: "GPU-d"}
	s.after(0, func() {
		hold(a, "trainer")
		hold(b, "tuner")
		hold(c, "")
		hold(d, "python")
		hold(gpus.Key{ID: "GPU-e"}, "trainer")
		hold(gpus.Key{ID: "GPU-e"}, "tuner")
		for _, key := range []gpus.Key{a, b} {
			s.Set(key, gpupoint.Status, 1, s.reading())
		}
	})
	tuner := gpus.Run{ID: "r1", Service: "tuner"}
	ids := func(run gpus.Run) (ids []string) {
		for _, state := range s.Runs[run].All {
			ids = append(ids, state.ID)
		}
		return ids
	}
	assert.Equal(t, []string{"GPU-c", "GPU-d", "GPU-e", "GPU-a"}, ids(r1))
	assert.Equal(t, []string{"GPU-c", "GPU-d", "GPU-e", "GPU-b"}, ids(tuner))
	assert.InDelta(t, 3.5, s.uses()[r1].GPUs, 1e-9)
	assert.InDelta(t, 3.5, s.uses()[tuner].GPUs, 1e-9)
	assert.False(t, s.Runs[r1].Since.IsZero())
	assert.False(t, s.Runs[tuner].Since.IsZero())
	assert.Zero(t, s.Runs[gpus.Run{ID: "r1"}].Since, "it is of both")
	assert.Zero(t, s.Runs[gpus.Run{ID: "r1"}].Silent)
	assert.Equal(t, []gpus.Holding{{Run: "r1", Owner: gpus.Owner{Service: "trainer"}}}, s.failed()[a].Held)
	assert.Equal(t, []gpus.Holding{{Run: "r1", Owner: gpus.Owner{Service: "tuner"}}}, s.failed()[b].Held)

	read := func() { hold(b, "tuner"); s.Set(c, gpupoint.Utilization, 0, s.reading()) } // both hosts are read
	s.after(10*time.Second, read)
	s.after(50*time.Second, func() { read(); s.Set(a, gpupoint.Utilization, 0, s.reading()) })
	s.after(4*time.Minute, read)
	assert.True(t, s.Runs[r1].Since.IsZero(), "it holds none any more")
	assert.False(t, s.Runs[tuner].Since.IsZero())
}

// What a host last said stays when it is silent: its GPUs are held, as far as anybody
// knows, and their numbers are those of nobody.
func TestASilentHost(t *testing.T) {
	s := newSite()
	of := func(run string) gpus.Run { return gpus.Run{ID: run, Service: "trainer"} }
	c := gpus.Key{Host: "n2", ID: "GPU-c"}
	both := func() {
		s.hold(a, "r1")
		s.Set(a, gpupoint.Utilization, 0.9, s.reading())
		s.Hold(b, gpus.Workload{Run: "r2"}, false, gpus.Owner{}, s.reading())
		s.hold(c, "r3")
		s.hold(c, "r1")
	}
	for range 10 {
		s.after(10*time.Second, both)
	}
	worked, last := s.now, s.now
	other := func() { s.hold(c, "r3") }
	s.after(10*time.Second, other)
	assert.Empty(t, s.silent(), "it may have missed one")
	for range 360 {
		s.after(10*time.Second, other)
	}
	assert.Equal(t, map[string]gpus.SilentHost{"n1": {Since: last, Noticed: last.Add(30 * time.Second), Workloads: []gpus.HeldBy{{Holding: gpus.Holding{Run: "r1", Owner: gpus.Owner{Service: "trainer"}}, GPU: a, Worked: worked}}}}, s.silent())
	assert.Equal(t, last, s.Runs[of("r1")].Silent)
	assert.Equal(t, "n1", s.Runs[of("r1")].Host)
	assert.False(t, s.Runs[of("r1")].Since.IsZero())
	assert.Zero(t, s.Runs[of("r3")].Silent, "its host is read")
	assert.Zero(t, s.Runs[gpus.Run{ID: "r2"}].Since, "it held nothing")
	assert.Zero(t, s.Runs[gpus.Run{ID: "r2"}].Silent)
	assert.True(t, s.Hosts["n2"].Read)
	assert.False(t, s.Hosts["n1"].Read)
	assert.NotContains(t, s.uses(), of("r1"))
	assert.Len(t, s.Runs[of("r1")].All, 1, "its last state")

	s.after(10*time.Second, both)
	assert.Empty(t, s.silent(), "it is back")
	assert.Contains(t, s.uses(), of("r1"))
	s.after(25*time.Hour, other)
	assert.Empty(t, s.silent(), "it is forgotten")
	assert.Zero(t, s.Runs[of("r1")].Since)
	assert.Zero(t, s.Runs[of("r1")].Silent)
}
