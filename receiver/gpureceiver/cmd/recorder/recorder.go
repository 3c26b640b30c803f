// Package recorder writes recordings of GPUs, which the gpu receiver can play.
package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

// maxText is the length to which texts are cut, in bytes.
const maxText = 64

// shorten limits the text of a driver that fails.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// tailSize is reserved for the text after the frames, of as many GPUs as allowed, in
// bytes.
const tailSize = 256 << 10

// Options are the settings of a Recorder.
type Options struct {
	// Path is the file to write, which must not exist.
	Path string
	// Duration is the length of the recording from the first snapshot.
	Duration time.Duration
	// Program is the recording program's name, for the recording's origin.
	Program string
	// Logger gets a line at the start and one at the end.
	Logger *zap.Logger
	// Now is the clock.
	Now func() time.Time
}

// Recorder writes a source's snapshots and events as an anonymous recording: it
// leaves out who owns the GPUs and what they work on. It writes the file at the end, so
// that no reading waits for the disk.
type Recorder struct {
	opts Options
	file *os.File
	done chan struct{} // closed when the file was written

	mu        sync.Mutex
	anonymous *anonymizer
	// text is that of the frames, in bytes at most limit.
	text  bytes.Buffer
	limit int
	ended bool
	start time.Time
	last  time.Duration
	count int
	// pending are the errors since the last frame by the GPU's real id.
	pending map[string][]recording.XID
	ending  ending
}

// New creates the file and returns a Recorder that waits for the first
// snapshot. The error wraps fs.ErrExist if the file exists.
func New(opts Options) (*Recorder, error) {
	file, err := os.OpenFile(opts.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	opts.Logger.Info("Recording the GPUs", zap.String("path", opts.Path), zap.Duration("duration", opts.Duration))
	return &Recorder{
		opts: opts, file: file, done: make(chan struct{}), limit: recording.MaxSize - tailSize, last: -1,
		anonymous: &anonymizer{gpus: make(map[string]*recording.GPU), pids: make(map[processKey]uint32)},
		pending:   make(map[string][]recording.XID),
	}, nil
}

// Event keeps an error for the next frame with its GPU.
func (r *Recorder) Event(event *device.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := event.GPU.ID
	if r.ended || len(r.pending) >= recording.MaxGPUs && r.pending[id] == nil || len(r.pending[id]) >= recording.MaxXIDs {
		return
	}
	r.pending[id] = append(r.pending[id], recording.XID{Code: event.Code, GPUInstance: event.GPUInstance, ComputeInstance: event.ComputeInstance})
}

// Add records a snapshot. It keeps no reference to it.
func (r *Recorder) Add(snapshot *device.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	now := r.opts.Now()
	if r.start.IsZero() {
		r.start = now
	}
	at := now.Sub(r.start).Truncate(time.Millisecond)
	if at <= r.last {
		// The clock was set back, or two snapshots have the same time.
		return
	}
	if at < r.opts.Duration && r.count < recording.MaxFrames {
		frame := r.frame(snapshot, at)
		text, err := yaml.Marshal([]recording.Frame{frame})
		if err == nil && r.text.Len()+len(text) <= r.limit {
			r.text.Write(text)
			r.last = at
			r.count++
			return
		}
	}
	r.end()
}

// frame returns a snapshot as a frame.
func (r *Recorder) frame(snapshot *device.Snapshot, at time.Duration) recording.Frame {
	if snapshot.DriverVersion != "" {
		r.ending.DriverVersion, r.ending.CUDAVersion = shorten(snapshot.DriverVersion), shorten(snapshot.CUDAVersion)
	}
	frame := recording.Frame{At: at, Attribution: maps.Clone(snapshot.Attribution)}
	if snapshot.Driver != device.DriverOK {
		frame.DriverState = snapshot.Driver
	}
	seen := make(map[string]bool, len(snapshot.GPUs))
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i]
		readings, ok := r.anonymous.readings(gpu)
		if !ok || seen[gpu.ID] {
			continue
		}
		seen[gpu.ID] = true
		if gpu.MIG == nil {
			readings.XIDs = r.pending[gpu.ID]
			delete(r.pending, gpu.ID)
		}
		frame.GPUs = append(frame.GPUs, readings)
	}
	return frame
}

// end lets the file be written. It is called with the lock held.
func (r *Recorder) end() {
	if !r.ended {
		r.ended = true
		go r.write()
	}
}

// Done is closed when the recording is complete.
func (r *Recorder) Done() <-chan struct{} { return r.done }

// Shutdown completes the file, and waits for that or for ctx.
func (r *Recorder) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	r.end()
	r.mu.Unlock()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errNothing means that there was no snapshot.
var errNothing = errors.New("the GPUs were not read")

// write writes the file. A recording that is not complete cannot be played, and would
// block the next.
func (r *Recorder) write() {
	defer close(r.done)
	r.ending.GPUs = r.anonymous.list
	tail, err := yaml.Marshal(&r.ending)
	if r.count == 0 {
		err = errNothing
	}
	if err == nil {
		_, err = fmt.Fprintf(r.file, `# Readings from NVML. GPU and process ids are made up, and host,
# users, programs, containers and pods are left out.
version: %d
origin: %q
host_name: %s
frames:
%s%s`, recording.FormatVersion, "recorded by "+r.opts.Program+" on "+r.start.UTC().Format(time.DateOnly), anonymousHost, r.text.Bytes(), tail)
		err = errors.Join(err, r.file.Sync())
	}
	if err = errors.Join(err, r.file.Close()); err != nil {
		err = errors.Join(err, os.Remove(r.opts.Path))
		r.opts.Logger.Error("The recording failed", zap.String("path", r.opts.Path), zap.Error(err))
		return
	}
	r.opts.Logger.Info("The recording is complete", zap.String("path", r.opts.Path), zap.Int("frames", r.count))
}

// ending is what is after the frames.
type ending struct {
	DriverVersion string           `yaml:"driver_version,omitempty"`
	CUDAVersion   string           `yaml:"cuda_version,omitempty"`
	GPUs          []*recording.GPU `yaml:"gpus"`
}

// anonymousHost is the host's name in a Recorder's recordings.
const anonymousHost = "recorded-host"

// maxPIDs bounds the processes of all GPUs together.
const maxPIDs = 64 << 10

// anonymizer removes from snapshots what identifies GPUs, their owners and their
// work, so that a recording can be public.
type anonymizer struct {
	gpus map[string]*recording.GPU
	// list has them in the order of their first snapshot.
	list []*recording.GPU
	pids map[processKey]uint32
}

// processKey identifies a process uniquely over time.
type processKey struct {
	pid   uint32
	start int64
}

// gpu returns the recorded GPU, or nil beyond the format's limit.
func (a *anonymizer) gpu(identity *device.Identity) *recording.GPU {
	if known := a.gpus[identity.ID]; known != nil {
		return known
	}
	if len(a.gpus) >= recording.MaxGPUs {
		return nil
	}
	prefix, known := "GPU", &recording.GPU{Identity: *identity}
	if mig := identity.MIG; mig != nil {
		// A MIG device is listed after its GPU. Without a known GPU it is left
		// out.
		parent := a.gpus[mig.Parent]
		if parent == nil || parent.MIG != nil {
			return nil
		}
		part := *mig
		part.Parent, part.Profile = parent.ID, shorten(mig.Profile)
		prefix, known.MIG = "MIG", &part
	}
	known.ID, known.Serial, known.Index = fmt.Sprintf("%s-00000000-0000-0000-0000-%012d", prefix, len(a.gpus)), "", max(identity.Index, 0)
	for _, text := range []*string{&known.Name, &known.PCIBusID, &known.VBIOS, &known.Architecture} {
		*text = shorten(*text)
	}
	a.gpus[identity.ID] = known
	a.list = append(a.list, known)
	return known
}

// readings returns a GPU's readings, or false beyond the format's limit of GPUs.
func (a *anonymizer) readings(gpu *device.GPU) (recording.Readings, bool) {
	known := a.gpu(&gpu.Identity)
	if known == nil {
		return recording.Readings{}, false
	}
	readings := recording.Readings{ID: known.ID, Lost: gpu.Lost, Asleep: gpu.Asleep, Unresponsive: gpu.Unresponsive, Tree: treeOf(&gpu.Readings)}
	if !gpu.ProcessesKnown {
		return readings, true
	}
	readings.Processes = recording.ProcessList{}
	seen := make(map[uint32]bool, len(gpu.Processes))
	for i := range gpu.Processes {
		process := &gpu.Processes[i]
		pid, ok := a.process(process)
		if !ok || seen[pid] || len(seen) >= recording.MaxProcesses {
			continue
		}
		seen[pid] = true
		read := device.Process{PID: pid, Types: slices.Clone(process.Types), Utilization: maps.Clone(process.Utilization)}
		maps.DeleteFunc(read.Utilization, func(task string, value float64) bool {
			return !workload.IsReading(value) || !slices.Contains(device.ProcessTasks, task)
		})
		if workload.IsReading(process.Memory.Value) {
			read.Memory = process.Memory
		}
		readings.Processes = append(readings.Processes, read)
	}
	return readings, true
}

// process returns a made-up id, or false beyond the limit.
func (a *anonymizer) process(process *device.Process) (uint32, bool) {
	key := processKey{pid: process.PID, start: process.Details.Start.UnixNano()}
	if a.pids[key] == 0 && len(a.pids) < maxPIDs {
		a.pids[key] = uint32(len(a.pids) + 1)
	}
	return a.pids[key], a.pids[key] != 0
}

// treeOf returns readings under the keys of a recording. It leaves out what is no
// reading.
func treeOf(r *device.Readings) map[string]any {
	tree := make(map[string]any)
	for _, q := range device.Quantities {
		number := q.Of(r)
		if !number.Known || !workload.IsReading(number.Value) {
			continue
		}
		at, key := tree, q.Key
		for above, below, found := strings.Cut(key, "."); found; above, below, found = strings.Cut(key, ".") {
			if at[above] == nil {
				at[above] = make(map[string]any)
			}
			at, key = at[above].(map[string]any), below
		}
		switch {
		case q.Flag:
			at[key] = number.Value != 0
		case q.Entry >= 0:
			entries, _ := at[key].([]any)
			at[key] = append(append(entries, make([]any, q.Entry-len(entries))...), number)
		default:
			at[key] = number
		}
	}
	return tree
}
