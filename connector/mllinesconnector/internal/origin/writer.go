package origin

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

const (
	// scanAge is how long the processes that were found are those that run.
	scanAge = time.Second
	// maxScanned is the number of processes that are looked at, and maxWriters that of the
	// writers of one file.
	maxScanned, maxWriters = 65_536, 64
)

// starters are programs that start others, which write to the same file.
var starters = map[string]bool{
	"sh": true, "bash": true, "dash": true, "zsh": true, "fish": true, "ksh": true, "env": true, "nohup": true, "timeout": true,
	"time": true, "tee": true, "make": true, "numactl": true, "srun": true, "slurmstepd": true, "mpirun": true, "sudo": true,
}

// writers finds the processes that have a file as their standard output or error. It sees
// those of its own PID namespace and, without privileges, of its own user. It is not safe
// for concurrent use.
type writers struct {
	processes *workload.Processes
	now       func() time.Time

	scanned time.Time
	outputs []output
}

type output struct {
	file os.FileInfo
	pid  uint32
}

// of returns what the processes that write a file have in common, with the details of the
// oldest that does not only start others, and reports whether there are any.
func (w *writers) of(path string) (common workload.Process, found bool) {
	file, err := os.Stat(path)
	if err != nil || !file.Mode().IsRegular() {
		return common, false
	}
	if now := w.now(); now.Sub(w.scanned) >= scanAge {
		w.scan()
		w.scanned = now
	}
	var all []workload.Process
	var last uint32
	for _, o := range w.outputs {
		if len(all) == maxWriters || o.pid == last || !os.SameFile(o.file, file) {
			continue
		}
		last = o.pid // it may write both to the file
		if p, ok := w.processes.Describe(o.pid); ok {
			if !p.NamespacePID.Known {
				p.NamespacePID = workload.Number{Value: int64(o.pid), Known: true}
			}
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return common, false
	}
	common.RunID = agreed(all, func(p *workload.Process) string { return p.RunID })
	common.SlurmJobID = agreed(all, func(p *workload.Process) string { return p.SlurmJobID })
	common.ContainerID = agreed(all, func(p *workload.Process) string { return p.ContainerID })
	common.PodUID = agreed(all, func(p *workload.Process) string { return p.PodUID })
	common.ServiceName = agreed(all, func(p *workload.Process) string { return p.ServiceName })
	common.RankGlobal = agreed(all, func(p *workload.Process) workload.Number { return p.RankGlobal })
	common.WorldSize = agreed(all, func(p *workload.Process) workload.Number { return p.WorldSize })
	all = slices.DeleteFunc(all, func(p workload.Process) bool { return starters[p.Executable] })
	if len(all) > 0 {
		common.Details = slices.MinFunc(all, func(a, b workload.Process) int { return a.Start.Compare(b.Start) }).Details
	}
	return common, true
}

// agreed returns the value of all that have one, none if they differ.
func agreed[T comparable](all []workload.Process, of func(*workload.Process) T) (value T) {
	var none T
	for i := range all {
		switch next := of(&all[i]); {
		case next == none || next == value:
		case value != none:
			return none
		default:
			value = next
		}
	}
	return value
}

// scan looks at the outputs of all processes. Few are files.
func (w *writers) scan() {
	w.outputs = w.outputs[:0]
	for _, pid := range w.processes.IDs(maxScanned) {
		for _, descriptor := range [...]string{"1", "2"} {
			path := filepath.Join("/proc", strconv.FormatUint(uint64(pid), 10), "fd", descriptor)
			if file, err := os.Stat(path); err == nil && file.Mode().IsRegular() {
				w.outputs = append(w.outputs, output{file, pid})
			}
		}
	}
}
