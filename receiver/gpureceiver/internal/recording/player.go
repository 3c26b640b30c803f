package recording

import (
	"context"
	"sort"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// Player plays a recording again and again. Values are those of the frame
// that the time falls into; nothing is invented between frames. Energy goes
// on rising from one round to the next, as a real GPU's counter does.
type Player struct {
	rec   *Recording
	now   func() time.Time
	start time.Time

	gpus map[string]*playedGPU
}

// playedGPU is what is worked out once about a GPU.
type playedGPU struct {
	GPU
	workloads map[uint32]workload.Workload
	// round is the energy in joules that one round adds.
	round float64
}

var _ device.Source = (*Player)(nil)

// NewPlayer returns a player whose first round begins when Start is called.
// The clock is now.
func NewPlayer(rec *Recording, now func() time.Time) *Player {
	p := &Player{rec: rec, now: now, gpus: make(map[string]*playedGPU, len(rec.GPUs))}
	for _, gpu := range rec.GPUs {
		played := &playedGPU{GPU: gpu, workloads: make(map[uint32]workload.Workload, len(gpu.Processes))}
		for _, process := range gpu.Processes {
			played.workloads[process.PID] = process.identify()
		}
		played.round = roundEnergy(rec, gpu.UUID)
		p.gpus[gpu.UUID] = played
	}
	return p
}

// Start implements device.Source.
func (p *Player) Start(context.Context) error {
	p.start = p.now()
	return nil
}

// Shutdown implements device.Source.
func (*Player) Shutdown(context.Context) error {
	return nil
}

// Snapshot implements device.Source.
func (p *Player) Snapshot(context.Context) device.Snapshot {
	return p.at(p.now().Sub(p.start))
}

// at returns what the GPUs say when this much time has gone by since Start.
func (p *Player) at(elapsed time.Duration) device.Snapshot {
	// A clock that was set back plays the beginning.
	elapsed = max(elapsed, 0)
	rounds := elapsed / p.rec.Duration
	position := elapsed % p.rec.Duration
	frames := p.rec.Frames
	next := sort.Search(len(frames), func(i int) bool { return frames[i].At > position })
	frame := &frames[next-1]

	snapshot := device.Snapshot{
		Host:          p.rec.HostName,
		Driver:        device.DriverOK,
		DriverVersion: p.rec.DriverVersion,
		Replayed:      true,
		GPUs:          make([]device.GPU, 0, len(frame.GPUs)),
	}
	if frame.DriverState != "" {
		snapshot.Driver = device.DriverState(frame.DriverState)
	}
	for i := range frame.GPUs {
		readings := &frame.GPUs[i]
		snapshot.GPUs = append(snapshot.GPUs, p.gpus[readings.UUID].at(readings, float64(rounds)))
	}
	sort.SliceStable(snapshot.GPUs, func(i, j int) bool { return snapshot.GPUs[i].Index < snapshot.GPUs[j].Index })
	return snapshot
}

func (g *playedGPU) at(r *Readings, rounds float64) device.GPU {
	gpu := device.GPU{
		ID:                 g.UUID,
		Name:               g.Name,
		Index:              g.Index,
		PCIBusID:           g.PCIBusID,
		Utilization:        reading(r.Utilization),
		EncoderUtilization: reading(r.EncoderUtilization),
		DecoderUtilization: reading(r.DecoderUtilization),
		MemoryTotal:        reading(r.MemoryTotal),
		MemoryUsed:         reading(r.MemoryUsed),
		Power:              reading(r.Power),
		Energy:             reading(r.Energy),
		Temperature:        reading(r.Temperature),
		MemoryTemperature:  reading(r.MemoryTemperature),
		Processes:          make([]device.Process, 0, len(r.Processes)),
	}
	if gpu.Energy.Known {
		gpu.Energy.Value += rounds * g.round
	}
	for _, process := range r.Processes {
		if process.Memory == nil {
			continue
		}
		gpu.Processes = append(gpu.Processes, device.Process{
			Memory:   *process.Memory,
			Workload: g.workloads[process.PID],
		})
	}
	return gpu
}

// identify uses the parsers that /proc goes through, so that a recording
// shows what a real host would.
func (p *Process) identify() workload.Workload {
	uid := workload.Number{}
	if p.UserID != nil {
		uid = workload.Number{Value: int64(*p.UserID), Known: true}
	}
	return workload.Identify(
		workload.ParseEnviron([]byte(strings.Join(p.Environ, "\x00"))),
		workload.ParseCgroup([]byte(p.Cgroup)),
		uid,
	)
}

// roundEnergy is the energy in joules that one round adds: what the counter
// rose by from the first frame that tells it to the last, and for the time
// from there to the end of the recording the last frame's power.
func roundEnergy(rec *Recording, uuid string) float64 {
	var first, last *Readings
	var lastAt time.Duration
	for _, frame := range rec.Frames {
		for i := range frame.GPUs {
			readings := &frame.GPUs[i]
			if readings.UUID != uuid || readings.Energy == nil {
				continue
			}
			if first == nil {
				first = readings
			}
			last, lastAt = readings, frame.At
		}
	}
	if first == nil {
		return 0
	}
	added := *last.Energy - *first.Energy
	if last.Power != nil {
		added += *last.Power * (rec.Duration - lastAt).Seconds()
	}
	// A recording in which the driver was loaded again falls as a whole. The
	// receiver treats the fall at the round's end like the one inside.
	return max(added, 0)
}

func reading[T any](value *T) device.Reading[T] {
	if value == nil {
		return device.Reading[T]{}
	}
	return device.Read(*value)
}
