package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

// Bounds of what is read of processes.
const (
	maxListed    = 1 << 16 // processes of the host that are looked at
	maxProcesses = 64      // of the run
	maxThreads   = 512     // of a process
	maxWaits     = 16      // different waits of a process that are shown
	maxBlocked   = 16      // processes in an uninterruptible wait that are shown
)

// process is a process of a run.
type process struct {
	pid uint32
	workload.Process
	// waits are where its threads wait, those that cannot be interrupted first.
	waits []wait
	// ids reports whether an id says that the process is of the run, and not only its rank.
	ids bool
}

// wait is the state of some threads that wait alike.
type wait struct {
	workload.Thread
	threads int
}

// look looks at the host.
func (g *Gatherer) look(ctx context.Context) {
	g.looked, g.described, g.state, g.unread = time.Now(), nil, g.host(ctx), 0
	blocked := 0
	for _, pid := range g.processes.IDs(maxListed) {
		if ctx.Err() != nil {
			break // what was looked at counts
		}
		found, alive := g.processes.Describe(pid)
		if !alive {
			continue
		}
		if found.Environ == workload.SourceDenied {
			g.unread++
		}
		if first := g.processes.Threads(pid, 1); len(first) > 0 && first[0].State == 'D' && blocked < maxBlocked {
			is := process{pid: pid, Process: found, waits: []wait{{first[0], 1}}}
			g.state, blocked = append(g.state, is.line()), blocked+1
		}
		if found.RankGlobal.Known || found.RunID != "" || found.SlurmJobID != "" || found.ContainerID != "" {
			g.described = append(g.described, process{pid: pid, Process: found})
		}
	}
	slices.SortFunc(g.described, func(a, b process) int {
		return cmp.Or(cmp.Compare(a.RankGlobal.Value, b.RankGlobal.Value), cmp.Compare(a.pid, b.pid))
	})
}

// processesOf returns the processes of a hang's run, by the ids of the run, its job or its container.
// Where none has one, they are all with the rank of a launcher.
func (g *Gatherer) processesOf(h *Hang) (of []process) {
	for _, p := range g.described {
		p.ids = h.Run != "" && p.RunID == h.Run || h.Job != "" && p.SlurmJobID == h.Job || h.Container != "" && p.ContainerID == h.Container
		if p.ids || p.RankGlobal.Known {
			of = append(of, p)
		}
	}
	if slices.ContainsFunc(of, func(p process) bool { return p.ids }) {
		of = slices.DeleteFunc(of, func(p process) bool { return !p.ids })
	}
	return of[:min(len(of), maxProcesses)]
}

// waitsOf returns where the threads of a process wait.
func (g *Gatherer) waitsOf(pid uint32) (waits []wait) {
	for _, thread := range g.processes.Threads(pid, maxThreads) {
		if i := slices.IndexFunc(waits, func(w wait) bool { return w.Thread == thread }); i >= 0 {
			waits[i].threads++
		} else if len(waits) < maxWaits {
			waits = append(waits, wait{thread, 1})
		}
	}
	slices.SortStableFunc(waits, func(a, b wait) int {
		order := strings.IndexByte(order, a.State) - strings.IndexByte(order, b.State)
		return cmp.Or(order, cmp.Compare(b.threads, a.threads))
	})
	return waits
}

// order has the states of threads in the order in which they are shown.
const order = "DTtRSIZ"

// states are the kernel's words for them.
var states = map[byte]string{
	'D': "uninterruptible wait (D)", 'R': "running", 'S': "sleeping", 'T': "stopped", 't': "stopped by a debugger", 'I': "idle", 'Z': "ended",
}

// line describes a process.
func (p *process) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "process %d (%s)", p.pid, p.Executable)
	if p.RankGlobal.Known {
		fmt.Fprintf(&b, ", rank %d", p.RankGlobal.Value)
	}
	for i, w := range p.waits {
		fmt.Fprintf(&b, "%s %d of its threads %s", [2]string{":", ";"}[min(i, 1)], w.threads, cmp.Or(states[w.State], string(w.State)))
		if w.Channel != "" {
			fmt.Fprintf(&b, " in %s", w.Channel)
		}
	}
	return b.String()
}
