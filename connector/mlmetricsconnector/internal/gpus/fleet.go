// Package gpus keeps what is known of GPUs on any number of hosts: which
// workloads hold their memory, and whether they work.
package gpus

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

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
		if h.since.IsZero() {
			h.since = h.seen
		}
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
	if r.At.IsZero() || r.At.After(r.Now) {
		r.At = r.Now
	}
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
		if g.holders == nil {
			g.holders = make(map[holderKey]*holder)
		}
		h = &holder{holderKey: holderKey{Workload{strings.Clone(w.Run), w.Other}, strings.Clone(owner.Service)}}
		g.holders[h.holderKey] = h
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
