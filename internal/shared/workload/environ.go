package workload

import (
	"bytes"
	"cmp"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
)

// maxValueLength is the longest value in bytes. Longer values are ignored: ids
// and names are shorter.
const maxValueLength = 256

// Environment is the part of a process's environment that identifies its
// workload, by the names of variables. Other variables often hold secrets and are
// never kept. None is logged.
type Environment map[string]string

// longest has the allowed variables with the lengths of their longest values in bytes.
var longest = func() map[string]int {
	lengths := map[string]int{"OTEL_RESOURCE_ATTRIBUTES": 4096} // a list
	for _, name := range append([]string{
		"RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT",
		"SLURM_JOB_ID", "SLURM_PROCID", "SLURM_RESTART_COUNT", "SLURM_JOB_USER", "OTEL_SERVICE_NAME",
	}, clients.RunVariables[:]...) {
		lengths[name] = maxValueLength
	}
	return lengths
}()

// ParseEnviron reads an environment as /proc/<pid>/environ gives it: entries
// NAME=value, each ended by a zero byte. As in getenv, the first entry of a
// name counts. A value that is too long or no UTF-8 is ignored.
func ParseEnviron(raw []byte) Environment {
	env := Environment{}
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		name, value, _ := bytes.Cut(entry, []byte{'='})
		limit, allowed := longest[string(name)]
		if allowed && len(value) > 0 && env[string(name)] == "" && len(value) <= limit && utf8.Valid(value) {
			env[string(name)] = string(value)
		}
	}
	return env
}

// serviceName reads service.name from the value of OTEL_RESOURCE_ATTRIBUTES,
// a list key=value,… with percent-encoded values. As in the SDKs, the last
// entry of a key counts. Other keys are ignored.
func serviceName(resourceAttributes string) string {
	name := ""
	for pair := range strings.SplitSeq(resourceAttributes, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found || strings.TrimSpace(key) != "service.name" {
			continue
		}
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || len(decoded) > maxValueLength || !utf8.ValidString(decoded) {
			continue
		}
		name = decoded
	}
	return name
}

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
