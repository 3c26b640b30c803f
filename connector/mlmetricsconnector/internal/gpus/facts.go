package gpus

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/links"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

const (
	// maxRuns limits the runs that are remembered to hold GPUs, and to have released
	// them; rememberReleased is for how long the latter are.
	maxRuns          = 8192
	rememberReleased = 24 * time.Hour
	// maxHosts limits the hosts that are remembered, rememberHeard is for how long
	// after their last data.
	maxHosts      = 8192
	rememberHeard = time.Hour
	// rememberSilent is how long the GPUs of a silent host are remembered, of which nobody
	// knows what has become, and one that has failed: as long as their problems last.
	rememberSilent = 24 * time.Hour
	// maxVictims limits the workloads that are named for one failed GPU.
	maxVictims = 8
)

// Facts is what an emission knows of GPUs and their hosts.
type Facts struct {
	// GPUs are those that are remembered, Hosts those of them and all that have sent
	// something, Runs those that hold GPUs or have held them.
	GPUs  map[Key]GPU
	Hosts map[string]Host
	Runs  map[Run]Used
	// Services has the GPUs whose memory each service holds on each host, as far as their
	// utilization is known.
	Services map[Service]Utilization
	// Hit are the ids of the runs that held a GPU that has failed.
	Hit map[string]bool
	// Faults has those of links and file systems of each host.
	Faults map[string][]links.Fault

	// holderIDs are the ids of runs that hold GPU memory, or did within GoneAfter or when a
	// host of their GPUs was last read that is silent.
	holderIDs map[string]bool
}

// GPU is what is known of a GPU.
type GPU struct {
	// Read is when it was last read.
	Read time.Time
	// Idle is for how long it does nothing, nil unless it is read, workloads hold it and its
	// use is known. Failure is nil unless it has failed.
	Idle    *Idle
	Failure *Failure
	// price is what an hour of it costs while it is read, NaN if unknown.
	price float64
}

// Host is what is known of a host.
type Host struct {
	// Heard is when it has last sent anything, and Back when its GPUs were read again after
	// they were not.
	Heard, Back time.Time
	// Read reports whether its GPUs are read. Silent is nil unless they are not any more, and
	// the host sends nothing else.
	Read   bool
	Silent *SilentHost
}

// Used is what a run has of GPUs.
type Used struct {
	Held
	// Use is what it has of those that are read, nil if it has none. All has each of them in
	// the order of their hosts and ids, of a silent host as it was last.
	Use *Use
	All []*State
	// Read is when the GPUs that it holds, or held within 5 minutes, were last read, also
	// those without an id.
	Read time.Time
}

// Use is what a run has of GPUs that are read.
type Use struct {
	// GPUs is the number of GPUs that it holds. A GPU that several workloads hold
	// is divided equally.
	GPUs float64
	Utilization
	// Price is what an hour of its GPUs costs, in US dollars, NaN if that of one is not
	// known.
	Price float64
}

// Utilization is the mean utilization of GPUs, of the SMs where that is known.
type Utilization struct {
	sum      float64
	measured int
}

// Mean returns it, NaN if none is known.
func (u Utilization) Mean() float64 { return u.sum / float64(u.measured) }

// add adds a GPU, if its utilization is known.
func (u *Utilization) add(g *gpu) {
	if utilization, ok := g.utilization(gpupoint.SMUtilization, gpupoint.Utilization); ok {
		u.sum, u.measured = u.sum+utilization, u.measured+1
	}
}

// Service is a service on a host.
type Service struct{ Host, Service string }

// Idle is the time for which a GPU does nothing.
type Idle struct {
	// Since is the time of its last reading if it works.
	Since time.Time
	For   time.Duration
	// Seen is when the GPU was last read. Holding is the workload that has held it for the
	// longest time.
	Seen time.Time
	Holding
	// Memory is what is used of its memory, in bytes, 0 if unknown.
	Memory float64
}

// Failure is a GPU that has failed.
type Failure struct {
	// Since is when it was first seen as failed, Seen when it was last.
	Since, Seen time.Time
	// Held are the workloads that held it.
	Held []Holding
	// Recovery is what the driver asks for, an mlattr.GPURecoveryAction.
	Recovery int
	// Index is the driver's index of the GPU, "" if unknown.
	Index string
}

// SilentHost is a host whose GPUs are not read any more.
type SilentHost struct {
	// Since is when they were last read, Noticed when the host had been silent for
	// three of its intervals.
	Since, Noticed time.Time
	// Workloads are those that held memory of a GPU then, once for each GPU.
	Workloads []HeldBy
}

// HeldBy is a workload that held a GPU at its last reading.
type HeldBy struct {
	Holding
	GPU Key
	// Worked is when its GPU was last seen to work, zero if it never was.
	Worked time.Time
}

// Holds reports whether a run with an id holds GPUs.
func (f *Facts) Holds(id string) bool { return f.holderIDs[id] }

// Held is what a run has of GPUs at an emission.
type Held struct {
	// Since is since when the run holds GPU memory by the newest readings, zero if it holds
	// none now.
	Since time.Time
	// Silent is when the newest of its GPUs was read, if the hosts of all of them are
	// silent, else zero. Host is the first of its hosts that is silent, or "".
	Silent time.Time
	Host   string
	// heard reports whether one of its GPUs is read.
	heard bool
	// Now reports whether its processes hold GPUs. Again is Since if they had released
	// them before, as for another attempt, else zero.
	Now   bool
	Again time.Time
	// Released reports whether they held GPUs before and hold none now: the run was
	// stopped as a whole, and a span of it that arrives late does not show that a rank
	// goes on.
	Released bool
}

// Write adds the series of GPUs and hosts to the store.
func (f *Facts) Write(store *streams.Store, now time.Time) {
	write := func(host string, id series.ID, value float64, at time.Time, labels ...string) {
		of := &streams.Source{Run: streams.Run{Host: host}}
		store.Apply([]streams.Update{streams.ValueAt(of, id, value, now, labels...)}, at)
	}
	for key, g := range f.GPUs {
		if g.Idle != nil {
			write(key.Host, series.GPUIdleTime, g.Idle.For.Seconds(), now, key.ID)
		}
		if g.price >= 0 {
			write(key.Host, series.GPUPrice, g.price, now, key.ID)
		}
	}
	for name, host := range f.Hosts {
		if !host.Heard.IsZero() {
			write(name, series.HostLastData, float64(host.Heard.UnixNano())/1e9, host.Heard)
		}
	}
}

// Facts returns what is known of GPUs and their hosts, and forgets what was not read for
// 5 minutes, of a silent host or if it has failed for a day. services are those that have a
// run with an id.
func (f *Fleet) Facts(services map[string][]string, hosts *Hosts, now time.Time) *Facts {
	facts := &Facts{
		GPUs: make(map[Key]GPU), Hosts: make(map[string]Host), Runs: make(map[Run]Used), Services: make(map[Service]Utilization),
		Hit: make(map[string]bool), holderIDs: make(map[string]bool),
	}
	f.services = services
	full := len(f.all) >= maxGPUs
	// In order, so that sums of fractions, and what a limit leaves out, do not change.
	for _, key := range slices.SortedFunc(maps.Keys(f.all), compareKeys) {
		sender := f.hosts[key.Host]
		g := f.all[key]
		if g.silent, g.asOf = sender.Silent(now), now; g.silent {
			g.asOf = sender.Last
		}
		if age := now.Sub(g.seen); age > GoneAfter {
			if full || age > rememberSilent || g.failed.IsZero() && g.asOf.Sub(g.seen) > GoneAfter {
				f.holders -= len(g.holders)
				delete(f.all, key)
				continue
			}
			g.values[Price] = value{}
		}
		host, known := facts.Hosts[key.Host]
		if !known && g.silent {
			host.Silent = &SilentHost{Since: sender.Last, Noticed: sender.Last.Add(sender.After())}
		}
		facts.Hosts[key.Host] = host
		all := f.settle(g)
		for _, h := range all {
			f.add(facts, g, h)
		}
		facts.GPUs[key] = facts.add(g, all)
	}
	for name, sender := range f.hosts {
		host, known := facts.Hosts[name]
		if !known {
			delete(f.hosts, name)
			continue
		}
		if host.Back, host.Read = sender.Back, !sender.Silent(now); name != "" {
			host.Heard = sender.Last
		}
		facts.Hosts[name] = host
	}
	hosts.add(facts, now)
	f.remember(facts, now)
	return facts
}

// settle forgets workloads of a GPU, returns the others in order, and concludes since when
// they hold it, and which held it when it failed.
func (f *Fleet) settle(g *gpu) []*holder {
	g.present, g.holding = 0, 0
	for w, h := range g.holders {
		h.settle(g)
		if g.asOf.Sub(h.seen) > GoneAfter {
			delete(g.holders, w)
			f.holders--
			continue
		}
		g.present += shared.OneIf[int](h.current)
		g.holding += shared.OneIf[int](h.holds())
	}
	if g.heldSince = cmp.Or(g.heldSince, g.seen); g.holding == 0 {
		g.heldSince = time.Time{}
	}
	all := slices.SortedFunc(maps.Values(g.holders), compareHolders)
	if g.failed.IsZero() {
		return all
	}
	// Those of one service without a run are known by the first one.
	for _, h := range all {
		same := func(v Holding) bool { return v.Run == h.Run && v.Owner.Service == h.service }
		if h.memory && g.failed.Sub(h.seen) <= GoneAfter && len(g.victims) < maxVictims && !slices.ContainsFunc(g.victims, same) {
			g.victims = append(g.victims, h.holding())
		}
	}
	return all
}

// add adds a workload of a GPU.
func (f *Fleet) add(to *Facts, g *gpu, h *holder) {
	holds := !h.since.IsZero() && g.asOf.Sub(g.seen) <= unreadAfter
	if holds && g.silent {
		silent := to.Hosts[g.Host].Silent
		silent.Workloads = append(silent.Workloads, HeldBy{h.holding(), g.Key, g.worked})
	}
	if h.Run == "" {
		return
	}
	var state *State
	if h.holds() {
		state = g.state(h)
		if g.holding == 1 {
			g.forecast(state, h)
		}
	}
	for _, run := range f.runsOf(Run{h.Run, h.service}) {
		of := to.Runs[run]
		of.Read = shared.Later(of.Read, g.seen)
		if holds {
			of.hold(g, h)
		}
		if h.current && !g.silent {
			if of.Use == nil {
				of.Use = new(Use)
			}
			part := float64(g.present)
			of.Use.GPUs, of.Use.Price = of.Use.GPUs+1/part, of.Use.Price+g.price()/part
			of.Use.add(g)
		}
		if h.holds() {
			of.All = append(of.All, state)
		}
		to.Runs[run] = of
	}
}

// hold adds a GPU that a run holds.
func (of *Held) hold(g *gpu, h *holder) {
	of.Since = shared.Earlier(of.Since, h.since)
	if !g.silent {
		of.heard, of.Silent = true, time.Time{}
	} else if of.Host = cmp.Or(of.Host, g.Host); !of.heard { // hosts are in order
		of.Silent = shared.Later(of.Silent, g.asOf)
	}
}

// add returns what is known of a GPU with these workloads, and adds it to their services and,
// if it has failed, its runs.
func (f *Facts) add(g *gpu, all []*holder) (is GPU) {
	is.Read, is.price = g.seen, math.NaN()
	if !g.failed.IsZero() {
		is.Failure = &Failure{Since: g.failed, Seen: g.read[gpupoint.Status].seen, Held: slices.Clone(g.victims), Index: g.index}
		if action := g.values[gpupoint.Recovery]; g.current(gpupoint.Recovery, action.at) {
			is.Failure.Recovery = int(action.value)
		}
		for _, victim := range g.victims {
			f.Hit[victim.Run] = true
		}
	}
	if g.silent {
		return is
	}
	is.price = g.price()
	_, measured := g.utilization(gpupoint.SMUtilization, gpupoint.Utilization)
	counted, first := "", (*holder)(nil)
	for _, h := range all {
		if !h.holds() {
			continue
		}
		if (h.owner != (Owner{}) || h.Run != "") && (first == nil || cmp.Or(h.since.Compare(first.since), cmp.Compare(h.Run, first.Run)) < 0) {
			first = h
		}
		if measured && h.service != counted {
			of := Service{g.Host, h.service}
			mean := f.Services[of]
			mean.add(g)
			f.Services[of] = mean
			counted = h.service // they are in order
		}
	}
	if used := g.used(); !g.heldSince.IsZero() && !used.IsZero() {
		since := shared.Later(g.heldSince, g.worked)
		is.Idle = &Idle{Since: since, For: max(used.Sub(since), 0), Seen: used, Memory: g.values[gpupoint.MemoryUsed].value}
		if first != nil {
			is.Idle.Holding = first.holding()
		}
	}
	return is
}

// remember concludes which runs hold GPUs or have released them, as readings and, of those
// without an id, workloads say.
func (f *Fleet) remember(facts *Facts, now time.Time) {
	for run, of := range facts.Runs {
		if of.Now = !of.Since.IsZero(); !of.Silent.IsZero() {
			facts.holderIDs[run.ID] = true
		}
		facts.Runs[run] = of
		if _, known := f.released[run]; !of.Now && (known || len(f.released) < maxRuns) {
			f.released[Run{strings.Clone(run.ID), strings.Clone(run.Service)}] = now
		}
	}
	for run, last := range f.seen {
		if now.Sub(last) > GoneAfter {
			delete(f.seen, run)
			continue
		}
		facts.holderIDs[run.ID] = true
		for _, other := range f.runsOf(run) {
			of, known := facts.Runs[other]
			of.Now, of.Read = of.Now || !known, shared.Later(of.Read, last)
			facts.Runs[other] = of
		}
	}
	for run, at := range f.released {
		if now.Sub(at) > rememberReleased {
			delete(f.released, run)
			continue
		}
		of := facts.Runs[run]
		of.Again, of.Released = of.Since, !of.Now
		facts.Runs[run] = of
	}
}

// runsOf returns the runs that a workload of a run belongs to: that of its service, else,
// as the process may have named another service or none, those of all services that have
// one with its id, else one that is not known otherwise.
func (f *Fleet) runsOf(workload Run) []Run {
	services := f.services[workload.ID]
	if len(services) == 0 || slices.Contains(services, workload.Service) {
		return []Run{workload}
	}
	return mlattr.Mapped(services, func(service string) Run { return Run{workload.ID, service} })
}

func compareKeys(a, b Key) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) }

func compareHolders(a, b *holder) int {
	x, y := &a.owner, &b.owner
	return cmp.Or(
		cmp.Compare(a.service, b.service), cmp.Compare(a.Run, b.Run), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Job, y.Job),
		cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Pod, y.Pod), cmp.Compare(x.Container, y.Container), cmp.Compare(x.UserID, y.UserID),
	)
}

// see records that a run holds GPU memory, as its workload names it.
func (f *Fleet) see(run Run, now time.Time) {
	if _, known := f.seen[run]; known {
		f.seen[run] = now
	} else if len(f.seen) < maxRuns {
		f.seen[Run{strings.Clone(run.ID), strings.Clone(run.Service)}] = now
	}
}

// Holders returns the ids of the runs that were seen to hold GPU memory.
func (f *Fleet) Holders() map[string]bool {
	ids := make(map[string]bool, len(f.seen))
	for run := range f.seen {
		ids[run.ID] = true
	}
	return ids
}

// Hosts has when hosts have sent spans or metrics, not what ml_metrics computes of them.
// The zero Hosts is ready to use. It is safe for concurrent use.
type Hosts struct {
	mu  sync.Mutex
	all map[string]*silence.Sender
}

// See records that hosts have sent something. An empty name is no host.
func (h *Hosts) See(now time.Time, hosts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, host := range hosts {
		if host == "" {
			continue
		}
		if one := shared.Bounded(&h.all, host, maxHosts, strings.Clone); one != nil {
			one.See(now)
		}
	}
}

// add adds when the hosts have sent to the facts, takes out of the silent ones those
// that still send something, and forgets hosts.
func (h *Hosts) add(facts *Facts, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, sender := range h.all {
		if now.Sub(sender.Last) > rememberHeard {
			delete(h.all, name)
			continue
		}
		host := facts.Hosts[name]
		if sender.Last.After(host.Heard) {
			host.Heard, host.Back = sender.Last, sender.Back
		}
		if !sender.Silent(now) {
			host.Silent = nil
		}
		facts.Hosts[name] = host
	}
}
