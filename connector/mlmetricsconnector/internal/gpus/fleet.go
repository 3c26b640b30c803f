// Package gpus keeps what is known of GPUs on any number of hosts: which
// workloads hold their memory, and whether they work.
package gpus

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
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
)

// Metric is one that is read of GPUs. Each has readings of its own: several collectors
// may read a GPU, each some of them and as often as it likes.
type Metric uint8

// The metrics that Fleet.Set records: utilizations from 0 to 1, a counter of seconds, watts,
// bytes, what the driver asks for, and US dollars an hour. The others have methods of their
// own.
const (
	ofWorkloads Metric = iota
	Utilization
	SMUtilization
	BusyTime
	ofHealth
	Power
	PowerLimit
	Memory
	MemoryLimit
	ofThrottle
	Recovery
	Price
	metrics
)

// readings is what is known of the readings of one metric of a GPU.
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
	// read has the readings of each metric, seen is the arrival of the newest one.
	read    [metrics]readings
	seen    time.Time
	holders map[holderKey]*holder
	// general and sm are the utilization and that of the SMs, busy the counter
	// of busy time; measured reports whether any of them is known.
	general, sm, busy value
	measured          bool
	// worked is when the GPU was last seen to work, heldSince since when
	// workloads hold its memory, zero if none does.
	worked, heldSince time.Time
	// failed is when the GPU was first seen as failed, zero if it works, and victims
	// are the workloads that held it.
	failed  time.Time
	victims []Victim
	signals signals
	// recovery is an mlattr.GPURecoveryAction, index the driver's index of the GPU.
	recovery value
	index    string
	// price is what an hour costs, in US dollars, if priced.
	price  float64
	priced bool
}

// holderKey identifies a holder.
type holderKey struct {
	Workload
	service string
}

// holder is a workload that a GPU had.
type holder struct {
	at, seen time.Time
	// memory reports whether it holds any.
	memory bool
	owner  Owner
	// since is when it began to hold memory, lost when a reading was first without
	// it, zero if the newest one has it.
	since, lost time.Time
	// pid is the process of the owner's rank, 0 if unknown.
	pid int64
}

// releasedAfter is the time after which a workload that is in no reading has
// released the GPU: the metrics of one reading may arrive in several requests.
const releasedAfter = 30 * time.Second

// unreadAfter is the time without a reading after which a GPU is not held.
const unreadAfter = 3 * time.Minute

// holds reports whether the workload holds the GPU, as far as its host lets one know:
// asOf is Fleet.asOf.
func (h *holder) holds(g *gpu, asOf time.Time) bool {
	return !h.since.IsZero() && asOf.Sub(g.seen) <= unreadAfter
}

// settle determines whether the workload still holds the GPU.
func (h *holder) settle(g *gpu, now time.Time) {
	switch {
	case h.memory && g.current(ofWorkloads, h.at):
		h.lost = time.Time{}
		if h.since.IsZero() {
			h.since = h.seen
		}
	case h.lost.IsZero():
		h.lost = now
	case now.Sub(h.lost) >= releasedAfter:
		h.since = time.Time{}
	}
}

// Victim is a run that held a GPU, or a workload without one.
type Victim struct {
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

// late reports whether workloads arrive after a newer reading of those of their GPU: it
// was sent again, or waited in a queue. Where no newer one has come for 3 minutes, the
// host's clock was set back, and the reading is not late.
func (f *Fleet) late(key Key, r Reading) bool {
	g := f.all[key]
	return g != nil && g.read[ofWorkloads].late(r)
}

// read returns the GPU of a reading of a metric, or nil beyond the limit and for one that
// is late.
func (f *Fleet) read(key Key, m Metric, r *Reading) *gpu {
	g, known := f.all[key]
	if !known {
		if len(f.all) >= maxGPUs {
			return nil
		}
		g = &gpu{}
		key = Key{strings.Clone(key.Host), strings.Clone(key.ID)}
		f.all[key] = g
		if f.hosts[key.Host] == nil {
			f.hosts[key.Host] = new(silence.Sender)
		}
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
func (g *gpu) current(m Metric, at time.Time) bool {
	read := &g.read[m]
	return !at.IsZero() && read.at.Sub(at) < oneReading && g.seen.Sub(read.seen) <= max(read.every*3/2, oneArrival)
}

// Hold records a workload, and whether it holds memory. Of a GPU without an id only its
// run is known to hold one.
func (f *Fleet) Hold(key Key, w Workload, memory bool, owner Owner, r Reading) {
	if w.Run != "" && memory && !f.late(key, r) {
		f.see(Run{w.Run, owner.Service}, r.Now)
	}
	if key.ID == "" {
		return
	}
	g := f.read(key, ofWorkloads, &r)
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
		h = &holder{}
		g.holders[holderKey{Workload{strings.Clone(w.Run), w.Other}, strings.Clone(owner.Service)}] = h
		f.holders++
	}
	// Several ranks of a run may have one GPU.
	h.memory = memory || h.memory && h.at.Equal(r.At)
	h.at, h.seen = r.At, r.Now
	if owner != h.owner {
		h.owner = owner.Clone()
	}
}

// Index records the driver's index of a GPU that is read.
func (f *Fleet) Index(key Key, index string) {
	if g := f.all[key]; g != nil && g.index != index && index != "" {
		g.index = strings.Clone(index)
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

// Set records the value of a metric of a GPU. One that is implausible only shows that the
// GPU is read.
func (f *Fleet) Set(key Key, m Metric, to float64, r Reading) {
	g := f.read(key, m, &r)
	if g == nil {
		return
	}
	switch m {
	case Utilization:
		g.use(&g.general, to, r)
	case SMUtilization:
		g.use(&g.sm, to, r)
	case BusyTime:
		g.addBusy(to, r)
	case Recovery:
		g.recovery = value{to, r.At}
	case Price:
		g.price, g.priced = to, true
	default:
		g.signals.set(m, to, r)
	}
}

// use records a utilization, 0 to 1.
func (g *gpu) use(v *value, utilization float64, r Reading) {
	v.value, v.at = utilization, r.At
	g.measured = true
	if utilization > 0 {
		g.worked = r.Now
	}
}

// addBusy records the counter of a GPU's busy time, in seconds.
func (g *gpu) addBusy(seconds float64, r Reading) {
	if !g.busy.at.IsZero() && seconds > g.busy.value {
		g.worked = r.Now
	}
	g.busy, g.measured = value{seconds, r.At}, true
}

// Health records whether a GPU has failed.
func (f *Fleet) Health(key Key, failed bool, r Reading) {
	g := f.read(key, ofHealth, &r)
	switch {
	case g == nil:
	case !failed:
		g.failed, g.victims = time.Time{}, nil
	case g.failed.IsZero():
		g.failed = r.Now
	}
}

// Prices returns what an hour of each GPU costs that is read. GPUs whose price is
// unknown are absent.
func (f *Fleet) Prices(now time.Time) map[Key]float64 {
	prices := make(map[Key]float64)
	for key, g := range f.all {
		if g.priced && !f.silent(key.Host, now) {
			prices[key] = g.price
		}
	}
	return prices
}

// Settle must be called before the other methods that read: it forgets what was
// not read for 5 minutes, of a silent host or if it has failed for a day, and concludes
// since when GPUs are held and which workloads held those that failed. services are those
// that have a run with an id.
func (f *Fleet) Settle(services map[string][]string, now time.Time) {
	f.services = services
	full := len(f.all) >= maxGPUs
	hosts := make(map[string]bool, len(f.hosts))
	for key, g := range f.all {
		asOf := f.asOf(key.Host, now)
		switch age := now.Sub(g.seen); {
		case age <= GoneAfter:
		case full || age > rememberSilent || g.failed.IsZero() && asOf.Sub(g.seen) > GoneAfter:
			f.holders -= len(g.holders)
			delete(f.all, key)
			continue
		default:
			g.priced = false
		}
		hosts[key.Host] = true
		held := false
		for w, h := range g.holders {
			held = held || h.memory && g.current(ofWorkloads, h.at)
			h.settle(g, asOf)
			if asOf.Sub(h.seen) > GoneAfter {
				delete(g.holders, w)
				f.holders--
			}
		}
		if !held {
			g.heldSince = time.Time{}
		} else if g.heldSince.IsZero() {
			g.heldSince = g.seen
		}
		if !g.failed.IsZero() {
			g.blame()
		}
	}
	for host := range f.hosts {
		if !hosts[host] {
			delete(f.hosts, host)
		}
	}
}

// Hosts returns the hosts whose GPUs are read.
func (f *Fleet) Hosts(now time.Time) map[string]bool {
	hosts := make(map[string]bool, len(f.hosts))
	for host := range f.hosts {
		if !f.silent(host, now) {
			hosts[host] = true
		}
	}
	return hosts
}

// RunsOf returns the runs that a workload of a run belongs to: that of its service, else,
// as the process may have named another service or none, those of all services that have
// one with its id, else one that is not known otherwise.
func (f *Fleet) RunsOf(workload Run) []Run {
	services := f.services[workload.ID]
	if len(services) == 0 || slices.Contains(services, workload.Service) {
		return []Run{workload}
	}
	runs := make([]Run, 0, len(services))
	for _, service := range services {
		runs = append(runs, Run{workload.ID, service})
	}
	return runs
}

// run returns the run as the workload names it.
func (k holderKey) run() Run { return Run{k.Run, k.service} }

// Hold is what a run holds.
type Hold struct {
	// Since is since when the run holds GPU memory, zero if it holds none now.
	Since time.Time
	// Silent is when the newest of its GPUs was read, if the hosts of all of them are
	// silent, else zero. Host is the first of its hosts that is silent, or "".
	Silent time.Time
	Host   string
}

// Holding returns what each run holds whose workloads are known. Of a silent host, that
// is what its last reading said.
func (f *Fleet) Holding(now time.Time) map[Run]Hold {
	holding, heard := make(map[Run]Hold), make(map[Run]bool)
	for key, g := range f.all {
		asOf := f.asOf(key.Host, now)
		for w, h := range g.holders {
			if w.Run == "" {
				continue
			}
			for _, run := range f.RunsOf(w.run()) {
				of := holding[run]
				if h.holds(g, asOf) {
					if of.Since.IsZero() || h.since.Before(of.Since) {
						of.Since = h.since
					}
					if asOf.Equal(now) {
						heard[run] = true
					} else {
						of.seeSilent(key.Host, asOf)
					}
				}
				holding[run] = of
			}
		}
	}
	for run := range heard {
		of := holding[run]
		of.Silent = time.Time{}
		holding[run] = of
	}
	return holding
}

// seeSilent adds a GPU of a silent host that was last read at a time.
func (h *Hold) seeSilent(host string, last time.Time) {
	if last.After(h.Silent) {
		h.Silent = last
	}
	if h.Host == "" || host < h.Host {
		h.Host = host
	}
}

// maxVictims limits the workloads that are named for one failed GPU.
const maxVictims = 8

// blame adds the workloads that hold a failed GPU, or held it shortly before. Those of
// one service without a run are known by the first one.
func (g *gpu) blame() {
	for w, h := range g.holders {
		if !h.memory || g.failed.Sub(h.seen) > GoneAfter {
			continue
		}
		known := slices.ContainsFunc(g.victims, func(v Victim) bool { return v.Run == w.Run && v.Owner.Service == h.owner.Service })
		if !known && len(g.victims) < maxVictims {
			g.victims = append(g.victims, Victim{w.Run, h.owner})
		}
	}
}

// Use is what a run has of GPUs.
type Use struct {
	// GPUs is the number of GPUs that it holds. A GPU that several workloads hold
	// is divided equally.
	GPUs float64
	// Utilization is the mean over its GPUs, of the SMs where that is known,
	// negative if none is known.
	Utilization float64
	// Price is what an hour of its GPUs costs, in US dollars, negative if that of
	// one is not known.
	Price float64
}

// Runs returns what each run has of GPUs that are read.
func (f *Fleet) Runs(now time.Time) map[Run]Use {
	type sum struct {
		Use
		utilization        float64
		measured, unpriced int
	}
	sums := make(map[Run]*sum)
	for key, g := range f.all {
		if f.silent(key.Host, now) {
			continue
		}
		workloads := 0
		for _, h := range g.holders {
			if g.current(ofWorkloads, h.at) {
				workloads++
			}
		}
		for w, h := range g.holders {
			if w.Run == "" || !g.current(ofWorkloads, h.at) {
				continue
			}
			for _, id := range f.RunsOf(w.run()) {
				run := sums[id]
				if run == nil {
					run = &sum{}
					sums[id] = run
				}
				run.GPUs += 1 / float64(workloads)
				run.Price += g.price / float64(workloads)
				if !g.priced {
					run.unpriced++
				}
				if utilization, ok := g.utilization(); ok {
					run.utilization += utilization
					run.measured++
				}
			}
		}
	}
	uses := make(map[Run]Use, len(sums))
	for id, run := range sums {
		run.Utilization = -1
		if run.measured > 0 {
			run.Utilization = run.utilization / float64(run.measured)
		}
		if run.unpriced > 0 {
			run.Price = -1
		}
		uses[id] = run.Use
	}
	return uses
}

// Service is a service on a host.
type Service struct{ Host, Service string }

// Services returns the mean utilization of the GPUs whose memory each service holds
// on each host, as far as that is known.
func (f *Fleet) Services(now time.Time) map[Service]float64 {
	type mean struct {
		sum      float64
		measured int
	}
	means := make(map[Service]mean)
	for key, g := range f.all {
		utilization, ok := g.utilization()
		if !ok || f.silent(key.Host, now) {
			continue
		}
		counted := make(map[string]bool, len(g.holders))
		for _, h := range g.holders {
			if h.owner.Service == "" || !h.memory || !g.current(ofWorkloads, h.at) || counted[h.owner.Service] {
				continue
			}
			counted[h.owner.Service] = true
			of := Service{key.Host, h.owner.Service}
			means[of] = mean{means[of].sum + utilization, means[of].measured + 1}
		}
	}
	uses := make(map[Service]float64, len(means))
	for of, m := range means {
		uses[of] = m.sum / float64(m.measured)
	}
	return uses
}

// utilization returns the utilization of the SMs, else the general one.
func (g *gpu) utilization() (float64, bool) {
	switch {
	case g.current(SMUtilization, g.sm.at):
		return g.sm.value, true
	case g.current(Utilization, g.general.at):
		return g.general.value, true
	default:
		return 0, false
	}
}

// Idle is the time for which a GPU does nothing.
type Idle struct {
	Since time.Time
	For   time.Duration
	// Seen is when the GPU was last read. Holder is the workload that has held it for the
	// longest time, Run that of the workload, "" if it has none.
	Seen   time.Time
	Holder Owner
	Run    string
	// Memory is what is used of its memory, in bytes, 0 if unknown.
	Memory float64
}

// Idle returns the GPUs that are read, that workloads hold and whose use is known, and
// since when each does nothing: the time of its last reading if it works.
func (f *Fleet) Idle(now time.Time) map[Key]Idle {
	idle := make(map[Key]Idle)
	for key, g := range f.all {
		if g.heldSince.IsZero() || !g.measured || f.silent(key.Host, now) {
			continue
		}
		since := g.heldSince
		if g.worked.After(since) {
			since = g.worked
		}
		used := g.used()
		one := Idle{Since: since, For: max(used.Sub(since), 0), Seen: used, Memory: g.signals.used}
		one.Run, one.Holder = g.holder()
		idle[key] = one
	}
	return idle
}

// used returns when a reading of the GPU's use arrived last.
func (g *gpu) used() (last time.Time) {
	for _, m := range [...]Metric{Utilization, SMUtilization, BusyTime} {
		if seen := g.read[m].seen; seen.After(last) {
			last = seen
		}
	}
	return last
}

// holder returns the workload that has held the GPU for the longest time, and its run, "" if
// it has none.
func (g *gpu) holder() (run string, of Owner) {
	var first *holder
	for w, h := range g.holders {
		if !h.memory || !g.current(ofWorkloads, h.at) || h.owner == (Owner{}) && w.Run == "" {
			continue
		}
		if first == nil || cmp.Or(h.since.Compare(first.since), cmp.Compare(w.Run, run), cmp.Compare(h.owner.Service, first.owner.Service), cmp.Compare(h.owner.Job, first.owner.Job)) < 0 {
			run, first, of = w.Run, h, h.owner
		}
	}
	return run, of
}

// Reads are when GPUs were read last.
type Reads struct {
	GPUs map[Key]time.Time
	// Runs has the newest reading of the GPUs that each run holds, or held within 5
	// minutes, also of those without an id.
	Runs map[Run]time.Time
}

// Reads returns when the GPUs were read last.
func (f *Fleet) Reads() Reads {
	reads := Reads{make(map[Key]time.Time, len(f.all)), make(map[Run]time.Time)}
	for key, g := range f.all {
		reads.GPUs[key] = g.seen
		for w := range g.holders {
			for _, run := range f.RunsOf(w.run()) {
				if g.seen.After(reads.Runs[run]) {
					reads.Runs[run] = g.seen
				}
			}
		}
	}
	for workload, last := range f.seen {
		for _, run := range f.RunsOf(workload) {
			if last.After(reads.Runs[run]) {
				reads.Runs[run] = last
			}
		}
	}
	return reads
}

// Failure is a GPU that has failed.
type Failure struct {
	// Since is when it was first seen as failed, Seen when it was last.
	Since, Seen time.Time
	// Held are the workloads that held it.
	Held []Victim
	// Recovery is what the driver asks for, an mlattr.GPURecoveryAction.
	Recovery int
	// Index is the driver's index of the GPU, "" if unknown.
	Index string
}

// Failed returns the GPUs that have failed.
func (f *Fleet) Failed() map[Key]Failure {
	failed := make(map[Key]Failure)
	for key, g := range f.all {
		if !g.failed.IsZero() {
			one := Failure{Since: g.failed, Seen: g.read[ofHealth].seen, Held: slices.Clone(g.victims), Index: g.index}
			if g.current(Recovery, g.recovery.at) {
				one.Recovery = int(g.recovery.value)
			}
			failed[key] = one
		}
	}
	return failed
}
