package gpujoin

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// maxIndexed is how many locations an Index remembers.
const maxIndexed = 16384

const (
	// liveAge is how long a run counts as alive after its last telemetry. A
	// GPU is joined to live runs only.
	liveAge = 5 * time.Minute
	// heldAge is how long a run without telemetry is alive while its process, container or
	// pod holds a GPU: a run that hangs sends nothing.
	heldAge = 24 * time.Hour
	// gpuAge is how long a GPU counts as that of a location after a workload
	// of it was seen there.
	gpuAge = 2 * time.Minute
)

// Index remembers where processes of runs were seen. It is safe for concurrent
// use.
type Index struct {
	cache.Locked[location, sightings]
}

// NewIndex returns an empty Index.
func NewIndex(now func() time.Time) *Index {
	return &Index{cache.NewLocked[location, sightings]("runs", now, maxIndexed, liveAge)}
}

// location is where a rule looks for runs, such as a pod or a rank of a host.
// Texts are hashes. What the rule does not need is zero.
type location struct {
	rule rule
	// host is host.name, for a location on one host.
	host uint64
	// id is that of a service, container, pod or job.
	id uint64
	// numbers are those of a rank, or a pid and the second of its start, or a
	// GPU's index.
	numbers [3]int64
}

// history is a value that may have been another one recently.
type history struct {
	value uint64
	// other is when it last was another, in nanoseconds since 1970.
	other int64
}

// see takes a value in. 0 means unknown.
func (h *history) see(value uint64, now time.Time) {
	if value == 0 {
		return
	}
	if h.value != 0 && h.value != value {
		h.other = now.UnixNano()
	}
	h.value = value
}

func (h *history) trait(now time.Time) traitValue {
	return traitValue{value: h.value, several: h.other != 0 && now.UnixNano()-h.other <= int64(liveAge)}
}

// sightings are the runs last seen at a location, and the GPUs whose workloads
// are there. Two of each suffice to know that there is not exactly one.
type sightings struct {
	runs [2]seenRun
	gpus [2]seenGPU
}

type seenRun struct {
	account
	// one is true if its process has no other run, told is when its telemetry last came,
	// and seen that or when it last held a GPU.
	one        bool
	told, seen time.Time
	traits     [traitCount]history
	clients    history
}

type seenGPU struct {
	id   uint64
	seen time.Time
}

// of returns what is known of a run, nil if it was not seen.
func (s *sightings) of(run string) *seenRun {
	if s == nil {
		return nil
	}
	return mlattr.Find(s.runs[:], func(known *seenRun) bool { return known.run == run })
}

// see notes that a process of a run was seen.
func (s *sightings) see(p *Process, now time.Time) {
	for i := range s.runs {
		if s.runs[i].run != p.run && now.Sub(s.runs[i].told) > liveAge {
			s.runs[i] = seenRun{} // what holds the GPU is of this run by now
		}
	}
	o := s.of(p.run)
	if o == nil {
		if o = &s.runs[0]; s.runs[1].seen.Before(o.seen) {
			o = &s.runs[1]
		}
	}
	if o.run != p.run || now.Sub(o.seen) > liveAge {
		*o = seenRun{}
	}
	before := o.account
	o.account, o.one, o.told, o.seen = p.account, !p.shared, now, now
	for t := range o.traits {
		o.traits[t].see(p.traits[t], now)
	}
	o.clients.see(p.client, now)
	if o.run = before.run; o.run == "" {
		o.run = strings.Clone(p.run)
	}
	if o.job = before.job; p.job != "" && p.job != o.job {
		o.job = strings.Clone(p.job)
	}
	if !p.attempt.ok {
		o.attempt = before.attempt
	}
	if !p.memory.ok {
		o.memory = before.memory
	}
}

// live returns the runs that are alive at a location, and whether workloads of more than
// one GPU are there. It keeps no run alive. The index is locked.
func (ix *Index) live(at location, now time.Time) (list []candidate, manyGPUs bool) {
	s := ix.All.Peek(at)
	if s == nil {
		return nil, false
	}
	for i := range s.runs {
		o := &s.runs[i]
		if o.run == "" || now.Sub(o.seen) > liveAge {
			continue
		}
		c := candidate{account: o.account, alone: !o.clients.trait(now).several}
		c.client = o.clients.value
		for t := range o.traits {
			c.traits[t] = o.traits[t].trait(now)
		}
		if now.Sub(o.memory.at) > memoryAge {
			c.memory = allocatorSizes{}
		}
		list = append(list, c)
	}
	manyGPUs = !slices.ContainsFunc(s.gpus[:], func(g seenGPU) bool { return g.id == 0 || now.Sub(g.seen) > gpuAge })
	return list, manyGPUs
}

// seeGPU notes that a workload of a GPU is at a location, if a run was seen there. The
// index is locked.
func (ix *Index) seeGPU(at location, id uint64, now time.Time) {
	s := ix.All.Peek(at)
	if s == nil || id == 0 {
		return
	}
	g := &s.gpus[0]
	if s.gpus[1].id == id || g.id != id && s.gpus[1].seen.Before(g.seen) {
		g = &s.gpus[1]
	}
	g.id, g.seen = id, now
}

// See notes where a process was seen. A process without a run is ignored.
func (ix *Index) See(p *Process) {
	if p.run == "" || p.n == 0 {
		return
	}
	now := ix.Lock()
	defer ix.Unlock()
	for _, at := range p.locations[:p.n] {
		ix.All.Ensure(at, now).see(p, now)
	}
}

// keep keeps a run alive that was found to hold a GPU at locations. The index is locked.
func (ix *Index) keep(run string, locations []location, now time.Time) {
	for _, at := range locations {
		if o := ix.All.Find(at, now).of(run); o != nil && o.one && now.Sub(o.told) <= heldAge {
			o.seen = now
		}
	}
}

// Forget removes a run from where a process is: it was seen under another name.
func (ix *Index) Forget(p *Process, run string) {
	ix.Lock()
	defer ix.Unlock()
	for _, at := range p.locations[:p.n] {
		if o := ix.All.Peek(at).of(run); o != nil {
			*o = seenRun{}
		}
	}
}
