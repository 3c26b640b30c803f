package gpus

import (
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
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
)

// Facts is what an emission knows of GPUs and their hosts.
type Facts struct {
	// Uses is what each run has of GPUs, States each of these.
	Uses   map[Run]Use
	States map[Run][]State
	Idle   map[Key]Idle
	Prices map[Key]float64
	Failed map[Key]Failure
	// Hosts are those whose GPUs are read. Silent are those that send nothing any more,
	// and Heard is when each has last sent anything.
	Hosts  map[string]bool
	Silent map[string]SilentHost
	Heard  map[string]time.Time

	// holders are the runs that hold GPU memory, or did within GoneAfter or when a host
	// of their GPUs was last read that is silent, and holderIDs their ids.
	holders   map[Run]bool
	holderIDs map[string]bool
	// holding is what each run holds; released are the runs that held GPUs before, and
	// released them.
	holding  map[Run]Hold
	released map[Run]bool
}

// Holds reports whether a run with an id holds GPUs.
func (f *Facts) Holds(id string) bool { return f.holderIDs[id] }

// Held is what a run has of GPUs at an emission.
type Held struct {
	// Hold is by the newest readings.
	Hold
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
func (f *Facts) HeldBy(run Run) Held {
	of, known := f.holding[run]
	h := Held{Hold: of, Now: !of.Since.IsZero() || !known && f.holders[run]}
	if f.released[run] {
		h.Again, h.Released = of.Since, !h.Now
	}
	return h
}

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

// Facts returns what is known of GPUs and their hosts, and forgets what was not seen for
// 5 minutes. services are those that have a run with an id.
func (f *Fleet) Facts(services map[string][]string, hosts *Hosts, now time.Time) *Facts {
	f.Settle(services, now)
	facts := &Facts{
		holders: make(map[Run]bool, len(f.seen)), holderIDs: make(map[string]bool, len(f.seen)),
		Uses: f.Runs(now), Idle: f.Idle(now), Prices: f.Prices(now), Failed: f.Failed(),
		States: f.States(), Hosts: f.Hosts(now), holding: f.Holding(now), released: make(map[Run]bool),
		Silent: f.Silent(now), Heard: f.Read(),
	}
	hosts.add(facts, now)
	for run, last := range f.seen {
		if now.Sub(last) > GoneAfter {
			delete(f.seen, run)
			continue
		}
		facts.holderIDs[run.ID] = true
		for _, of := range f.RunsOf(run) {
			facts.holders[of] = true
		}
	}
	for run, of := range facts.holding {
		if !of.Silent.IsZero() {
			facts.holderIDs[run.ID], facts.holders[run] = true, true
		}
		if _, known := f.released[run]; of.Since.IsZero() && (known || len(f.released) < maxRuns) {
			f.released[Run{strings.Clone(run.ID), strings.Clone(run.Service)}] = now
		}
	}
	for run, at := range f.released {
		if now.Sub(at) > rememberReleased {
			delete(f.released, run)
			continue
		}
		facts.released[run] = true
	}
	return facts
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
		one := h.all[host]
		if one == nil {
			if host == "" || len(h.all) >= maxHosts {
				continue
			}
			if h.all == nil {
				h.all = make(map[string]*silence.Sender)
			}
			one = new(silence.Sender)
			h.all[strings.Clone(host)] = one
		}
		one.See(now)
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
			facts.Heard[host] = one.Last
		}
		if _, silent := facts.Silent[host]; silent && !one.Silent(now) {
			delete(facts.Silent, host)
		}
	}
	delete(facts.Heard, "") // of GPUs without a host
}
