package gpus

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/growth"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
)

const (
	// highPowerFor is the time in which the remembered highest power halves, so
	// that it is that of the present work.
	highPowerFor = 3 * time.Hour
	// waitingPower is the greatest fraction of its highest power at which a GPU
	// that is busy does no work: a kernel that waits for another GPU, as those of
	// NCCL do, takes little more power than an idle GPU.
	waitingPower = 0.6
	// plausiblePower is the greatest power of a GPU that is believed, in watts: a
	// wrong value would be its highest power for long.
	plausiblePower = 20_000
	// collectivePower is the same of one that certainly waits: a generation or an
	// evaluation also takes less than a training, but not as little as a kernel that spins.
	collectivePower = 0.4
	// busyUse is the least utilization of such a GPU.
	busyUse = 0.9
	// throttleMemory is the time over which it is known how often a GPU throttles,
	// often the fraction of that time in which one that is throttled does.
	throttleMemory = 10 * time.Minute
	often          = 0.25
	seldom         = 0.05
)

// reasons are the values of nvidia.gpu.throttle.reason that lower the clocks of a
// GPU that works. The others are settings of its owner.
var reasons = [...]string{
	"hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown", "sw_power_cap",
}

// signals are further values of a GPU.
type signals struct {
	// high is the highest power of late.
	high float64
	// memory are values of the memory.
	memory growth.Trend
	// held is the workload whose memory it is, since when it holds the GPU.
	held      holderKey
	heldSince time.Time

	// strained is when the GPU was last seen to work, and not to wait.
	strained time.Time

	// active has a bit for each reason that is active, at the time of the reading.
	active   uint8
	activeAt time.Time
	// throttles is the fraction of time in which any reason is active, since when
	// it has been more than seldom, with the reasons in seen.
	throttles float64
	since     time.Time
	seen      uint8
}

// Throttle records whether a reason lowers the clocks of a GPU. The reasons of one
// reading come one after the other.
func (f *Fleet) Throttle(key Key, reason string, active bool, r Reading) {
	bit := slices.Index(reasons[:], reason)
	if bit < 0 {
		return
	}
	g := f.read(key, gpupoint.Throttle, &r)
	if g == nil {
		return
	}
	s := &g.signals
	if !r.At.Equal(s.activeAt) {
		s.settle(r.At)
	}
	if active {
		s.active |= 1 << bit
	}
}

// settle ends a reading of reasons: it holds until the next one at a time.
func (s *signals) settle(next time.Time) {
	elapsed := next.Sub(s.activeAt)
	if s.activeAt.IsZero() || elapsed < 0 || elapsed > GoneAfter {
		s.throttles, s.since, s.seen = 0, time.Time{}, 0
	} else {
		is := 0.0
		if s.active != 0 {
			is = 1
			if s.since.IsZero() {
				s.since = s.activeAt
			}
			s.seen |= s.active
		}
		s.throttles = is + (s.throttles-is)*math.Exp(-elapsed.Seconds()/throttleMemory.Seconds())
		if is == 0 && s.throttles < seldom {
			s.since, s.seen = time.Time{}, 0
		}
	}
	s.active, s.activeAt = 0, next
}

// Activity is what a GPU of a stalled run does.
type Activity uint8

// The activities.
const (
	// ActivityUnknown: its utilization is unknown.
	ActivityUnknown Activity = iota
	// DoesNothing: its utilization is 0.
	DoesNothing
	// Waits: it is busy at low power, as a kernel that waits for another GPU.
	Waits
	// Works: it is busy at a power as before, or at an unknown one.
	Works
)

// State is what is known of one GPU of a run.
type State struct {
	Key
	// Owner is what is known of the workload that holds it.
	Owner
	// Index is the driver's index of the GPU, PID the process of Rank, "" and 0 if unknown.
	Index string
	PID   int64
	// Model is the name of the GPU's model, "" if unknown.
	Model string
	// Utilization is the general one, or that of the SMs; negative if unknown.
	Utilization float64
	// Power is in watts, High its highest value of late; 0 if unknown.
	Power, High float64
	// PowerLimit is the power that it may take, in watts, 0 if unknown.
	PowerLimit float64
	// Worked is when the GPU was last seen to work, zero if it was not.
	Worked time.Time
	// Throttled has the reasons that lower the clocks for a quarter of the time or more, and
	// ThrottledSince since when they do.
	Throttled      []string
	ThrottledSince time.Time
	// Memory is when the memory reaches its Limit in bytes, if Grows.
	Memory growth.Forecast
	Limit  float64
	Grows  bool
}

// Activity returns what the GPU does.
func (s *State) Activity() Activity {
	switch {
	case s.Utilization < 0:
		return ActivityUnknown
	case s.Utilization == 0:
		return DoesNothing
	case s.Utilization >= busyUse && s.Power > 0 && s.Power <= waitingPower*s.High:
		return Waits
	default:
		return Works
	}
}

// Spins reports whether the GPU is busy at as little power as in a collective.
func (s *State) Spins() bool { return s.Activity() == Waits && s.Power <= collectivePower*s.High }

// forecast adds when the memory of a GPU reaches its limit. What another workload
// held before, and what this one held before it released the GPU, does not count.
func (g *gpu) forecast(state *State, by *holder) {
	s := &g.signals
	if s.held != by.holderKey || !s.heldSince.Equal(by.since) {
		s.held, s.heldSince = by.holderKey, by.since
		s.memory.Reset()
	}
	if state.Limit > 0 {
		state.Memory, state.Grows = s.memory.Forecast(state.Limit)
	}
}

// state returns what is known of a GPU that a workload holds.
func (g *gpu) state(h *holder) *State {
	s := &g.signals
	state := &State{
		Key: g.Key, Owner: h.owner, Index: g.index, Model: g.model, PID: h.pid,
		Limit: g.values[gpupoint.MemoryLimit].value, PowerLimit: g.values[gpupoint.PowerLimit].value,
	}
	state.Utilization, _ = g.utilization(gpupoint.Utilization, gpupoint.SMUtilization)
	if power := g.values[gpupoint.Power]; g.current(gpupoint.Power, power.at) {
		state.Power, state.High = power.value, s.high
	}
	if state.Activity() == Works {
		s.strained = g.seen
	}
	state.Worked = s.strained
	if s.throttles > often && g.current(gpupoint.Throttle, s.activeAt) {
		state.ThrottledSince = s.since
		for bit, reason := range reasons {
			if s.seen>>bit&1 != 0 {
				state.Throttled = append(state.Throttled, reason)
			}
		}
	}
	return state
}
