package mlenrichprocessor

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Attributes of the conventions that say where a process is.
const (
	attrHostID      = "host.id"
	attrContainerID = "container.id"
	attrPodUID      = "k8s.pod.uid"
	attrSlurmJob    = "slurm.job.id"
	attrPID         = "process.pid"
	attrOwnPID      = "process.vpid"
	attrStart       = "process.creation.time"
)

// readMember describes the process behind a resource, its run where the
// resource has one, and where it is.
func (e *enricher) readMember(attrs pcommon.Map, r *resource) {
	m := &r.member
	*m = member{run: r.run.id, inferred: r.run.inferred, memory: r.memory.client(e.store.now())}
	if job := r.facts.Text(mlattr.JobID); !mlattr.Sentinel(job) {
		m.job = job
	}
	m.attempt = countOf(&r.facts, mlattr.RunAttempt)
	m.rank = rankNumbers{countOf(&r.facts, mlattr.RankGlobal), countOf(&r.facts, mlattr.RankLocal)}
	world := countOf(&r.facts, mlattr.WorldSize)
	hash := func(text string) uint64 { return hashOf(e.store, text) }
	host, slurm := hash(r.process.host), slurmJob(attrs, &r.facts)
	m.says = [traitCount]uint64{
		traitHost:      hash(readID(attrs, attrHostID)),
		traitContainer: hash(readID(attrs, attrContainerID)),
		traitPod:       hash(readID(attrs, attrPodUID)),
		traitSlurm:     hash(slurm),
		traitWorld:     worldTrait(world),
		traitService:   hash(r.process.service),
	}
	m.process = processID{pid: readNumber(attrs, attrPID), start: readInstant(attrs, attrStart)}
	m.client = hash(strings.Join([]string{r.key, r.process.instance, r.process.pid, r.process.started,
		strconv.FormatInt(m.rank.global.n, 10), strconv.FormatInt(m.rank.local.n, 10)}, "\n"))

	if m.process.pid != 0 {
		switch {
		case m.process.start != 0 && host != 0:
			m.at(processPlace(host, m.process))
		case m.process.start == 0 && m.says[traitContainer] != 0:
			m.at(containedPlace(m.says[traitContainer], m.process.pid))
		}
	}
	if p, ok := rankPlace(host, m.rank, world); ok {
		m.at(p)
	}
	for _, at := range placedTraits {
		if m.says[at.trait] != 0 {
			m.at(at.place(host, m.says[at.trait]))
		}
	}
	if host != 0 && slurm != "" && m.run == slurm {
		m.at(place{rung: rungSlurm, id: m.says[traitSlurm]})
	}
	if host == 0 {
		return
	}
	if m.says[traitService] != 0 {
		m.at(place{rung: rungService, host: host, id: m.says[traitService]})
	}
	m.at(place{rung: ofHost, host: host})
	if index, ok := r.facts.Int(mlattr.GPUIndex); ok {
		m.at(place{rung: rungIndex, host: host, numbers: [3]int64{index}})
	}
}

// seeSpanRun notes where a run is that a span names itself, as those of a
// service with many runs do.
func (e *enricher) seeSpanRun(run string, r *resource) {
	m := r.member
	m.run, m.inferred, m.memory = run, false, clientMemory{}
	e.store.seeRun(&m)
}

// seeIndexes notes which GPUs of its host a client's metrics name.
func (e *enricher) seeIndexes(r *resource) {
	host := hashOf(e.store, r.process.host)
	if host == 0 || len(r.indexes) == 0 {
		return
	}
	m := r.member
	for _, index := range r.indexes {
		m.n = 0
		m.at(place{rung: rungIndex, host: host, numbers: [3]int64{index}})
		e.store.seeRun(&m)
	}
}

// placedTraits are those that are places of their own. A container or pod is
// on one host. A Slurm job is on many, each with processes of its own, and is a
// place itself only for who does not say its host, and for the run that the
// job is.
var placedTraits = [...]placedTrait{
	{traitContainer, rungContainer, false}, {traitPod, rungPod, false}, {traitSlurm, rungSlurm, true},
}

type placedTrait struct {
	trait  trait
	rung   rung
	onHost bool
}

// place is that of a trait's value on a host.
func (p placedTrait) place(host, id uint64) place {
	if !p.onHost {
		host = 0
	}
	return place{rung: p.rung, host: host, id: id}
}

// hashOf is the store's hash of a text, and zero for none.
func hashOf(s *store, text string) uint64 {
	if text == "" {
		return 0
	}
	return s.hashOf(text) | 1
}

// worldTrait is the world's size as a trait.
func worldTrait(world count) uint64 {
	if !world.ok {
		return 0
	}
	return uint64(world.n) + 1
}

// processPlace is the place of a process by its number and the second of its
// start.
func processPlace(host uint64, p processID) place {
	return place{rung: rungProcess, host: host, numbers: [3]int64{p.visible(), p.start / startSlack}}
}

// containedPlace is the place of a process by its number in a container.
func containedPlace(container uint64, pid int64) place {
	return place{rung: rungProcess, id: container, numbers: [3]int64{pid}}
}

// rankPlace is the place of a rank on a host. All three numbers are needed:
// two jobs on a host both have a rank 0.
func rankPlace(host uint64, rank rankNumbers, world count) (place, bool) {
	ok := host != 0 && rank.global.ok && rank.local.ok && world.ok
	return place{rung: rungRank, host: host, numbers: [3]int64{rank.global.n, rank.local.n, world.n}}, ok
}

// slurmJob is the Slurm job of a resource: what says so itself, or else a job
// id that is a number, as Slurm's are.
func slurmJob(attrs pcommon.Map, f *mlattr.Facts) string {
	for _, key := range [...]string{attrSlurmJob, "SLURM_JOB_ID"} {
		if id := readID(attrs, key); !mlattr.Sentinel(id) {
			return id
		}
	}
	id := f.Text(mlattr.JobID)
	if _, err := strconv.ParseUint(id, 10, 63); err != nil || mlattr.Sentinel(id) {
		return ""
	}
	return id
}

func countOf(f *mlattr.Facts, key string) count {
	n, ok := f.Int(key)
	return count{n: n, ok: ok}
}

// readNumber reads a whole number above zero, and zero where there is none.
func readNumber(attrs pcommon.Map, key string) int64 {
	n, err := strconv.ParseInt(readID(attrs, key), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// readInstant reads a time in nanoseconds since 1970, and zero where there is
// none.
func readInstant(attrs pcommon.Map, key string) int64 {
	v, ok := attrs.Get(key)
	if !ok {
		return 0
	}
	at, _ := mlattr.ReadInstant(v)
	return at
}
