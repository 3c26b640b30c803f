// Package job finds the run of a job, and the ranks of its processes in the run, by
// the processes of the job that run on this host.
package job

import (
	"maps"
	"net/netip"
	"os"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/ras"
)

// maxDescribed limits the processes of a job on this host that are read.
const maxDescribed = 256

// Host is the host of the collector.
type Host struct {
	// Addresses are those of its interfaces.
	Addresses map[netip.Addr]bool
	// Describe describes a process by its id; it reports false for one that has ended.
	Describe func(pid uint32) (workload.Process, bool)
}

// Job is the job that has given an answer.
type Job struct {
	// Workload has what all its processes on this host have in common: its run,
	// attempt, number of ranks, Slurm job, service and user.
	workload.Workload
	// Leads reports whether the first rank that has responded runs on this host, or
	// somewhere unknown.
	Leads bool

	// world is the communicator that has the ranks of the run, nil if unknown.
	world  *ras.Communicator
	global map[member]int64
}

// member is a rank's process and device, which it has in every communicator.
type member struct {
	host        netip.Addr
	pid, device int
}

// Of returns the job of an answer. One answer has the communicators of one job.
//
// A process is that of the rank if the rank's address is this host's and the process
// has the same id in its innermost PID namespace, so that an id in a container does
// not name another process.
func Of(answer *ras.Answer, host Host) *Job {
	j := &Job{global: make(map[member]int64)}
	ranks := make(map[member]int64)
	first, described := true, make(map[int]bool)
	for i := range answer.Communicators {
		for k := range answer.Communicators[i].Ranks {
			rank := &answer.Communicators[i].Ranks[k]
			if described[rank.PID] || len(described) >= maxDescribed || !host.Addresses[rank.Host] {
				continue
			}
			described[rank.PID] = true
			found, ok := host.workload(rank.PID)
			if !ok {
				continue
			}
			if found.RankGlobal.Known {
				ranks[memberOf(rank)] = found.RankGlobal.Value
			}
			found.RankGlobal, found.RankLocal = workload.Number{}, workload.Number{}
			j.Workload, first = common(j.Workload, found, first), false
		}
	}
	j.number(answer, ranks)
	j.Leads = leads(answer, host.Addresses)
	return j
}

// workload returns the workload of a process that sees itself under this id.
func (h *Host) workload(pid int) (workload.Workload, bool) {
	if pid <= 0 || pid > 1<<31-1 || pid == os.Getpid() {
		return workload.Workload{}, false
	}
	process, found := h.Describe(uint32(pid)) // #nosec G115 -- checked above
	own := process.NamespacePID
	return process.Workload, found && own.Known && own.Value == int64(pid)
}

// common returns what two workloads have in common, b if it is the first.
func common(a, b workload.Workload, first bool) workload.Workload {
	if first {
		return b
	}
	return workload.Workload{
		RunID: same(a.RunID, b.RunID), RunAttempt: same(a.RunAttempt, b.RunAttempt),
		WorldSize: same(a.WorldSize, b.WorldSize), SlurmJobID: same(a.SlurmJobID, b.SlurmJobID),
		ServiceName: same(a.ServiceName, b.ServiceName), UserID: same(a.UserID, b.UserID),
	}
}

// same returns what two values are, or the zero value if they differ.
func same[T comparable](a, b T) (value T) {
	if a == b {
		return a
	}
	return value
}

// number finds the ranks of the run. A communicator has them if it is as large as
// the run, and numbers the processes of this host as the run does.
func (j *Job) number(answer *ras.Answer, ranks map[member]int64) {
	maps.Copy(j.global, ranks)
	for i := range answer.Communicators {
		c := &answer.Communicators[i]
		if !j.WorldSize.Known || int64(c.Size) != j.WorldSize.Value || !agrees(c, ranks) {
			continue
		}
		j.world = c
		for _, all := range [...][]ras.Rank{c.Ranks, c.Missing} {
			for k := range all {
				if of := memberOf(&all[k]); all[k].PID > 0 && of.host.IsValid() {
					j.global[of] = int64(all[k].Number)
				}
			}
		}
		return
	}
}

// agrees reports whether a communicator has ranks of the run under their numbers,
// and none under another.
func agrees(c *ras.Communicator, ranks map[member]int64) bool {
	agrees := false
	for i := range c.Ranks {
		switch number, known := ranks[memberOf(&c.Ranks[i])]; {
		case known && number == int64(c.Ranks[i].Number):
			agrees = true
		case known:
			return false
		}
	}
	return agrees
}

// Rank returns the rank of the run that is a rank of a communicator.
func (j *Job) Rank(c *ras.Communicator, rank *ras.Rank) (global workload.Number) {
	if j.world != nil && c.Hash == j.world.Hash {
		return workload.Number{Value: int64(rank.Number), Known: true}
	}
	global.Value, global.Known = j.global[memberOf(rank)]
	return global
}

// Has reports whether a rank of the run is known to run on one of the addresses.
func (j *Job) Has(global int64, addresses map[netip.Addr]bool) bool {
	for of, rank := range j.global {
		if rank == global && addresses[of.host] {
			return true
		}
	}
	return false
}

func memberOf(rank *ras.Rank) member { return member{rank.Host, rank.PID, rank.Device} }

// leads reports whether the first rank of the largest communicator that has
// responded is on this host.
func leads(answer *ras.Answer, addresses map[netip.Addr]bool) bool {
	for i := range answer.Communicators {
		if ranks := answer.Communicators[i].Ranks; len(ranks) > 0 {
			return !ranks[0].Host.IsValid() || addresses[ranks[0].Host]
		}
	}
	return true
}
