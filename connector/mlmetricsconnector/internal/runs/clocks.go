// Package runs owns what is known of runs and their ranks: the time that each rank
// spends, how long steps take, the state of each run, and its losses.
package runs

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// maxClocks limits the ranks whose run time is attributed.
const maxClocks = 8192

// maxSilences limits the programs whose silences are remembered.
const maxSilences = 1024

// Timeouts are those of the configuration.
type Timeouts struct{ FirstStep, Stall, Idle time.Duration }

// Key identifies a rank of a run.
type Key struct {
	Resource streams.Resource
	Run      streams.Run
}

// clone returns a copy that shares no memory.
func (k Key) clone() Key { return Key{k.Resource.Clone(), k.Run.Clone()} }

// source returns the source of the rank's updates.
func (k *Key) source() *streams.Source { return &streams.Source{Resource: k.Resource, Run: k.Run} }

// run returns the run of the rank.
func (k *Key) run() streams.RunKey { return streams.RunKey{Resource: k.Resource, ID: k.Run.ID} }

// RunOf returns the run as GPUs know it.
func RunOf(key streams.RunKey) gpus.Run { return gpus.Run{ID: key.ID, Service: key.Resource.Service} }

// Clocks attributes the time of each rank of each run. Observe is safe for concurrent use,
// also with one emission, which calls the other methods.
type Clocks struct {
	limits Timeouts

	mu     sync.Mutex
	byRank map[Key]*clock
	// silences are those of the programs of earlier runs, at most maxSilences.
	silences map[streams.Resource]Silences
	// runs are those of the latest emission.
	runs map[streams.RunKey]*Run
}

// NewClocks returns Clocks without ranks.
func NewClocks(limits Timeouts) *Clocks {
	return &Clocks{
		limits: limits, byRank: make(map[Key]*clock), silences: make(map[streams.Resource]Silences), runs: make(map[streams.RunKey]*Run),
	}
}

// Observe adds the times of spans that arrived at now.
func (c *Clocks) Observe(store *streams.Store, spans []*Span, now time.Time) {
	// The spans of a process are adjacent, so its clock is looked up once.
	var source *streams.Source
	var key Key
	var of *clock
	for _, s := range spans {
		// The run _OTHER is many runs that ml_guard has not admitted.
		if s.Source.Run.ID == "" || s.Source.Run.ID == mlattr.Other || !s.trains() && !s.Root {
			continue
		}
		if s.Source != source {
			source, key = s.Source, Key{s.Source.Resource, s.Source.Run}
			of = c.known(key)
		}
		if of == nil && s.trains() {
			of = c.add(key)
		}
		for ; of != nil; of = c.add(key) {
			if updates, live := of.observe(s, now); live {
				store.Apply(updates, now)
				break
			}
		}
		if of == nil && s.trains() {
			store.Overflowed.Runs.Add(1)
		}
	}
}

// known returns the clock of a rank, or nil if there is none.
func (c *Clocks) known(key Key) *clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byRank[key]
}

// add returns the clock of a rank, a new one if there is none, or nil beyond the limit.
func (c *Clocks) add(key Key) *clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := shared.Bounded(&c.byRank, key, maxClocks, Key.clone)
	if of != nil && of.Key == (Key{}) {
		// Clone, so that the names do not keep the request in memory.
		of.Key, of.Least, of.silences = key.clone(), c.limits.Stall.Nanoseconds(), c.silences[key.Resource]
	}
	return of
}

// learn keeps the silences of a program, for its next runs.
func (c *Clocks) learn(of streams.Resource, made Silences) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, is := c.silences[of]; made.Longest > known.Longest && (is || len(c.silences) < maxSilences) {
		c.silences[of] = made
	}
}

// Forget removes the clocks of replaced runs.
func (c *Clocks) Forget(evicted streams.Evicted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.byRank, func(key Key, of *clock) bool {
		at, is := evicted[key.run()]
		return is && of.forget(at)
	})
}

// Services returns those that train a run with an id, else its owner.
func (c *Clocks) Services(owners map[string]streams.Resource) map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	services := make(map[string][]string)
	for key := range c.byRank {
		if id, service := key.Run.ID, key.Resource.Service; !slices.Contains(services[id], service) {
			services[id] = append(services[id], service)
		}
	}
	for id, owner := range owners {
		if services[id] == nil {
			services[id] = []string{owner.Service}
		}
	}
	return services
}

// Emission is what runs are judged by at an emission.
type Emission struct {
	Now time.Time
	// Last reports whether it is the last one, which includes what a later one would
	// have.
	Last bool
	// Kept reports whether clocks go on after a restart.
	Kept bool
	// Withheld reports whether nothing is concluded from silence.
	Withheld bool
	// Expiration is the time without data after which a rank is removed whose run holds
	// no GPU; 0 removes none.
	Expiration time.Duration
	GPUs       *gpus.Facts
	// Said is what NCCL and dumps say about the ranks of runs.
	Said map[string]ranks.Said
}

// Advance attributes the elapsed time, adds it and the series of each run to the store,
// and returns the runs and who owns them.
func (c *Clocks) Advance(store *streams.Store, e *Emission) (all []*Run, owners *Owners) {
	standings := make(map[streams.RunKey]streams.Standing)
	for _, run := range c.runs {
		// Its ranks are those of the previous emission.
		run.Ranks, run.Seen, run.Shown = run.Ranks[:0], time.Time{}, run.Seen
	}
	for _, of := range c.live(e) {
		run := of.Key.run()
		held := e.GPUs.Runs[RunOf(run)].Held
		// Of a host that is not read, nobody knows what its processes hold.
		held.Released = held.Released && e.GPUs.Hosts[of.Key.Run.Host].Read
		updates, rank, known := of.advance(c.limits, held, e)
		// Applied as of the rank's latest data, so that its time does not keep
		// its series alive.
		store.Apply(updates, rank.Seen)
		if !known {
			continue
		}
		standings[run] = max(standings[run], rank.State.standing(held.Now))
		c.learn(run.Resource, rank.Silences)
		of := shared.Entry(c.runs, run, func() *Run { return &Run{Key: run} })
		if of.add(rank, e.Now); len(of.Ranks) == 1 {
			all = append(all, of)
		}
	}
	store.Judge(standings, e.GPUs.Holds)
	maps.DeleteFunc(c.runs, func(_ streams.RunKey, run *Run) bool { return len(run.Ranks) == 0 })
	owners = &Owners{byID: store.Owners(), named: make(map[gpus.Run]streams.Resource), trains: make(map[string]bool)}
	for _, run := range all {
		owners.add(run.Key)
		to := streams.Batch{Source: streams.Source{Resource: run.Key.Resource, Run: streams.Run{ID: run.Key.ID}}, Now: e.Now}
		run.settle(e, &to)
		store.Apply(to.Updates, run.Seen)
	}
	for run, of := range e.GPUs.Runs {
		if of.Use != nil && !owners.trains[run.ID] {
			to := streams.Batch{Source: streams.Source{Resource: owners.Of(run.ID, run.Service), Run: streams.Run{ID: run.ID}}, Now: e.Now}
			addUse(&to, of.Use)
			store.Apply(to.Updates, e.Now)
		}
	}
	return all, owners
}

// live removes the clocks that have expired, and returns the others, in the order of their
// keys and so of their ranks, so that no lock is held while they advance.
func (c *Clocks) live(e *Emission) []*clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.byRank, func(key Key, of *clock) bool {
		return e.Expiration > 0 && !e.GPUs.Holds(key.Run.ID) && of.forget(e.Now.Add(-e.Expiration))
	})
	return slices.SortedFunc(maps.Values(c.byRank), func(a, b *clock) int {
		x, y := &a.Key.Run, &b.Key.Run
		return cmp.Or(
			a.Key.Resource.Compare(b.Key.Resource), cmp.Compare(x.ID, y.ID), cmp.Compare(len(x.Rank), len(y.Rank)), cmp.Compare(x.Rank, y.Rank),
			cmp.Compare(x.Host, y.Host), cmp.Compare(x.Job, y.Job),
		)
	})
}

// Run returns what the latest emission concluded about a run, or nil.
func (c *Clocks) Run(key streams.RunKey) *Run { return c.runs[key] }

// Owners are the programs of runs.
type Owners struct {
	// byID has the program of each run, preferably one that trains, and named that of a
	// service. trains has the ids of runs with ranks.
	byID   map[string]streams.Resource
	named  map[gpus.Run]streams.Resource
	trains map[string]bool
}

// add adds a run with ranks.
func (o *Owners) add(key streams.RunKey) {
	if !o.trains[key.ID] || key.Resource.Compare(o.byID[key.ID]) < 0 {
		o.byID[key.ID] = key.Resource
	}
	o.trains[key.ID], o.named[RunOf(key)] = true, key.Resource
}

// Of returns the program of a run of which a workload names the service.
func (o *Owners) Of(run, service string) streams.Resource {
	if owner, known := o.named[gpus.Run{ID: run, Service: service}]; known {
		return owner
	}
	if owner, known := o.byID[run]; known {
		return owner
	}
	return streams.Resource{Service: service}
}

// Kept is up to where a rank is counted, so that a restart counts nothing of it again.
type Kept struct {
	Key Key
	wallclock.Clock
	// Totals are those since the latest take, Timing is their label.
	Totals wallclock.Totals
	Timing string
	Attempt
	// Worked is the end of its latest span, and Ended that of the latest one of a whole
	// training, or 0.
	Worked, Ended int64
	// Last is when its latest span arrived, Spans whether spans show its steps: both before
	// a restart.
	Last  time.Time
	Spans bool
}

// Keep returns what is known of all ranks.
func (c *Clocks) Keep() (all []Kept) {
	for _, of := range c.live(&Emission{}) {
		of.mu.Lock()
		k := of.Kept
		k.Totals.Steps = slices.Clip(k.Totals.Steps)
		k.Clock = of.Settled(&k.Totals)
		if !of.arrived.IsZero() {
			k.Last, k.Spans = of.arrived, !of.spanStepped.IsZero()
		}
		of.mu.Unlock()
		if k.Attempted > 0 {
			all = append(all, k)
		}
	}
	return all
}

// Restore adds the ranks whose runs are live, at now. Their clocks go on with their next
// spans, and show nothing of their runs before.
func (c *Clocks) Restore(all []Kept, store *streams.Store, now time.Time) {
	for i := range all {
		of := &clock{Kept: all[i]}
		if len(c.byRank) >= maxClocks || !store.Live(of.Key.run()) {
			continue
		}
		of.Least, of.accepted, of.settled = c.limits.Stall.Nanoseconds(), now, of.Cursor
		if of.Spans {
			of.spanStepped = of.Last
		}
		c.byRank[of.Key] = of
	}
}
