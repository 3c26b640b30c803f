package gpus

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
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
	// Uses is what each run has of GPUs that are read, States each of its GPUs in the order
	// of their hosts and ids, of a silent host as it was last.
	Uses   map[Run]Use
	States map[Run][]State
	// Services is the mean utilization of the GPUs whose memory each service holds on each
	// host, as far as that is known.
	Services map[Service]float64
	// Idle has the GPUs that are read, that workloads hold and whose use is known, Prices what
	// an hour of each GPU costs that is read, as far as that is known.
	Idle   map[Key]Idle
	Prices map[Key]float64
	Failed map[Key]Failure
	// Hosts are those whose GPUs are read. Silent are those whose are not any more and that
	// send nothing else, Heard is when each has last sent anything, and Back when its GPUs
	// were read again after they were not.
	Hosts  map[string]bool
	Silent map[string]SilentHost
	Heard  map[string]time.Time
	Back   map[string]time.Time
	// Read is when each GPU was read last, ReadOf that of the GPUs that each run holds, or held
	// within 5 minutes, also of those without an id.
	Read   map[Key]time.Time
	ReadOf map[Run]time.Time

	// holderIDs are the ids of runs that hold GPU memory, or did within GoneAfter or when a
	// host of their GPUs was last read that is silent, and held is what each run holds.
	holderIDs map[string]bool
	held      map[Run]Held
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

// HeldBy returns what a run holds.
func (f *Facts) HeldBy(run Run) Held { return f.held[run] }

// Write adds the series of GPUs and hosts to the store.
func (f *Facts) Write(store *streams.Store, now time.Time) (over streams.Overflowed) {
	write := func(host string, id series.ID, value float64, at time.Time, labels ...string) {
		of := &streams.Source{Run: streams.Run{Host: host}}
		over.Add(store.Apply([]streams.Update{streams.ValueAt(of, id, value, now, labels...)}, at))
	}
	for key, idle := range f.Idle {
		write(key.Host, series.GPUIdleTime, idle.For.Seconds(), now, key.ID)
	}
	for key, price := range f.Prices {
		write(key.Host, series.GPUPrice, price, now, key.ID)
	}
	for host, last := range f.Heard {
		write(host, series.HostLastData, float64(last.UnixNano())/1e9, last)
	}
	return over
}

// look is a GPU at an emission.
type look struct {
	*gpu
	Key
	// silent reports whether no reading of its host's GPUs has come for three of its
	// intervals, and asOf is the time until which something is known of it: the time of
	// that reading if so, else now.
	silent bool
	asOf   time.Time
	// present are the workloads of its newest reading, of which holding hold memory.
	present, holding int
}

// mean is a mean of utilizations.
type mean struct {
	Use
	sum                float64
	measured, unpriced int
}

// add adds the utilization of a GPU.
func (m *mean) add(g *gpu) {
	if utilization, ok := g.utilization(gpupoint.SMUtilization, gpupoint.Utilization); ok {
		m.sum, m.measured = m.sum+utilization, m.measured+1
	}
}

// Facts returns what is known of GPUs and their hosts, and forgets what was not read for
// 5 minutes, of a silent host or if it has failed for a day. services are those that have a
// run with an id.
func (f *Fleet) Facts(services map[string][]string, hosts *Hosts, now time.Time) *Facts {
	facts := &Facts{
		Uses: make(map[Run]Use), States: make(map[Run][]State), Services: make(map[Service]float64), Idle: make(map[Key]Idle),
		Prices: make(map[Key]float64), Failed: make(map[Key]Failure), Hosts: make(map[string]bool), Silent: make(map[string]SilentHost),
		Heard: make(map[string]time.Time), Back: make(map[string]time.Time), Read: make(map[Key]time.Time), ReadOf: make(map[Run]time.Time),
		holderIDs: make(map[string]bool), held: make(map[Run]Held),
	}
	f.services = services
	means, full, known := make(map[Run]*mean), len(f.all) >= maxGPUs, make(map[string]bool, len(f.hosts))
	ofServices := make(map[Service]*mean)
	// In order, so that sums of fractions, and what a limit leaves out, do not change.
	for _, key := range slices.SortedFunc(maps.Keys(f.all), compareKeys) {
		host := f.hosts[key.Host]
		l := look{gpu: f.all[key], Key: key, silent: host.Silent(now), asOf: now}
		if l.silent {
			l.asOf = host.Last
		}
		if age := now.Sub(l.seen); age > GoneAfter {
			if full || age > rememberSilent || l.failed.IsZero() && l.asOf.Sub(l.seen) > GoneAfter {
				f.holders -= len(l.holders)
				delete(f.all, key)
				continue
			}
			l.values[Price] = value{}
		}
		known[key.Host] = true
		if l.silent {
			of := facts.Silent[key.Host]
			of.Since, of.Noticed = host.Last, host.Last.Add(host.After())
			facts.Silent[key.Host] = of
		}
		all := f.settle(&l)
		for _, h := range all {
			f.add(facts, &l, h, means)
		}
		facts.add(&l, all, ofServices)
	}
	for host, one := range f.hosts {
		if !known[host] {
			delete(f.hosts, host)
			continue
		}
		facts.Heard[host], facts.Back[host] = one.Last, one.Back
		if !one.Silent(now) {
			facts.Hosts[host] = true
		}
	}
	for run, m := range means {
		m.Utilization = -1
		if m.measured > 0 {
			m.Utilization = m.sum / float64(m.measured)
		}
		if m.unpriced > 0 {
			m.Price = -1
		}
		facts.Uses[run] = m.Use
	}
	for of, m := range ofServices {
		facts.Services[of] = m.sum / float64(m.measured)
	}
	hosts.add(facts, now)
	f.remember(facts, now)
	return facts
}

// settle forgets workloads of a GPU, returns the others in order, and concludes since when
// they hold it, and which held it when it failed.
func (f *Fleet) settle(l *look) []*holder {
	for w, h := range l.holders {
		h.settle(l.gpu, l.asOf)
		if l.asOf.Sub(h.seen) > GoneAfter {
			delete(l.holders, w)
			f.holders--
			continue
		}
		if h.current {
			l.present++
		}
		if h.holds() {
			l.holding++
		}
	}
	if l.holding == 0 {
		l.heldSince = time.Time{}
	} else if l.heldSince.IsZero() {
		l.heldSince = l.seen
	}
	all := slices.SortedFunc(maps.Values(l.holders), compareHolders)
	if l.failed.IsZero() {
		return all
	}
	// Those of one service without a run are known by the first one.
	for _, h := range all {
		same := func(v Holding) bool { return v.Run == h.Run && v.Owner.Service == h.service }
		if h.memory && l.failed.Sub(h.seen) <= GoneAfter && len(l.victims) < maxVictims && !slices.ContainsFunc(l.victims, same) {
			l.victims = append(l.victims, h.holding())
		}
	}
	return all
}

// add adds a workload of a GPU.
func (f *Fleet) add(to *Facts, l *look, h *holder, means map[Run]*mean) {
	holds := !h.since.IsZero() && l.asOf.Sub(l.seen) <= unreadAfter
	if holds && l.silent {
		of := to.Silent[l.Host]
		of.Workloads = append(of.Workloads, HeldBy{h.holding(), l.Key, l.worked})
		to.Silent[l.Host] = of
	}
	runs := f.runsOf(Run{h.Run, h.service})
	for _, run := range runs {
		to.ReadOf[run] = later(to.ReadOf[run], l.seen)
	}
	if h.Run == "" {
		return
	}
	var state State
	if h.holds() {
		state = l.state(l.Key, h)
		if l.holding == 1 {
			l.forecast(&state, h)
		}
	}
	for _, run := range runs {
		to.hold(run, l, h, holds)
		if h.current && !l.silent {
			if means[run] == nil {
				means[run] = new(mean)
			}
			m, part := means[run], float64(l.present)
			m.GPUs, m.Price = m.GPUs+1/part, m.Price+l.values[Price].value/part
			if l.values[Price].at.IsZero() {
				m.unpriced++
			}
			m.add(l.gpu)
		}
		if h.holds() {
			to.States[run] = append(to.States[run], state)
		}
	}
}

// hold adds a GPU of a run, which holds it or does not any more.
func (f *Facts) hold(run Run, l *look, h *holder, holds bool) {
	of := f.held[run]
	if holds {
		if of.Since.IsZero() || h.since.Before(of.Since) {
			of.Since = h.since
		}
		if !l.silent {
			of.heard, of.Silent = true, time.Time{}
		} else {
			if of.Host = cmp.Or(of.Host, l.Host); !of.heard { // hosts are in order
				of.Silent = later(of.Silent, l.asOf)
			}
		}
	}
	f.held[run] = of
}

// add adds a GPU with these workloads.
func (f *Facts) add(l *look, all []*holder, services map[Service]*mean) {
	f.Read[l.Key] = l.seen
	if !l.failed.IsZero() {
		of := Failure{Since: l.failed, Seen: l.read[gpupoint.Status].seen, Held: slices.Clone(l.victims), Index: l.index}
		if action := l.values[gpupoint.Recovery]; l.current(gpupoint.Recovery, action.at) {
			of.Recovery = int(action.value)
		}
		f.Failed[l.Key] = of
	}
	if l.silent {
		return
	}
	if price := l.values[Price]; !price.at.IsZero() {
		f.Prices[l.Key] = price.value
	}
	_, measured := l.utilization(gpupoint.SMUtilization, gpupoint.Utilization)
	counted, first := "", (*holder)(nil)
	for _, h := range all {
		if !h.holds() {
			continue
		}
		if (h.owner != (Owner{}) || h.Run != "") && (first == nil || cmp.Or(h.since.Compare(first.since), cmp.Compare(h.Run, first.Run)) < 0) {
			first = h
		}
		if measured && h.service != counted {
			of := Service{l.Host, h.service}
			if services[of] == nil {
				services[of] = new(mean)
			}
			services[of].add(l.gpu)
			counted = h.service // they are in order
		}
	}
	if used := l.used(); !l.heldSince.IsZero() && !used.IsZero() {
		since := later(l.heldSince, l.worked)
		of := Idle{Since: since, For: max(used.Sub(since), 0), Seen: used, Memory: l.values[gpupoint.MemoryUsed].value}
		if first != nil {
			of.Holding = first.holding()
		}
		f.Idle[l.Key] = of
	}
}

// remember concludes which runs hold GPUs or have released them, as readings and, of those
// without an id, workloads say.
func (f *Fleet) remember(facts *Facts, now time.Time) {
	for run, of := range facts.held {
		if of.Now = !of.Since.IsZero(); !of.Silent.IsZero() {
			facts.holderIDs[run.ID] = true
		}
		facts.held[run] = of
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
		for _, of := range f.runsOf(run) {
			if _, known := facts.held[of]; !known {
				facts.held[of] = Held{Now: true}
			}
			facts.ReadOf[of] = later(facts.ReadOf[of], last)
		}
	}
	for run, at := range f.released {
		if now.Sub(at) > rememberReleased {
			delete(f.released, run)
			continue
		}
		of := facts.held[run]
		of.Again, of.Released = of.Since, !of.Now
		facts.held[run] = of
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
	runs := make([]Run, 0, len(services))
	for _, service := range services {
		runs = append(runs, Run{workload.ID, service})
	}
	return runs
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
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
		if h.all == nil {
			h.all = make(map[string]*silence.Sender)
		}
		if h.all[host] == nil && host != "" && len(h.all) < maxHosts {
			h.all[strings.Clone(host)] = new(silence.Sender)
		}
		if one := h.all[host]; one != nil {
			one.See(now)
		}
	}
}

// add adds when the hosts have sent to the facts, takes out of the silent ones those
// that still send something, and forgets hosts.
func (h *Hosts) add(facts *Facts, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for host, one := range h.all {
		if now.Sub(one.Last) > rememberHeard {
			delete(h.all, host)
			continue
		}
		if one.Last.After(facts.Heard[host]) {
			facts.Heard[host], facts.Back[host] = one.Last, one.Back
		}
		if _, silent := facts.Silent[host]; silent && !one.Silent(now) {
			delete(facts.Silent, host)
		}
	}
	delete(facts.Heard, "") // of GPUs without a host
}
