package gpus_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
)

var (
	a = gpus.Key{Host: "n1", ID: "GPU-a"}
	b = gpus.Key{Host: "n1", ID: "GPU-b"}
)

// site is a fleet with a clock.
type site struct {
	*gpus.Fleet
	now time.Time
}

func newSite() *site {
	return &site{gpus.NewFleet(), time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}
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
	s.Settle(s.now)
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
		s.UseSM(a, 0.4, s.reading())
		s.Use(a, 0.9, s.reading())
		s.Use(b, 0.8, s.reading())
	})
	runs := s.Runs()
	assert.Len(t, runs, 2)
	assert.InDelta(t, 1.5, runs["r1"].GPUs, 1e-9)
	assert.InDelta(t, 0.6, runs["r1"].Utilization, 1e-9)
	assert.Equal(t, "trainer", runs["r1"].Service)
	assert.Equal(t, gpus.Use{GPUs: 1, Utilization: -1, Price: -1, Service: "trainer"}, runs["r2"])

	s.after(15*time.Second, func() {
		s.hold(b, "r1")
		s.Use(a, 0.9, s.reading())
		s.Use(b, 0.8, s.reading())
	})
	runs = s.Runs()
	assert.InDelta(t, 1, runs["r1"].GPUs, 1e-9, "the newest reading has it on one GPU, alone")
	s.after(6*time.Minute, func() {})
	assert.Empty(t, s.Runs(), "no host was heard of for five minutes")
}

func TestIdle(t *testing.T) {
	s := newSite()
	idle := func() time.Duration {
		found, held := s.Idle()[a]
		if !held {
			return -1
		}
		return found.For
	}
	s.after(0, func() { s.Use(a, 0, s.reading()) })
	assert.Equal(t, time.Duration(-1), idle(), "nobody holds it")
	s.after(time.Minute, func() { s.hold(a, "r1") })
	assert.Equal(t, time.Duration(0), idle())
	s.after(time.Minute, func() { s.hold(a, "r1"); s.Use(a, 0, s.reading()); s.Busy(a, 55, s.reading()) })
	assert.Equal(t, time.Minute, idle())
	s.after(time.Minute, func() { s.hold(a, "r2"); s.Busy(a, 55, s.reading()) })
	assert.Equal(t, 2*time.Minute, idle(), "another workload has it")
	s.after(time.Minute, func() { s.hold(a, "r2"); s.Busy(a, 55.5, s.reading()) })
	assert.Equal(t, time.Duration(0), idle(), "it worked")
	worked := s.now
	s.after(time.Minute, func() { s.hold(a, "r2"); s.Busy(a, 0, s.reading()) })
	assert.Equal(t, time.Minute, idle(), "the counter began anew")
	assert.Equal(t, worked, s.Idle()[a].Since)
	s.after(time.Minute, func() {})
	assert.Equal(t, time.Minute, idle(), "up to the last reading")
	s.after(time.Minute, func() { s.hold(a, "r2"); s.UseSM(a, 0.01, s.reading()) })
	assert.Equal(t, time.Duration(0), idle())
	s.after(time.Minute, func() { s.Hold(a, gpus.Workload{Run: "r2"}, false, gpus.Owner{}, s.reading()) })
	assert.Equal(t, time.Duration(-1), idle(), "without memory it is not held")

	s.after(0, func() { s.hold(b, "r3") })
	assert.NotContains(t, s.Idle(), b, "nothing is known of its use")
}

func TestFailed(t *testing.T) {
	s := newSite()
	s.after(0, func() { s.hold(a, "r1"); s.Health(a, false, s.reading()) })
	assert.Empty(t, s.Failed())
	s.after(time.Minute, func() { s.Health(a, true, s.reading()) })
	failed := s.now
	want := map[gpus.Key]gpus.Failure{a: {Since: failed, Runs: []gpus.Victim{{Run: "r1", Service: "trainer"}}}}
	assert.Equal(t, want, s.Failed())
	for range 60 {
		s.after(time.Minute, func() { s.Health(a, true, s.reading()) })
	}
	assert.Equal(t, want, s.Failed(), "its run has been gone for an hour")
	s.after(time.Minute, func() { s.Health(a, false, s.reading()) })
	assert.Empty(t, s.Failed())

	s.after(time.Minute, func() { s.Health(b, true, s.reading()) })
	assert.Equal(t, map[gpus.Key]gpus.Failure{b: {Since: s.now}}, s.Failed(), "nobody held it")
	s.after(6*time.Minute, func() {})
	assert.Empty(t, s.Failed(), "nothing is heard of it")
}

// However many GPUs and workloads are sent, few are remembered, and none for long.
func TestBounds(t *testing.T) {
	s := newSite()
	s.after(0, func() {
		for n := range 50_000 {
			s.hold(a, "run-"+strconv.Itoa(n))
			s.Use(gpus.Key{ID: strconv.Itoa(n)}, 0, s.reading())
			s.Health(gpus.Key{ID: strconv.Itoa(n)}, true, s.reading())
		}
	})
	assert.Len(t, s.Runs(), 32_768)
	assert.Len(t, s.Failed(), 8192-1)
	s.after(6*time.Minute, func() {})
	s.after(time.Second, func() { s.hold(b, "r") })
	assert.Len(t, s.Runs(), 1)
	assert.Empty(t, s.Failed())
}

// A host whose clock is far ahead does not hide later readings.
func TestAClockThatIsAhead(t *testing.T) {
	s := newSite()
	s.after(0, func() {
		s.Hold(a, gpus.Workload{Run: "r1"}, true, gpus.Owner{}, gpus.Reading{At: s.now.AddDate(100, 0, 0), Now: s.now})
	})
	assert.Len(t, s.Runs(), 1)
	s.after(time.Minute, func() { s.Hold(a, gpus.Workload{Run: "r2"}, true, gpus.Owner{}, gpus.Reading{Now: s.now}) })
	assert.Contains(t, s.Runs(), "r2")
	assert.NotContains(t, s.Runs(), "r1")
}

// A wrong reading of the power is not the highest power, below which a busy GPU waits.
func TestImplausiblePower(t *testing.T) {
	s := newSite()
	s.after(0, func() {
		s.hold(a, "r")
		s.Use(a, 1, s.reading())
		s.Power(a, 700, s.reading())
		s.Power(a, 1e38, s.reading())
		s.PowerLimit(a, 1e38, s.reading())
	})
	states := s.States()["r"]
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
			s.Use(a, 0.9, r)
		}
	}
	s.after(0, reads(s.reading()))
	older := s.reading()
	s.after(time.Minute, func() { reads(s.reading())() })
	older.Now = s.now.Add(10 * time.Second)
	s.after(10*time.Second, func() {
		s.Hold(a, gpus.Workload{Run: "r"}, true, gpus.Owner{}, older)
		s.Use(a, 0.2, older)
	})
	assert.InDelta(t, 0.9, s.Runs()["r"].Utilization, 1e-9)
	s.after(40*time.Second, func() {})
	assert.False(t, s.Holding(s.now)["r"].IsZero(), "it has not released its GPU")

	back := func() gpus.Reading { return gpus.Reading{At: s.now.Add(-2 * time.Hour), Now: s.now} }
	s.after(4*time.Minute, func() { reads(back())() })
	s.after(time.Minute, func() { reads(back())() })
	assert.InDelta(t, 0.9, s.Runs()["r"].Utilization, 1e-9)
}
