// Package attribution describes the processes on GPUs and finds the containers that the
// GPUs were given to. It does not use a GPU's driver.
package attribution

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/podresources"
)

// kubeletTimeout is the limit for the kubelet's answer, which no reading waits
// for.
const kubeletTimeout = 5 * time.Second

// Options are the settings of an Attribution.
type Options struct {
	// RootPath is where the host's root directory is mounted. Empty means /.
	RootPath string
	// UserNames reports whether workloads have the names of their users.
	UserNames bool
	// Interval is the least time between two questions to the kubelet.
	Interval time.Duration
	Logger   *zap.Logger
	// Now is the clock.
	Now func() time.Time
}

// Attribution describes processes and the GPUs' owners. One goroutine at a time calls its
// methods.
type Attribution struct {
	opts    Options
	procs   *workload.Processes
	kubelet *podresources.Client
	// warned is true once it was logged that processes are not visible.
	warned bool
}

// New returns an attribution that has read nothing yet.
func New(opts Options) *Attribution {
	return &Attribution{opts: opts, procs: workload.NewProcesses(opts.RootPath, opts.UserNames), kubelet: podresources.NewClient(podresources.Options{
		Socket: filepath.Join("/", opts.RootPath, podresources.Socket), Interval: opts.Interval, Timeout: kubeletTimeout,
		Logger: opts.Logger, Now: opts.Now,
	})}
}

// Start asks the kubelet, so that the first reading has its answer.
func (a *Attribution) Start() { a.kubelet.Poll() }

// Shutdown ends what Start began.
func (a *Attribution) Shutdown(ctx context.Context) { a.kubelet.Shutdown(ctx) }

// Describe sets the details and the workload of each process. It runs when the processes
// were listed. Processes that have ended meanwhile are left out.
func (a *Attribution) Describe(processes []device.Process) []device.Process {
	if len(processes) > 0 && !a.procs.Visible() && !a.warned {
		a.warned = true
		a.opts.Logger.Info("The host's processes are not visible, so that workloads have no names; the collector needs the host's PID namespace, or the host's root directory at root_path",
			zap.String("root_path", a.opts.RootPath))
	}
	var pods map[string]workload.Pod // listed once, and only if a process is in a pod
	described := processes[:0]
	for _, process := range processes {
		found, alive := a.procs.Describe(process.PID)
		if !alive {
			continue
		}
		process.Details, process.Workload, process.Evidence = found.Details, found.Workload, found.Evidence
		if found.PodUID != "" && pods == nil {
			pods = loggedPods(a.opts.RootPath)
		}
		process.Workload.Pod = pods[found.PodUID]
		described = append(described, process)
	}
	return described
}

// Alive returns a copy of the processes that have not ended since they were
// described. It runs for each GPU at each reading.
func (a *Attribution) Alive(processes []device.Process) []device.Process {
	return slices.DeleteFunc(slices.Clone(processes), func(p device.Process) bool { return !a.procs.Alive(p.PID, &p.Details) })
}

// Complete sets the states of the attribution sources, the owners of the GPUs,
// and the containers of their processes. It runs last at each reading, with the
// processes that are alive.
func (a *Attribution) Complete(snapshot *device.Snapshot) {
	snapshot.Attribution = make(map[workload.Source]workload.SourceState, len(workload.Sources))
	for _, source := range workload.Sources {
		snapshot.Attribution[source] = workload.SourceAbsent
	}
	a.kubelet.Poll()
	owners, denied := a.kubelet.Owners()
	if denied {
		snapshot.Attribution[workload.SourcePodResources] = workload.SourceDenied
	}
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i]
		for j := range gpu.Processes {
			gpu.Processes[j].Evidence.Add(snapshot.Attribution)
		}
		gpu.MarkServers()
		gpu.Owners = owners.Of(&gpu.Identity)
		if len(gpu.Owners) > 0 {
			snapshot.Attribution[workload.SourcePodResources] = workload.SourceOK
		}
	}
	namePods(snapshot.GPUs)
}
