package workload

import (
	"cmp"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Number is an integer that may be unknown. The zero Number is unknown.
type Number struct {
	Value int64
	Known bool
}

// Workload is what a process belongs to. Unknown fields are empty. It is
// comparable, so that it can be the key of a map.
type Workload struct {
	// RunID is the run's id. Identify lists its sources.
	RunID string
	// RunAttempt is the number of restarts of the run by its launcher.
	RunAttempt Number
	// RankGlobal is the rank in the job.
	RankGlobal Number
	// RankLocal is the rank on the host.
	RankLocal Number
	// WorldSize is the number of ranks of the job.
	WorldSize Number
	// SlurmJobID is the Slurm job.
	SlurmJobID string
	// ContainerID is the container's id, 64 hexadecimal digits.
	ContainerID string
	// PodUID is the UID of the Kubernetes pod.
	PodUID string
	// Pod is the container according to the kubelet.
	Pod Pod
	// ServiceName is the service.name of the process's telemetry.
	ServiceName string
	// UserID is the numeric id of the user, in decimal.
	UserID string
	// UserName is the user's name on the host or in Slurm. It is empty for a
	// process in a container, whose users are others, and if names are not wanted.
	UserName string
}

// Identify returns the workload of a process.
//
// The run is the first of clients.RunVariables that names one. The launcher's
// variables take precedence over Slurm's, because a launcher started by Slurm is
// one task with many ranks. The Slurm job comes from the cgroup first, which a
// process cannot change.
func Identify(env Environment, group Cgroup, uid Number) Workload {
	w := Workload{
		RunID:       id(env.RunIDs[:]...),
		RunAttempt:  firstKnown(number(env.TorchElasticRestartCount), number(env.SlurmRestartCount)),
		RankGlobal:  firstKnown(number(env.Rank), number(env.SlurmProcID)),
		RankLocal:   number(env.LocalRank),
		SlurmJobID:  cmp.Or(group.SlurmJobID, id(env.SlurmJobID)),
		ContainerID: group.ContainerID,
		PodUID:      group.PodUID,
		ServiceName: cmp.Or(env.ServiceName, serviceName(env.ResourceAttributes)),
	}
	// A job has at least one rank, so that 0 means unknown.
	if size := number(env.WorldSize); size.Value > 0 {
		w.WorldSize = size
	}
	if uid.Known {
		w.UserID = strconv.FormatInt(uid.Value, 10)
	}
	return w
}

// id returns the first value that is an id, or "".
func id(values ...string) string {
	for _, value := range values {
		if !mlattr.Sentinel(value) {
			return value
		}
	}
	return ""
}

// number reads a rank or a count. Ranks and counts are never negative.
func number(value string) Number {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return Number{}
	}
	return Number{Value: n, Known: true}
}

func firstKnown(numbers ...Number) Number {
	for _, n := range numbers {
		if n.Known {
			return n
		}
	}
	return Number{}
}
