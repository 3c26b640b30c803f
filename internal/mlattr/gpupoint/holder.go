package gpupoint

import (
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Holder is what is known of a workload that has a GPU, besides its run; "" if unknown.
type Holder struct {
	// Service is its service.name, Rank the rank of the run whose process it is.
	Service, Rank string
	// Job is its slurm.job.id, Namespace and Pod its k8s.namespace.name and
	// k8s.pod.name, Container its container.id, UserID and User its user.id and
	// user.name.
	Job, Namespace, Pod, Container, UserID, User string
}

// HolderOf reads the attributes of a workload's point. run is "" also for one of many runs
// that ml_guard has not admitted.
func HolderOf(attrs pcommon.Map) (run string, h Holder) {
	for key, v := range attrs.All() {
		if key == mlattr.RunID {
			if id, ok := mlattr.ReadID(v); ok && id != mlattr.Other {
				run = id
			}
			continue
		}
		h.Read(key, v)
	}
	return run, h
}

// Read reads an attribute and reports whether it says what the workload is known by.
func (h *Holder) Read(key string, v pcommon.Value) bool {
	at := slices.Index(holderKeys[:], key)
	if at < 0 {
		return false
	}
	if key != mlattr.RankGlobal {
		setText(h.Texts()[at], v)
	} else if n, ok := mlattr.ReadInt(v); ok {
		h.Rank = strconv.FormatInt(n, 10)
	}
	return true
}

// holderKeys are the keys of the fields, in the order of Texts.
var holderKeys = [...]string{
	mlattr.ServiceName, mlattr.RankGlobal, mlattr.SlurmJobID, mlattr.K8sNamespace, mlattr.K8sPod, mlattr.ContainerID, mlattr.UserID, mlattr.UserName,
}

// Clone returns a copy that shares no memory.
func (h Holder) Clone() Holder {
	for _, text := range h.Texts() {
		*text = strings.Clone(*text)
	}
	return h
}

// Texts returns all fields, to be changed.
func (h *Holder) Texts() [len(holderKeys)]*string {
	return [...]*string{&h.Service, &h.Rank, &h.Job, &h.Namespace, &h.Pod, &h.Container, &h.UserID, &h.User}
}
