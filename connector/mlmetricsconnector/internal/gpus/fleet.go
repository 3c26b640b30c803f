// Package gpus keeps what is known of GPUs on any number of hosts: which
// workloads hold their memory, and whether they work.
package gpus

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/growth"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

const (
	// maxGPUs limits the GPUs that are remembered, maxHolders their workloads.
	maxGPUs, maxHolders = 8192, 32_768
	// GoneAfter is the time without a value after which what has sent it is forgotten: a
	// process, what NCCL says about a run, or a GPU of a host whose other GPUs are read. As
	// long are the workloads of a failed GPU remembered.
	GoneAfter = 5 * time.Minute
	// oneReading is how far apart the times of values of one reading are at
	// most, and oneArrival how far apart its metrics arrive.
	oneReading = time.Second
	oneArrival = 5 * time.Second
	// releasedAfter is the time after which a workload that is in no reading has
	// released the GPU: the metrics of one reading may arrive in several requests.
	releasedAfter = 30 * time.Second
	// unreadAfter is the time without a reading after which a GPU is not held.
	unreadAfter = 3 * time.Minute
)

// Price is the quantity of US dollars an hour, beyond those that are read.
const Price, quantities = gpupoint.Recovery + 1, gpupoint.Recovery + 2

// uses are the quantities that show whether a GPU works: fractions, and a counter of seconds.
var uses = [...]gpupoint.Quantity{gpupoint.Utilization, gpupoint.SMUtilization, gpupoint.BusyTime}

// readings is what is known of the readings of one quantity of a GPU. Each has its own:
// several collectors may read a GPU, each some of them and as often as it likes.
type readings struct {
	// at is the newest time of one, seen its arrival, and every the time between it and
	// the one before, 0 if there was only one.
	at, seen time.Time
	every    time.Duration
}

// add records a reading and reports whether it is not late.
func (m *readings) add(r Reading) bool {
	if m.late(r) {
		return false
	}
	if later := r.At.Sub(m.at); later >= oneReading && !m.at.IsZero() {
		m.every = later
	}
	if m.at.Sub(r.At) >= oneReading || r.At.After(m.at) {
		m.at = r.At
	}
	m.seen = r.Now
	return true
}

// late reports whether a reading arrives after a newer one: it was sent again, or waited in
// a queue. Where no newer one has come for 3 minutes, the host's clock was set back, and the
// reading is not late.
func (m *readings) late(r Reading) bool {
	return !r.At.IsZero() && m.at.Sub(r.At) >= oneReading && r.Now.Sub(m.seen) <= unreadAfter
}

// Key identifies a GPU or a MIG device.
type Key struct {
	// Host is host.name, or "".
	Host string
	// ID is hw.id.
	ID string
}

// Run identifies a run. Services that have one id each have a run.
type Run struct {
	// ID is its ml.run.id, Service the service.name, or "" where a workload tells none.
	ID, Service string
}

// Workload identifies a workload of a GPU that has one Owner.Service.
type Workload struct {
	// Run is its ml.run.id. A run of a service is one workload of a GPU.
	Run string
	// Other distinguishes workloads without a run.
	Other uint64
}

// Owner is what is known of a workload besides its identity.
type Owner = gpupoint.Holder

// Reading is the time of a value.
type Reading struct {
	// At is the time by the clock of the GPU's host.
	At time.Time
	// Now is the time of arrival.
	Now time.Time
}

// value is the newest value of a gauge.
type value struct {
	value float64
	at    time.Time
}

// gpu is what is known of one GPU.
type gpu struct {
	Key
	// read has the readings of each metric, seen is the arrival of the newest one.
	read    [quantities]readings
	seen    time.Time
	holders map[holderKey]*holder
	// values are the newest plausible ones.
	values [quantities]value
	// worked is when the GPU was last seen to work, heldSince since when
	// workloads hold its memory, zero if none does.
	worked, heldSince time.Time
	// failed is when the GPU was first seen as failed, zero if it works, and victims
	// are the workloads that held it.
	failed  time.Time
	victims []Holding
	signals signals
	// index is the driver's index of the GPU, model its name.
	index, model string

	// silent reports whether no reading of its host's GPUs has come for three of its
	// intervals at the latest emission, and asOf is the time until which something is known
	// of it: the time of that reading if so, else that of the emission.
	silent bool
	asOf   time.Time
	// present are the workloads of its newest reading then, of which holding hold memory.
	present, holding int
}

// holderKey identifies a holder.
type holderKey struct {
	Workload
	service string
}

// holder is a workload that a GPU had.
type holder struct {
	holderKey
	at, seen time.Time
	// memory reports whether it holds any, current whether the newest reading has it.
	memory, current bool
	owner           Owner
	// since is when it began to hold memory, lost when a reading was first without
	// it, zero if the newest one has it.
	since, lost time.Time
	// pid is the process of the owner's rank, 0 if unknown.
	pid int64
}

// settle determines whether the workload still holds the GPU.
func (h *holder) settle(g *gpu) {
	h.current = g.current(gpupoint.WorkloadMemory, h.at)
	switch {
	case h.holds():
		h.lost = time.Time{}
		h.since = cmp.Or(h.since, h.seen)
	case h.lost.IsZero():
		h.lost = g.asOf
	case g.asOf.Sub(h.lost) >= releasedAfter:
		h.since = time.Time{}
	}
}

// holds reports whether the workload holds memory of the GPU by its newest reading.
func (h *holder) holds() bool { return h.memory && h.current }

func (h *holder) holding() Holding { return Holding{h.Run, h.owner} }

// Holding is a workload that holds a GPU, or held it.
type Holding struct {
	// Run is its ml.run.id, or "".
	Run   string
	Owner Owner
}

// Fleet has the state of GPUs. It is not safe for concurrent use.
type Fleet struct {
	all     map[Key]*gpu
	holders int
	// services are those that have a run with an id.
	services map[string][]string
	// hosts are those of all, as far as their GPUs are read.
	hosts map[string]*silence.Sender
	// seen has the time when each run was last seen to hold GPU memory, released the
	// runs that did and then did not, with the time.
	seen, released map[Run]time.Time
}

// NewFleet returns a Fleet without GPUs.
func NewFleet() *Fleet {
	return &Fleet{
		all: make(map[Key]*gpu), hosts: make(map[string]*silence.Sender),
		seen: make(map[Run]time.Time), released: make(map[Run]time.Time),
	}
}

// read returns the GPU of a reading of a metric, or nil beyond the limit and for one that
// is late.
func (f *Fleet) read(key Key, m gpupoint.Quantity, r *Reading) *gpu {
	g, known := f.all[key]
	if !known {
		if len(f.all) >= maxGPUs {
			return nil
		}
		g = &gpu{Key: Key{strings.Clone(key.Host), strings.Clone(key.ID)}}
		f.all[g.Key] = g
		shared.Entry(f.hosts, g.Host, func() *silence.Sender { return new(silence.Sender) })
	}
	f.hosts[key.Host].See(r.Now)
	r.At = shared.Earlier(r.At, r.Now)
	if !g.read[m].add(*r) {
		return nil
	}
	g.seen = r.Now
	return g
}

// current reports whether a value belongs to the newest reading of its metric, and that
// one has not been left out since: other metrics may be read more often.
func (g *gpu) current(m gpupoint.Quantity, at time.Time) bool {
	read := &g.read[m]
	return !at.IsZero() && read.at.Sub(at) < oneReading && g.seen.Sub(read.seen) <= max(read.every*3/2, oneArrival)
}

// Hold records a workload, and whether it holds memory. Of a GPU without an id only its
// run is known to hold one.
func (f *Fleet) Hold(key Key, w Workload, memory bool, owner Owner, r Reading) {
	if g := f.all[key]; w.Run != "" && memory && (g == nil || !g.read[gpupoint.WorkloadMemory].late(r)) {
		f.see(Run{w.Run, owner.Service}, r.Now)
	}
	if key.ID == "" {
		return
	}
	g := f.read(key, gpupoint.WorkloadMemory, &r)
	if g == nil {
		return
	}
	h, known := g.holders[holderKey{w, owner.Service}]
	if !known {
		if f.holders >= maxHolders {
			return
		}
		h = &holder{holderKey: holderKey{Workload{strings.Clone(w.Run), w.Other}, strings.Clone(owner.Service)}}
		mlattr.Put(&g.holders, h.holderKey, h)
		f.holders++
	}
	// Several ranks of a run may have one GPU.
	h.memory = memory || h.memory && h.at.Equal(r.At)
	h.at, h.seen = r.At, r.Now
	if owner != h.owner {
		h.owner = owner.Clone()
	}
}

// Describe records the driver's index and the model of a GPU that is read.
func (f *Fleet) Describe(key Key, index, model string) {
	if g := f.all[key]; g != nil && (index != "" && g.index != index || model != "" && g.model != model) {
		g.index, g.model = strings.Clone(cmp.Or(index, g.index)), strings.Clone(cmp.Or(model, g.model))
	}
}

// Process records the process by which a rank of a run holds a GPU that is read.
func (f *Fleet) Process(key Key, run Run, rank string, pid int64) {
	if g := f.all[key]; g != nil {
		if h := g.holders[holderKey{Workload{Run: run.ID}, run.Service}]; h != nil && h.owner.Rank == rank {
			h.pid = pid
		}
	}
}

// Set records the value of a quantity of a GPU: power in watts, memory in bytes, and a status
// that is not 0 if it has failed. An implausible one of its use is ignored, another implausible
// one only shows that the GPU is read.
func (f *Fleet) Set(key Key, m gpupoint.Quantity, to float64, r Reading) {
	plausible := to >= 0 && to <= math.MaxFloat64
	switch m {
	case gpupoint.Power, gpupoint.PowerLimit:
		plausible = to > 0 && to <= plausiblePower
	case gpupoint.MemoryLimit:
		plausible = plausible && to > 0
	}
	if !plausible && slices.Contains(uses[:], m) {
		return
	}
	g := f.read(key, m, &r)
	if g == nil || !plausible {
		return
	}
	was := g.values[m]
	switch m {
	case gpupoint.Utilization, gpupoint.SMUtilization:
		if to > 0 {
			g.worked = r.Now
		}
		to = min(to, 1)
	case gpupoint.BusyTime:
		if !was.at.IsZero() && to > was.value {
			g.worked = r.Now
		}
	case gpupoint.Power:
		if elapsed := r.At.Sub(was.at); elapsed > 0 && !was.at.IsZero() {
			g.signals.high *= math.Exp2(-elapsed.Hours() / highPowerFor.Hours())
		}
		g.signals.high = max(g.signals.high, to)
	case gpupoint.MemoryUsed:
		g.signals.memory.Add(r.At, to)
	case gpupoint.Status:
		if to == 0 {
			g.failed, g.victims = time.Time{}, nil
		} else if g.failed.IsZero() {
			g.failed = r.Now
		}
	}
	g.values[m] = value{to, r.At}
}

// utilization returns the utilization of the first metric that is known, else -1.
func (g *gpu) utilization(of ...gpupoint.Quantity) (utilization float64, ok bool) {
	for _, m := range of {
		if g.current(m, g.values[m].at) {
			return g.values[m].value, true
		}
	}
	return -1, false
}

// price returns what an hour of the GPU costs, NaN if unknown.
func (g *gpu) price() float64 {
	if g.values[Price].at.IsZero() {
		return math.NaN()
	}
	return g.values[Price].value
}

// used returns when a reading of the GPU's use arrived last, zero if none has.
func (g *gpu) used() (last time.Time) {
	for _, m := range uses {
		last = shared.Later(last, g.read[m].seen)
	}
	return last
}

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
		is := shared.OneIf[float64](s.active != 0)
		if is > 0 {
			s.since = cmp.Or(s.since, s.activeAt)
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
