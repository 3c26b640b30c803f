package podresources

import (
	"errors"
	"slices"

	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// maxNameLength is the longest name that Kubernetes allows.
	maxNameLength = 253
	// maxHoldings bounds the devices of all containers.
	maxHoldings = 16384
	// maxOwners bounds the containers that share one GPU.
	maxOwners = 128
)

var errTooMany = errors.New("the kubelet lists more than 16384 devices of GPUs")

// Owners are the containers with GPUs.
type Owners struct {
	byDevice map[gpuDevice][]workload.Pod
}

// Of returns the containers of a GPU or MIG device, each once, in the kubelet's
// order. A shared GPU has several. If there are more than maxOwners it returns
// none, because a part of them would look like all.
func (o *Owners) Of(gpu *device.Identity) []workload.Pod {
	if o == nil {
		return nil
	}
	var found []workload.Pod
	for _, name := range namesOf(gpu) {
		for _, pod := range o.byDevice[name] {
			if len(found) <= maxOwners && !slices.Contains(found, pod) {
				found = append(found, pod)
			}
		}
	}
	if len(found) > maxOwners {
		return nil
	}
	return found
}

// ownersOf reads the kubelet's answer. It leaves out devices that are no GPUs and
// containers with invalid names.
func ownersOf(answer *podresourcesapi.ListPodResourcesResponse) (*Owners, error) {
	o := &Owners{byDevice: make(map[gpuDevice][]workload.Pod)}
	holdings := 0
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			owner := workload.Pod{Namespace: pod.GetNamespace(), Name: pod.GetName(), Container: container.GetName()}
			if !isName(owner.Namespace) || !isName(owner.Name) || !isName(owner.Container) {
				continue
			}
			for _, held := range container.GetDevices() {
				for _, id := range held.GetDeviceIds() {
					found, isGPU := parseDevice(held.GetResourceName(), id)
					if !isGPU {
						continue
					}
					if holdings++; holdings > maxHoldings {
						return nil, errTooMany
					}
					o.add(found, owner)
				}
			}
		}
	}
	return o, nil
}

// add adds an owner once, also if it has several shares of the device, which the
// kubelet lists together.
func (o *Owners) add(found gpuDevice, owner workload.Pod) {
	owners := o.byDevice[found]
	if len(owners) == 0 || owners[len(owners)-1] != owner {
		o.byDevice[found] = append(owners, owner)
	}
}

func isName(name string) bool {
	return name != "" && len(name) <= maxNameLength
}
