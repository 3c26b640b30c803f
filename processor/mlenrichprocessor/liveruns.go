package mlenrichprocessor

import (
	"strings"
	"time"
)

// place is where a run was seen, such as a rank of a host or a pod: what a rung
// looks at. Its texts are as store.hashOf has them. What a rung does not need
// is zero.
type place struct {
	rung rung
	// host is host.name, where the place is one of a host.
	host uint64
	// id is that of a service, container, pod or job.
	id uint64
	// numbers are a rank's, a process's number and second of its start, or a
	// GPU's index.
	numbers [3]int64
}

// maxPlaces is how many places a process has: one for each rung, its host, and
// its Slurm job on whatever host.
const maxPlaces = rungCount + 2

// gpuAge is how long a GPU counts as that of a place after a workload of it was
// seen there.
const gpuAge = 2 * time.Minute

// member is a process of a run, as its client's resource describes it.
type member struct {
	run      string
	inferred bool
	job      string
	attempt  count
	says     [traitCount]uint64
	rank     rankNumbers
	process  processID
	memory   clientMemory
	// client tells the process from others of the run, where anything does.
	client uint64
	// places are where it is, the first n of them.
	places [maxPlaces]place
	n      int
}

func (m *member) at(p place) {
	if m.n < len(m.places) {
		m.places[m.n] = p
		m.n++
	}
}

// changing is a value that may have been another not long ago.
type changing struct {
	value uint64
	// other is when it last was another, in nanoseconds since 1970.
	other int64
}

// see notes a value; zero says nothing.
func (c *changing) see(value uint64, now time.Time) {
	if value == 0 {
		return
	}
	if c.value != 0 && c.value != value {
		c.other = now.UnixNano()
	}
	c.value = value
}

func (c *changing) said(now time.Time) said {
	return said{value: c.value, several: c.other != 0 && now.UnixNano()-c.other <= int64(liveAge)}
}

// occupant is a run at a place.
type occupant struct {
	run      string
	inferred bool
	seen     time.Time
	says     [traitCount]changing
	client   changing
	job      string
	attempt  count
	rank     rankNumbers
	process  processID
	memory   clientMemory
}

// liveRuns are the runs last seen at a place. Two are enough to know that
// there is not exactly one. The same is true of the GPUs whose workloads are
// there.
type liveRuns struct {
	runs [2]occupant
	gpus [2]gpuSeen
}

type gpuSeen struct {
	id   uint64
	seen time.Time
}

// see notes that a run was seen.
func (l *liveRuns) see(m *member, now time.Time) {
	o := &l.runs[0]
	for i := range l.runs {
		if l.runs[i].run == m.run {
			o = &l.runs[i]
			break
		}
		if l.runs[i].seen.Before(o.seen) {
			o = &l.runs[i]
		}
	}
	if o.run != m.run {
		*o = occupant{run: strings.Clone(m.run)}
	} else if now.Sub(o.seen) > liveAge {
		*o = occupant{run: o.run}
	}
	o.inferred, o.seen = m.inferred, now
	for t := range o.says {
		o.says[t].see(m.says[t], now)
	}
	o.client.see(m.client, now)
	if m.job != "" && m.job != o.job {
		o.job = strings.Clone(m.job)
	}
	if m.attempt.ok {
		o.attempt = m.attempt
	}
	o.rank, o.process = m.rank, m.process
	if m.memory.ok {
		o.memory = m.memory
	}
}

// claimants are the runs of the place that are alive.
func (l *liveRuns) claimants(now time.Time) []claimant {
	var list []claimant
	for i := range l.runs {
		o := &l.runs[i]
		if o.run == "" || now.Sub(o.seen) > liveAge {
			continue
		}
		c := claimant{run: o.run, inferred: o.inferred, job: o.job, attempt: o.attempt,
			client: o.client.value, alone: !o.client.said(now).several, process: o.process, rank: o.rank}
		for t := range o.says {
			c.says[t] = o.says[t].said(now)
		}
		if o.memory.ok && now.Sub(o.memory.at) <= memoryAge {
			c.memory = o.memory
		}
		list = append(list, c)
	}
	return list
}

// seeGPU notes that a workload of a GPU is at the place.
func (l *liveRuns) seeGPU(id uint64, now time.Time) {
	if id == 0 {
		return
	}
	g := &l.gpus[0]
	for i := range l.gpus {
		if l.gpus[i].id == id {
			g = &l.gpus[i]
			break
		}
		if l.gpus[i].seen.Before(g.seen) {
			g = &l.gpus[i]
		}
	}
	g.id, g.seen = id, now
}

// manyGPUs says whether workloads of more than one GPU are at the place.
func (l *liveRuns) manyGPUs(now time.Time) bool {
	for i := range l.gpus {
		if l.gpus[i].id == 0 || now.Sub(l.gpus[i].seen) > gpuAge {
			return false
		}
	}
	return true
}

// seeRun notes at which places a process of a run was seen.
func (s *store) seeRun(m *member) {
	if m.run == "" || m.n == 0 {
		return
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range m.places[:m.n] {
		s.runs.ensure(p, now).see(m, now)
	}
}

// placeLookup asks for what is at a place.
type placeLookup struct {
	place place
	// gpu is the one whose workload asks.
	gpu uint64

	claimants []claimant
	manyGPUs  bool
}

// lookAround answers what workloads ask. It notes all of them first, so that
// two that look alike know of each other. A look keeps no run alive, and where
// no run was seen nothing is kept.
func (s *store) lookAround(asked []placeLookup) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range asked {
		if known := s.runs.peek(asked[i].place); known != nil {
			known.seeGPU(asked[i].gpu, now)
		}
	}
	for i := range asked {
		if known := s.runs.peek(asked[i].place); known != nil {
			asked[i].claimants, asked[i].manyGPUs = known.claimants(now), known.manyGPUs(now)
		}
	}
}
