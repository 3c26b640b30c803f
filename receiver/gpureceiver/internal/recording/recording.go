// Package recording reads and plays recordings of GPUs.
package recording

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// FormatVersion is the version of the format that this package reads.
const FormatVersion = 1

// Recording is the content of a recording's file: constant data, and frames of
// what changes.
type Recording struct {
	// Version is the version of the format, which is 1.
	Version int `yaml:"version"`
	// Origin says where the values come from: the GPUs and the driver, or that
	// they were made up. It is logged. It is required.
	Origin string `yaml:"origin"`
	// HostName is the host.name of the metrics. It is required.
	HostName string `yaml:"host_name"`
	// DriverVersion is the driver's version. Empty means unknown.
	DriverVersion string `yaml:"driver_version,omitempty"`
	// CUDAVersion is the newest version that the driver supports. Empty means
	// unknown.
	CUDAVersion string `yaml:"cuda_version,omitempty"`
	// Duration is the length of the recording, after which it restarts. It must
	// be longer than the last frame's At. By default the last frame is as long
	// as the one before it, or 10 s if there is only one.
	Duration time.Duration `yaml:"duration,omitempty"`
	// GPUs are the GPUs and MIG devices of the frames.
	GPUs []GPU `yaml:"gpus"`
	// Frames are ordered by At, and the first is at 0.
	Frames []Frame `yaml:"frames"`
}

// GPU is the constant data of a GPU or MIG device.
type GPU struct {
	// Identity is without the serial number. Its ID is required.
	device.Identity `yaml:",inline"`
	// Processes are what is known about processes that are on the GPU in any frame.
	Processes []Process `yaml:"processes,omitempty"`
}

// Process is the constant data of a process.
type Process struct {
	// PID is the process's id in the frames.
	PID uint32 `yaml:"pid"`
	// Executable is the name of its program. Empty means unknown.
	Executable string `yaml:"executable,omitempty"`
	// NamespacePID is its id in its own PID namespace.
	NamespacePID workload.Number `yaml:"namespace_pid,omitempty"`
	// Environ are entries NAME=value. Only variables that the receiver reads on
	// a real host have an effect.
	Environ []string `yaml:"environ,omitempty"`
	// Cgroup is the text of /proc/<pid>/cgroup.
	Cgroup string `yaml:"cgroup,omitempty"`
	// UserID is the numeric id of the user. Absent means unknown.
	UserID *uint32 `yaml:"user_id,omitempty"`
}

// Frame is the state of the GPUs from its time to the next frame's.
type Frame struct {
	// At is the time since the start of the recording.
	At time.Duration `yaml:"at"`
	// DriverState is the driver's state. Empty means ok.
	DriverState device.DriverState `yaml:"driver_state,omitempty"`
	// Attribution is the state of each attribution source.
	Attribution map[workload.Source]workload.SourceState `yaml:"attribution,omitempty"`
	// GPUs are the readings of the present GPUs. A missing one has vanished.
	GPUs []Readings `yaml:"gpus,omitempty,flow"`
}

// Readings are the values of one GPU in one frame. An absent value was
// unavailable.
type Readings struct {
	// ID names one of the recording's GPUs.
	ID string `yaml:"uuid"`
	// Lost is true if the GPU had fallen off the bus.
	Lost bool `yaml:"lost,omitempty"`
	// Asleep is true if the host had suspended the GPU.
	Asleep bool `yaml:"asleep,omitempty"`
	// Unresponsive is true if calls about the GPU did not return in time.
	Unresponsive bool `yaml:"unresponsive,omitempty"`
	// Readings are the values, and Tree has them in the file.
	device.Readings `yaml:"-"`
	Tree            map[string]any `yaml:",inline"`
	// Processes are the processes on the GPU. An empty list means none, an
	// absent one that they are unknown.
	Processes ProcessList `yaml:"processes,omitempty"`
	// Owners are the containers that the kubelet gave the GPU to.
	Owners []workload.Pod `yaml:"owners,omitempty"`
	// XIDs are the errors that the driver reported at the frame's time.
	XIDs []XID `yaml:"xids,omitempty"`
}

// ProcessList is the list of processes of one GPU in one frame. A nil list is
// absent, an empty one is not.
type ProcessList []device.Process

// IsZero reports whether the list is absent, so that YAML leaves it out.
func (l ProcessList) IsZero() bool { return l == nil }

// XID is an error that the driver reported.
type XID struct {
	// Code is the error's code.
	Code uint64 `yaml:"code"`
	// GPUInstance and ComputeInstance are those of the MIG device, if any.
	GPUInstance     workload.Number `yaml:"gpu_instance,omitempty"`
	ComputeInstance workload.Number `yaml:"compute_instance,omitempty"`
}

// Limits of a recording, so that no file can exhaust the memory.
const (
	// MaxSize is the largest file in bytes.
	MaxSize = 8 << 20
	// MaxGPUs is the largest number of GPUs and MIG devices, twice that of 16
	// GPUs with 7 MIG devices each.
	MaxGPUs = 256
	// MaxFrames is the largest number of frames.
	MaxFrames = 10_000
	// MaxProcesses is the largest number of processes of one GPU.
	MaxProcesses = 1024
	// maxDuration is the longest recording.
	maxDuration = 30 * 24 * time.Hour
	// MaxXIDs is the largest number of errors of one GPU in one frame.
	MaxXIDs = 64
)

// defaultFrameDuration is the length of a recording with a single frame.
const defaultFrameDuration = 10 * time.Second

// Load reads and checks the recording in a file.
func Load(path string) (*Recording, error) {
	file, err := os.Open(path) //nolint:gosec // The path is the configuration's, and its content is read as hostile.
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return nil, err
	}
	return Parse(raw)
}

// Parse reads and checks a recording. An unknown key is an error, so that a
// misspelled one does not look like an unavailable value.
func Parse(raw []byte) (*Recording, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("the recording is larger than %d bytes", MaxSize)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	if document.IsZero() {
		return nil, errors.New("the recording is empty")
	}
	if err := refuse(&document, ""); err != nil {
		return nil, err
	}
	var rec Recording
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	err := decoder.Decode(&rec)
	if all := (*yaml.TypeError)(nil); errors.As(err, &all) {
		err = fmt.Errorf("%.256s", all.Errors[0]) // of many, which can have long texts
	}
	if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the recording has more than one YAML document, or text after it")
	}
	if err := rec.check(); err != nil {
		return nil, err
	}
	rec.Duration = cmp.Or(rec.Duration, defaultDuration(rec.Frames))
	return &rec, nil
}

func defaultDuration(frames []Frame) time.Duration {
	if len(frames) == 1 {
		return defaultFrameDuration
	}
	last := frames[len(frames)-1].At
	return last + (last - frames[len(frames)-2].At)
}

func (r *Recording) check() error {
	errs := []error{
		shared.Check(r.Version == FormatVersion, `"version" is %d; allowed is %d`, r.Version, FormatVersion),
		shared.Check(r.Origin != "", `"origin" is missing; it says where the values come from`),
		shared.Check(r.HostName != "", `"host_name" is missing`),
		shared.Check(len(r.Frames) > 0, `"frames" has no entry; allowed are 1 to %d`, MaxFrames),
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	known, errs := r.checkGPUs()
	errs = append(errs, r.checkTimes())
	for i := range r.Frames {
		if err := r.Frames[i].check(known, fmt.Sprintf("frames[%d]", i)); err != nil {
			// The first one says enough.
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(errs...)
}

// checkGPUs returns the GPUs that frames may contain, and what is wrong with them.
func (r *Recording) checkGPUs() (known map[string]*GPU, errs []error) {
	errs = append(errs, distinct(r.GPUs, "gpus", func(gpu *GPU) string { return gpu.ID }))
	known = make(map[string]*GPU, len(r.GPUs))
	for i := range r.GPUs {
		gpu := &r.GPUs[i]
		errs = append(errs,
			shared.Check(gpu.ID != "", `"gpus[%d]::uuid" is missing`, i),
			shared.Check(gpu.Index >= 0, `"gpus[%d]::index" is %d; allowed is at least 0`, i, gpu.Index),
			distinct(gpu.Processes, fmt.Sprintf("gpus[%d]::processes", i), func(p *Process) uint32 { return p.PID }))
		known[gpu.ID] = gpu
	}
	for i := range r.GPUs {
		if mig := r.GPUs[i].MIG; mig != nil {
			parent := known[mig.Parent]
			errs = append(errs, shared.Check(parent != nil && parent.MIG == nil,
				`"gpus[%d]::mig::parent" is %q; allowed is the "uuid" of a whole GPU of the recording`, i, mig.Parent))
		}
	}
	return known, errs
}

// checkTimes checks the order of the frames. The bound keeps sums of durations
// far from an overflow.
func (r *Recording) checkTimes() error {
	if first := r.Frames[0].At; first != 0 {
		return fmt.Errorf(`"frames[0]::at" is %s; the first frame is at 0s`, first)
	}
	last := time.Duration(0)
	for i := 1; i < len(r.Frames); i++ {
		at := r.Frames[i].At
		if at <= last || at > maxDuration {
			return fmt.Errorf(`"frames[%d]::at" is %s; it must be later than the frame before it, %s, and at most %s`, i, at, last, maxDuration)
		}
		last = at
	}
	return shared.Check(r.Duration == 0 || r.Duration > last && r.Duration <= maxDuration,
		`"duration" is %s; it must be longer than the last frame's "at", %s, and at most %s`, r.Duration, last, maxDuration)
}

func (f *Frame) check(known map[string]*GPU, path string) error {
	if f.DriverState != "" && !slices.Contains(device.DriverStates, f.DriverState) {
		return fmt.Errorf(`"%s::driver_state" is %q; allowed are %q`, path, f.DriverState, device.DriverStates)
	}
	for source, state := range f.Attribution {
		if !slices.Contains(workload.Sources, source) || !slices.Contains(workload.SourceStates, state) {
			return fmt.Errorf(`"%s::attribution" has %q: %q; allowed are %q with %q`, path, source, state, workload.Sources, workload.SourceStates)
		}
	}
	if err := distinct(f.GPUs, path+"::gpus", func(r *Readings) string { return r.ID }); err != nil {
		return err
	}
	for i := range f.GPUs {
		readings, path := &f.GPUs[i], fmt.Sprintf("%s::gpus[%d]", path, i)
		gpu, found := known[readings.ID]
		if !found {
			return fmt.Errorf(`"%s::uuid" is %q, which is none of the recording's "gpus"`, path, readings.ID)
		}
		if gpu.MIG != nil && len(readings.XIDs) > 0 {
			return fmt.Errorf(`"%s::xids" is there for a MIG device; allowed is it for its GPU, with "gpu_instance"`, path)
		}
		if err := readings.check(path); err != nil {
			return err
		}
	}
	return nil
}

func (r *Readings) check(path string) error {
	if err := r.Take("", r.Tree); err != nil {
		return fmt.Errorf(`"%s" %w`, path, err)
	}
	r.Tree = nil
	if err := distinct(r.Processes, path+"::processes", func(p *device.Process) uint32 { return p.PID }); err != nil {
		return err
	}
	for i, p := range r.Processes {
		path := fmt.Sprintf("%s::processes[%d]", path, i)
		for _, kind := range p.Types {
			if !slices.Contains(device.ProcessTypes, kind) {
				return fmt.Errorf(`"%s::types" has %q; allowed are %q`, path, kind, device.ProcessTypes)
			}
		}
		for task, value := range p.Utilization {
			if !slices.Contains(device.ProcessTasks, task) || !workload.IsReading(value) {
				return fmt.Errorf(`"%s::utilization" has %q: %v; allowed are numbers of %q`, path, task, value, device.ProcessTasks)
			}
		}
	}
	return nil
}

// distinct returns an error if two entries of a list have the same id.
func distinct[E any, ID comparable](entries []E, path string, id func(*E) ID) error {
	seen := make(map[ID]bool, len(entries))
	for i := range entries {
		of := id(&entries[i])
		if seen[of] {
			return fmt.Errorf("%q has %v twice", path, of)
		}
		seen[of] = true
	}
	return nil
}

// maxText is the largest length of any text, and maxEntries that of lists, by their
// keys; others have at most 64 entries.
const maxText = 4096

var maxEntries = map[string]int{"gpus": MaxGPUs, "frames": MaxFrames, "processes": MaxProcesses}

// refuse returns an error for what is not allowed in any place. Aliases let a small file become
// large in memory, as do long lists of small entries, and null would look like 0.
func refuse(node *yaml.Node, key string) error {
	wrong, limit := "", cmp.Or(maxEntries[key], 64)
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		wrong = "an anchor or an alias"
	case node.Tag == "!!null" && key != "": // the entry of a list may be unavailable
		wrong = "null; leave out what was unavailable"
	case len(node.Value) > maxText:
		wrong = fmt.Sprintf("longer than %d bytes", maxText)
	case node.Kind == yaml.SequenceNode && len(node.Content) > limit:
		wrong = fmt.Sprintf("a list of %d entries; allowed are at most %d", len(node.Content), limit)
	}
	if wrong != "" {
		return fmt.Errorf("line %d: %.64q is %s", node.Line, key, wrong)
	}
	for i, child := range node.Content {
		name := ""
		if node.Kind == yaml.MappingNode {
			name = node.Content[i&^1].Value
		}
		if err := refuse(child, name); err != nil {
			return err
		}
	}
	return nil
}
