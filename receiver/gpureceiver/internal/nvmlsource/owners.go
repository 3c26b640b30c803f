package nvmlsource

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// podName is what a pod is called.
type podName struct {
	namespace, name string
}

func nameOf(pod workload.Pod) podName {
	return podName{pod.Namespace, pod.Name}
}

// place is where a process runs by its own evidence: in a pod, or else in a
// container. The zero place is unknown.
type place struct {
	podUID, containerID string
}

func placeOf(process *device.Process) place {
	if process.Workload.PodUID != "" {
		return place{podUID: process.Workload.PodUID}
	}
	return place{containerID: process.Workload.ContainerID}
}

// namePods gives processes the names of the pods that they run in.
//
// The kubelet says which containers have a GPU, by name, and a process's cgroup
// says in which pod it runs, by UID. Nothing on a host joins the two, except
// that a pod uses only what it has: it is the one that has every GPU on which
// the pod's processes are. Where that leaves several, or none, the processes
// have no name, and keep their UID. A process that is known to run outside of
// any container never has one.
func namePods(gpus []device.GPU) {
	named := decide(gpus)
	for i := range gpus {
		gpu := &gpus[i]
		for j := range gpu.Processes {
			process := &gpu.Processes[j]
			if process.Evidence.OnHost(&process.Workload) {
				continue
			}
			at := placeOf(process)
			if at == (place{}) {
				// Nothing is known about the process but that it is here.
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

// decide says which pod is at each place, where only one can be.
func decide(gpus []device.GPU) map[place]podName {
	candidates := make(map[place][]podName)
	for i := range gpus {
		here := podsOf(gpus[i].Owners)
		seen := make(map[place]bool)
		for j := range gpus[i].Processes {
			at := placeOf(&gpus[i].Processes[j])
			if at == (place{}) || seen[at] {
				continue
			}
			seen[at] = true
			if before, found := candidates[at]; found {
				candidates[at] = slices.DeleteFunc(before, func(pod podName) bool { return !slices.Contains(here, pod) })
			} else {
				candidates[at] = slices.Clone(here)
			}
		}
	}
	named := make(map[place]podName, len(candidates))
	claims := make(map[podName]int)
	for at, pods := range candidates {
		if len(pods) != 1 {
			continue
		}
		named[at] = pods[0]
		if at.podUID != "" {
			claims[pods[0]]++
		}
	}
	// A pod has one UID. Where several seem to be the same pod, some of them
	// use a GPU that the kubelet gave to another.
	for at, pod := range named {
		if claims[pod] > 1 {
			delete(named, at)
		}
	}
	return named
}

// podsOf returns the pods of containers, each once.
func podsOf(owners []workload.Pod) []podName {
	var pods []podName
	for _, owner := range owners {
		if !slices.Contains(pods, nameOf(owner)) {
			pods = append(pods, nameOf(owner))
		}
	}
	return pods
}

// containerOf names a pod's container, where only one of the pod's has the GPU.
func containerOf(owners []workload.Pod, pod podName) workload.Pod {
	found := workload.Pod{Namespace: pod.namespace, Name: pod.name}
	count := 0
	for _, owner := range owners {
		if nameOf(owner) == pod {
			found.Container = owner.Container
			count++
		}
	}
	if count != 1 {
		found.Container = ""
	}
	return found
}
