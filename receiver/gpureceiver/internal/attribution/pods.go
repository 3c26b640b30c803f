package attribution

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// nameOf returns a pod without its container.
func nameOf(pod workload.Pod) workload.Pod {
	pod.Container = ""
	return pod
}

// location is the pod or container that a process runs in, according to its
// cgroup. The zero location is unknown.
type location struct {
	podUID, containerID string
}

func locationOf(process *device.Process) location {
	if process.Workload.PodUID != "" {
		return location{podUID: process.Workload.PodUID}
	}
	return location{containerID: process.Workload.ContainerID}
}

// podLogs has a directory for the logs of each pod, which the kubelet names by the pod's
// namespace, name and UID.
const podLogs = "var/log/pods"

var podLog = regexp.MustCompile(`^([a-z0-9.-]+)_([a-z0-9.-]+)_([^_]+)$`)

// loggedPods returns the pods that have a directory of logs, by their UIDs. There are none
// if this program may not list the directories.
func loggedPods(rootPath string) map[string]workload.Pod {
	pods := make(map[string]workload.Pod)
	entries, _ := os.ReadDir(filepath.Join("/", rootPath, podLogs))
	for _, entry := range entries {
		if of := podLog.FindStringSubmatch(entry.Name()); of != nil {
			pods[of[3]] = workload.Pod{Namespace: of[1], Name: of[2]}
		}
	}
	return pods
}

// namePods sets the pod names of processes.
//
// The kubelet lists the containers of a GPU by name, and a process's cgroup has
// its pod's UID. If the pod has no directory of logs, its name is that of the
// pod that has every GPU with a process of the UID, because a pod uses only the GPUs that it has.
// If there are several such pods, or none, the processes have a UID and no name. A
// process outside of containers has neither. An MPS server does not count, because
// it uses the GPUs of its clients' pods.
func namePods(gpus []device.GPU) {
	named := decide(gpus)
	for i := range gpus {
		gpu := &gpus[i]
		for j := range gpu.Processes {
			process := &gpu.Processes[j]
			if process.Evidence.OnHost(&process.Workload) {
				continue
			}
			at := locationOf(process)
			if at == (location{}) && !process.MPSServer() {
				// Only the GPU of the process is known.
				if only := podsOf(gpu.Owners); len(only) == 1 {
					process.Workload.Pod = containerOf(gpu.Owners, only[0])
				}
				continue
			}
			if pod, found := named[at]; found {
				process.Workload.Pod = containerOf(gpu.Owners, pod)
			}
		}
	}
}

// decide returns the pod at each location that only one pod matches.
func decide(gpus []device.GPU) map[location]workload.Pod {
	candidates := make(map[location][]workload.Pod)
	for i := range gpus {
		here := podsOf(gpus[i].Owners)
		for j := range gpus[i].Processes {
			process := &gpus[i].Processes[j]
			at, here := locationOf(process), here
			if at == (location{}) || process.MPSServer() {
				continue
			}
			if process.Workload.Pod != (workload.Pod{}) {
				here = []workload.Pod{process.Workload.Pod}
			}
			if before, found := candidates[at]; found {
				candidates[at] = slices.DeleteFunc(before, func(pod workload.Pod) bool { return !slices.Contains(here, pod) })
			} else {
				candidates[at] = slices.Clone(here)
			}
		}
	}
	named := make(map[location]workload.Pod, len(candidates))
	claims := make(map[workload.Pod]int)
	for at, pods := range candidates {
		if len(pods) != 1 {
			continue
		}
		named[at] = pods[0]
		if at.podUID != "" {
			claims[pods[0]]++
		}
	}
	// A pod has one UID. If several match the same pod, some of them use a GPU
	// that the kubelet gave to another pod.
	maps.DeleteFunc(named, func(_ location, pod workload.Pod) bool { return claims[pod] > 1 })
	return named
}

// podsOf returns the pods of containers without duplicates.
func podsOf(owners []workload.Pod) []workload.Pod {
	var pods []workload.Pod
	for _, owner := range owners {
		if !slices.Contains(pods, nameOf(owner)) {
			pods = append(pods, nameOf(owner))
		}
	}
	return pods
}

// containerOf returns a pod with its container's name, if only one of its
// containers has the GPU.
func containerOf(owners []workload.Pod, pod workload.Pod) workload.Pod {
	theirs := slices.DeleteFunc(slices.Clone(owners), func(owner workload.Pod) bool { return nameOf(owner) != pod })
	if len(theirs) == 1 {
		return theirs[0]
	}
	return pod
}
