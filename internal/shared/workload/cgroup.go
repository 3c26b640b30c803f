package workload

import (
	"cmp"
	"regexp"
	"strings"
)

// The segments of a cgroup's path that have ids.
var (
	// podSegment is what the kubelet makes of a pod's UID: pod<uid> with the cgroupfs
	// driver, kubepods-burstable-pod<uid>.slice, with underscores for hyphens, with
	// systemd's, which puts the kubelet's own slice in front where it has one. Static
	// pods have a UID of 32 hexadecimal digits. containerd writes
	// slice:runtime:container in one segment where its cgroup driver is not the
	// kubelet's.
	podSegment = regexp.MustCompile(`^(?:[^:]*kubepods[^:]*-)?pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?(?::|$)`)
	// containerSegment is <id>, docker-<id>.scope, cri-containerd-<id>.scope,
	// crio-<id> or libpod-<id>.scope.
	containerSegment = regexp.MustCompile(`(?:^|[-:])([0-9a-f]{64})(?:\.scope)?$`)
	// slurmSegment is above jobSegment, v1: /slurm/uid_1000/job_42/step_0, v2:
	// /system.slice/slurmstepd.scope/job_42/step_0/user/task_0, with the node's name in
	// the scope's where several slurmd share a host.
	slurmSegment = regexp.MustCompile(`^slurm(?:_|$)|slurmstepd\.scope$`)
	jobSegment   = regexp.MustCompile(`^job_(\d{1,20})$`)
)

// Cgroup is the container, pod and job of a process according to its cgroup.
type Cgroup struct {
	// ContainerID is the innermost container's id.
	ContainerID string
	// PodUID is the pod's UID with hyphens.
	PodUID string
	// SlurmJobID is the job's number in decimal.
	SlurmJobID string
}

// ParseCgroup reads /proc/<pid>/cgroup: lines hierarchy:controllers:path, one
// line on a host with cgroup v2.
func ParseCgroup(raw []byte) Cgroup {
	var group Cgroup
	for line := range strings.Lines(string(raw)) {
		if fields := strings.SplitN(line, ":", 3); len(fields) == 3 {
			group.add(strings.TrimRight(fields[2], "\n"))
		}
	}
	return group
}

// add adds the ids of one path. It never replaces an id of an earlier line.
func (g *Cgroup) add(path string) {
	var of Cgroup
	inSlurm := false
	for segment := range strings.SplitSeq(path, "/") {
		inSlurm = inSlurm || slurmSegment.MatchString(segment)
		if job := jobSegment.FindStringSubmatch(segment); job != nil && inSlurm {
			of.SlurmJobID = job[1]
		}
		if pod := podSegment.FindStringSubmatch(segment); pod != nil {
			of.PodUID = strings.ReplaceAll(pod[1], "_", "-")
		}
		if container := containerSegment.FindStringSubmatch(segment); container != nil {
			of.ContainerID = container[1]
		}
	}
	g.ContainerID = cmp.Or(g.ContainerID, of.ContainerID)
	g.PodUID = cmp.Or(g.PodUID, of.PodUID)
	g.SlurmJobID = cmp.Or(g.SlurmJobID, of.SlurmJobID)
}
