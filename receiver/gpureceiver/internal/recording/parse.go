package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// Limits of what is read, so that no file can exhaust the memory.
const (
	// MaxSize is the largest file that is read, in bytes.
	MaxSize = 16 << 20
	// MaxGPUs is the largest number of GPUs.
	MaxGPUs = 64
	// MaxFrames is the largest number of frames.
	MaxFrames = 10_000
	// MaxProcesses is the largest number of processes of one GPU.
	MaxProcesses = 1024
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
	rec, err := Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rec, nil
}

// Parse reads and checks a recording. Unknown keys are errors, so that a
// misspelled one does not look like an unavailable value.
func Parse(raw []byte) (*Recording, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("the recording is larger than %d bytes", MaxSize)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	var rec Recording
	if err := decoder.Decode(&rec); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the recording is empty")
		}
		return nil, err
	}
	if err := decoder.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the recording has more than one YAML document")
	}
	if err := rec.check(); err != nil {
		return nil, err
	}
	if rec.Duration == 0 {
		rec.Duration = defaultDuration(rec.Frames)
	}
	return &rec, nil
}

func defaultDuration(frames []Frame) time.Duration {
	last := frames[len(frames)-1].At
	if len(frames) == 1 {
		return defaultFrameDuration
	}
	return last + (last - frames[len(frames)-2].At)
}

func (r *Recording) check() error {
	var errs []error
	if r.Version != Version {
		errs = append(errs, fmt.Errorf(`"version" is %d; allowed is %d`, r.Version, Version))
	}
	if r.Origin == "" {
		errs = append(errs, errors.New(`"origin" is missing; it says where the values come from`))
	}
	if r.HostName == "" {
		errs = append(errs, errors.New(`"host_name" is missing`))
	}
	if len(r.GPUs) > MaxGPUs {
		errs = append(errs, fmt.Errorf(`"gpus" has %d entries; allowed are at most %d`, len(r.GPUs), MaxGPUs))
	}
	if len(r.Frames) == 0 || len(r.Frames) > MaxFrames {
		errs = append(errs, fmt.Errorf(`"frames" has %d entries; allowed are 1 to %d`, len(r.Frames), MaxFrames))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}

	known := make(map[string]map[uint32]bool, len(r.GPUs))
	for i, gpu := range r.GPUs {
		pids, err := gpu.check()
		if err != nil {
			errs = append(errs, fmt.Errorf(`"gpus[%d]": %w`, i, err))
		}
		if known[gpu.UUID] != nil {
			errs = append(errs, fmt.Errorf(`"gpus[%d]::uuid" %q is there twice`, i, gpu.UUID))
		}
		known[gpu.UUID] = pids
	}
	for i, gpu := range r.GPUs {
		if gpu.MIG == nil {
			continue
		}
		if _, found := known[gpu.MIG.Parent]; !found || gpu.MIG.Parent == gpu.UUID {
			errs = append(errs, fmt.Errorf(`"gpus[%d]::mig::parent" %q is none of the other "gpus"`, i, gpu.MIG.Parent))
		}
	}
	previous := time.Duration(-1)
	for i, frame := range r.Frames {
		if err := frame.check(known, previous); err != nil {
			errs = append(errs, fmt.Errorf(`"frames[%d]": %w`, i, err))
		}
		previous = frame.At
	}
	if r.Frames[0].At != 0 {
		errs = append(errs, fmt.Errorf(`"frames[0]::at" is %s; the first frame is at 0s`, r.Frames[0].At))
	}
	// The bound keeps sums of durations far from an overflow.
	if previous > 30*24*time.Hour || r.Duration > 30*24*time.Hour {
		errs = append(errs, errors.New("the recording is longer than 30 days"))
	}
	if r.Duration != 0 && r.Duration <= previous {
		errs = append(errs, fmt.Errorf(`"duration" is %s; it must be longer than the last frame's "at", %s`, r.Duration, previous))
	}
	return errors.Join(errs...)
}

// check returns the PIDs that frames may name.
func (g *GPU) check() (map[uint32]bool, error) {
	var errs []error
	if g.UUID == "" {
		errs = append(errs, errors.New(`"uuid" is missing`))
	}
	if g.Index < 0 {
		errs = append(errs, fmt.Errorf(`"index" is %d; it is at least 0`, g.Index))
	}
	if len(g.Processes) > MaxProcesses {
		errs = append(errs, fmt.Errorf(`"processes" has %d entries; allowed are at most %d`, len(g.Processes), MaxProcesses))
	}
	pids := make(map[uint32]bool, len(g.Processes))
	for _, p := range g.Processes {
		if pids[p.PID] {
			errs = append(errs, fmt.Errorf(`process %d is there twice`, p.PID))
		}
		pids[p.PID] = true
	}
	return pids, errors.Join(errs...)
}

func (f *Frame) check(known map[string]map[uint32]bool, previous time.Duration) error {
	var errs []error
	if f.At <= previous {
		errs = append(errs, fmt.Errorf(`"at" is %s; it must be later than the frame before it`, f.At))
	}
	if f.DriverState != "" && !slices.Contains(device.DriverStates, device.DriverState(f.DriverState)) {
		errs = append(errs, fmt.Errorf(`"driver_state" is %q; allowed are %q`, f.DriverState, device.DriverStates))
	}
	for way, state := range f.Attribution {
		if !slices.Contains(workload.Ways, way) || !slices.Contains(workload.WayStates, state) {
			errs = append(errs, fmt.Errorf(`"attribution" has %q: %q; allowed are %q with %q`, way, state, workload.Ways, workload.WayStates))
		}
	}
	seen := make(map[string]bool, len(f.GPUs))
	for i := range f.GPUs {
		readings := &f.GPUs[i]
		pids, found := known[readings.UUID]
		if !found {
			errs = append(errs, fmt.Errorf(`"gpus[%d]::uuid" %q is none of the recording's "gpus"`, i, readings.UUID))
			continue
		}
		if seen[readings.UUID] {
			errs = append(errs, fmt.Errorf(`"gpus[%d]::uuid" %q is there twice`, i, readings.UUID))
		}
		seen[readings.UUID] = true
		if err := readings.check(pids); err != nil {
			errs = append(errs, fmt.Errorf(`"gpus[%d]": %w`, i, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Readings) check(pids map[uint32]bool) error {
	var errs []error
	if err := r.CheckNames(); err != nil {
		errs = append(errs, err)
	}
	seen := make(map[uint32]bool, len(r.Processes))
	for _, p := range r.Processes {
		if !pids[p.PID] {
			errs = append(errs, fmt.Errorf(`process %d is none of the GPU's "processes"`, p.PID))
		}
		if seen[p.PID] {
			errs = append(errs, fmt.Errorf(`process %d is there twice`, p.PID))
		}
		seen[p.PID] = true
		for _, kind := range p.Types {
			if !slices.Contains(device.ProcessTypes, kind) {
				errs = append(errs, fmt.Errorf(`process %d has the type %q; allowed are %q`, p.PID, kind, device.ProcessTypes))
			}
		}
		for task := range p.Utilization {
			if !slices.Contains(device.ProcessTasks, task) {
				errs = append(errs, fmt.Errorf(`process %d has the task %q; allowed are %q`, p.PID, task, device.ProcessTasks))
			}
		}
	}
	return errors.Join(errs...)
}
