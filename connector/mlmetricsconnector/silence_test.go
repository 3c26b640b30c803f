package mlmetricsconnector

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// site has hosts with two GPUs each: those of run-a on n0 and n1, of run-b on n2, of
// nobody on n3.
type site struct {
	*world
	// hung reports whether run-b sends nothing, silent are hosts that do not.
	hung   bool
	silent map[string]bool
	// back are the series that ml_metrics has sent last, which come back.
	back pmetric.Metrics
}

func newSite(t *testing.T) *site {
	return &site{world: newWorld(t, 8), silent: map[string]bool{}, back: pmetric.NewMetrics()}
}

// live has time pass: ranks take a step every 10 seconds, and GPUs are read.
func (s *site) live(t *testing.T, d time.Duration) {
	t.Helper()
	for range int(d / (10 * time.Second)) {
		s.clock = s.clock.Add(10 * time.Second)
		for rank := range 8 {
			host, run := "n"+strconv.Itoa(rank/2), []string{"run-a", "run-a", "run-b", ""}[rank/2]
			if s.silent[host] {
				continue
			}
			s.run.run = run
			s.hostOf = func(int) string { return host }
			g := gpuMetrics{host: host, id: "GPU-" + strconv.Itoa(rank), run: run, utilization: 0.9, memory: 1 << 30, power: 600}
			switch {
			case run == "":
				g.memory, g.utilization, g.power = 0, 0, 70
			case run == "run-b" && s.hung:
				g.utilization, g.power = 1, 200
			default:
				s.send(t, rank, "optimizer", s.clock.Add(-10*time.Second), s.clock, nil)
			}
			s.read(t, g)
		}
		s.metrics(t, s.back)
		s.sink.Reset()
		require.NoError(t, s.connector.emit(t.Context(), false))
	}
	// Through Prometheus, say: nothing tells that ml_metrics has written it.
	s.back = pmetric.NewMetrics()
	for _, md := range s.sink.AllMetrics() {
		md.ResourceMetrics().MoveAndAppendTo(s.back.ResourceMetrics())
	}
	for _, rm := range s.back.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Scope().SetName("prometheusreceiver")
		}
	}
}

// open are the problems that have a series.
func (s *site) open(t *testing.T) []string {
	t.Helper()
	onsets, _ := problems(t, s.back)
	return slices.Sorted(maps.Keys(onsets))
}

func (s *site) states(t *testing.T) map[string]string {
	t.Helper()
	values, _ := gauges(t, s.back, "ml.run.state")
	states := map[string]string{}
	for key, value := range values {
		if parts := strings.Split(key, "/"); value == 1 {
			states[parts[2]] = parts[1]
		}
	}
	return states
}

// All hosts of a cluster die, while one run works and another one hangs.
func TestADeadCluster(t *testing.T) {
	s := newSite(t)
	s.live(t, 10*time.Minute)
	s.hung = true
	hung := s.clock
	s.live(t, 20*time.Minute)
	require.Equal(t, []string{"trainer/looks_hung/run-b"}, s.open(t))
	died := s.clock
	for _, host := range []string{"n0", "n1", "n2", "n3"} {
		s.silent[host] = true
	}

	for _, minutes := range []int{1, 5, 30, 180} {
		s.live(t, died.Add(time.Duration(minutes)*time.Minute).Sub(s.clock))
		seen, _ := gauges(t, s.back, "ml.host.last_data.timestamp")
		if minutes < 60 { // metrics_expiration
			assert.Equal(t, map[string]float64{"/n0": float64(died.Unix()), "/n1": float64(died.Unix()), "/n2": float64(died.Unix()), "/n3": float64(died.Unix())}, seen, minutes)
		}
		seen, _ = gauges(t, s.back, "ml.run.last_data.timestamp")
		assert.Equal(t, map[string]float64{"trainer/run-a": float64(died.Unix()), "trainer/run-b": float64(hung.Unix())}, seen, minutes)
		used, _ := gauges(t, s.back, "ml.run.gpus")
		assert.Empty(t, used, "nobody knows what has become of the GPUs")
		if minutes < 5 {
			continue
		}
		s.live(t, 10*time.Second)
		assert.Equal(t, map[string]string{"run-a": "silent", "run-b": "stalled"}, s.states(t), minutes)
		assert.Equal(t, []string{
			"trainer/host_silent/n0/run-a", "trainer/host_silent/n1/run-a", "trainer/host_silent/n2/run-b",
			"trainer/looks_hung/run-b", "trainer/run_silent/run-a",
		}, s.open(t), minutes)
		onsets, _ := problems(t, s.back)
		assert.Equal(t, died.UTC(), onsets["trainer/host_silent/n1/run-a"])
		assert.Equal(t, died.UTC(), onsets["trainer/run_silent/run-a"])
		assert.Equal(t, hung.UTC(), onsets["trainer/looks_hung/run-b"])
	}
	found := s.found()
	require.Len(t, found["run_silent"], 1)
	cause := textOf(t, found["run_silent"][0], "ml.problem.cause")
	assert.Contains(t, []string{textOf(t, found["host_silent"][0], "ml.problem.id"), textOf(t, found["host_silent"][1], "ml.problem.id")}, cause)
	for _, record := range found["looks_hung"] {
		_, follows := record.Attributes().Get("ml.problem.cause")
		assert.False(t, follows, "it hung before")
	}

	clear(s.silent)
	s.hung = false
	s.live(t, 10*time.Minute)
	assert.Empty(t, s.open(t), "all is well again")
	assert.Equal(t, map[string]string{"run-a": "running", "run-b": "running"}, s.states(t))
}

// A run whose steps are long has sent nothing for longer than its host: the host is
// reported first, so that one notification tells of both.
func TestARunIsNotSilentBeforeItsHost(t *testing.T) {
	w := newWorld(t, 2)
	w.rest = time.Minute
	w.step(t, 20)
	w.wait(t, 50*time.Second) // of the next step
	w.unread = "n0"
	w.wait(t, 10*time.Minute)
	found := w.found()
	require.Len(t, found["host_silent"], 1)
	require.Len(t, found["run_silent"], 1, "with its cause at once")
	assert.Equal(t, textOf(t, found["host_silent"][0], "ml.problem.id"), textOf(t, found["run_silent"][0], "ml.problem.cause"))
}

// What nobody has said for a day is forgotten.
func TestAClusterThatIsGone(t *testing.T) {
	s := newSite(t)
	s.live(t, 10*time.Minute)
	s.silent = map[string]bool{"n0": true, "n1": true, "n2": true, "n3": true}
	s.live(t, 6*time.Minute)
	require.NotEmpty(t, s.open(t))
	s.clock = s.clock.Add(24 * time.Hour)
	s.live(t, 2*time.Minute)
	assert.Empty(t, s.open(t))
}

// Where nobody worked, or where the work goes on, silence is no problem.
func TestSilenceThatIsNoProblem(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after func(*testing.T, *site)
		want          []string
	}{
		"a host without work": {nil, func(_ *testing.T, s *site) { s.silent["n3"] = true }, nil},
		"a run that has ended": {func(t *testing.T, s *site) {
			s.run.run = "run-b"
			for rank := 4; rank < 6; rank++ {
				s.hostOf = func(int) string { return "n2" }
				s.send(t, rank, "train", s.clock.Add(-time.Hour), s.clock.Add(time.Second), nil)
			}
			s.silent["n2"] = true
		}, nil, nil},
		"a host that sends spans": {nil, func(t *testing.T, s *site) {
			s.silent["n2"] = true
			s.run.run = "run-b"
			for rank := 4; rank < 6; rank++ {
				s.hostOf = func(int) string { return "n2" }
				s.send(t, rank, "optimizer", s.clock, s.clock.Add(time.Second), nil)
			}
		}, nil},
		"a run that goes on elsewhere": {nil, func(t *testing.T, s *site) {
			s.silent["n2"] = true
			s.run.run = "run-b"
			for rank := 4; rank < 6; rank++ {
				s.hostOf = func(int) string { return "n9" }
				s.send(t, rank, "optimizer", s.clock, s.clock.Add(time.Second), nil)
			}
		}, nil},
		"a host that is cut off, while its run goes on": {nil, func(_ *testing.T, s *site) { s.silent["n1"] = true }, nil},
		"a host that dies": {nil, func(_ *testing.T, s *site) { s.silent["n2"] = true }, []string{"trainer/host_silent/n2/run-b", "trainer/run_silent/run-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.live(t, 10*time.Minute)
			if tt.before != nil {
				tt.before(t, s)
			}
			for range 120 {
				if tt.after != nil {
					tt.after(t, s)
				}
				s.live(t, 10*time.Second)
			}
			assert.Equal(t, tt.want, s.open(t))
		})
	}
}

// A rank of a silent host is missing, and its run hangs, because of the host.
func TestWhatFollowsFromASilentHost(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 60)
	w.unread = "n1"
	w.mute = map[int]bool{0: true, 1: true, 2: true, 3: true}
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 1, 200 }
	w.step(t, 60)
	found := w.found()
	require.Len(t, found["host_silent"], 1)
	assert.Equal(t, "n1", textOf(t, found["host_silent"][0], "host.name"))
	hung := found["looks_hung"]
	require.NotEmpty(t, hung)
	assert.Equal(t, textOf(t, found["host_silent"][0], "ml.problem.id"), textOf(t, hung[len(hung)-1], "ml.problem.cause"))
	assert.Empty(t, found["run_silent"], "some of its GPUs are read")
}
