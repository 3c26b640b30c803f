package workload

import (
	"bytes"
	"strings"
)

// containerIDLength is the length of a container id in every CRI runtime.
const containerIDLength = 64

// podUIDLength is the length of a UUID with its hyphens.
const podUIDLength = 36

// maxSlurmJobIDLength is the number of digits of a 64-bit number.
const maxSlurmJobIDLength = 20

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
	for line := range bytes.Lines(raw) {
		_, rest, found := bytes.Cut(line, []byte{':'})
		if !found {
			continue
		}
		_, path, found := bytes.Cut(rest, []byte{':'})
		if !found {
			continue
		}
		group.add(strings.TrimRight(string(path), "\n"))
	}
	return group
}

// add adds the ids of one path. It never replaces an id of an earlier line.
func (g *Cgroup) add(path string) {
	var container, pod, job string
	inSlurm := false
	for segment := range strings.SplitSeq(path, "/") {
		// v1: /slurm/uid_1000/job_42/step_0. v2:
		// /system.slice/slurmstepd.scope/job_42/step_0/user/task_0, with the
		// node's name in the scope's where several slurmd share a host.
		if segment == "slurm" || strings.HasPrefix(segment, "slurm_") ||
			(strings.HasSuffix(segment, "slurmstepd.scope")) {
			inSlurm = true
		}
		if number, found := strings.CutPrefix(segment, "job_"); found && inSlurm && isDecimal(number) {
			job = number
		}
		if uid := podUID(segment); uid != "" {
			pod = uid
		}
		if id := containerID(segment); id != "" {
			container = id
		}
	}
	if g.ContainerID == "" {
		g.ContainerID = container
	}
	if g.PodUID == "" {
		g.PodUID = pod
	}
	if g.SlurmJobID == "" {
		g.SlurmJobID = job
	}
}

// podUID reads a pod's UID from the segments that the kubelet makes: pod<uid>
// with the cgroupfs driver, kubepods-burstable-pod<uid>.slice, with
// underscores for hyphens, with systemd's, which puts the kubelet's own slice
// in front where it has one. Static pods have a UID of 32 hexadecimal digits.
// containerd writes slice:runtime:container in one segment where its cgroup
// driver is not the kubelet's.
func podUID(segment string) string {
	segment, _, _ = strings.Cut(segment, ":")
	segment = strings.TrimSuffix(segment, ".slice")
	if i := strings.LastIndex(segment, "-pod"); i >= 0 && strings.Contains(segment[:i], "kubepods") {
		segment = segment[i+1:]
	}
	uid, found := strings.CutPrefix(segment, "pod")
	if !found {
		return ""
	}
	uid = strings.ReplaceAll(uid, "_", "-")
	if len(uid) == podUIDLength && isUUID(uid) {
		return uid
	}
	if len(uid) == 32 && isHex(uid) {
		return uid
	}
	return ""
}

// containerID reads a container's id from a segment: <id>, docker-<id>.scope,
// cri-containerd-<id>.scope, crio-<id>, libpod-<id>.scope.
func containerID(segment string) string {
	segment = strings.TrimSuffix(segment, ".scope")
	if i := strings.LastIndexAny(segment, "-:"); i >= 0 {
		segment = segment[i+1:]
	}
	if len(segment) == containerIDLength && isHex(segment) {
		return segment
	}
	return ""
}

func isUUID(s string) bool {
	for i, r := range s {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if r != '-' {
				return false
			}
			continue
		}
		if !isHexDigit(r) {
			return false
		}
	}
	return true
}

func isHex(s string) bool {
	for _, r := range s {
		if !isHexDigit(r) {
			return false
		}
	}
	return true
}

func isHexDigit(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'f'
}

func isDecimal(s string) bool {
	if s == "" || len(s) > maxSlurmJobIDLength {
		return false
	}
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}
