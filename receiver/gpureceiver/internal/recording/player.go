package recording

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// Player plays a recording in a loop. Its values are those of the frame at the
// present time, without interpolation. Counters continue to rise in each round,
// like those of a real GPU.
type Player struct {
	rec   *Recording
	now   func() time.Time
	start time.Time
	emit  func(device.Event)
	// emitted is the time since start up to which events were emitted.
	emitted time.Duration

	gpus map[string]*playedGPU
}

// playedGPU is what is computed once for a GPU.
type playedGPU struct {
	recorded *GPU
	// processes have what does not change.
	processes map[uint32]device.Process
	// first is the first value of each counter, and rounds its increase in one round.
	first, rounds map[*device.Quantity]float64
}

// NewPlayer returns a player whose first round starts with Start. now is the
// clock.
func NewPlayer(rec *Recording, now func() time.Time) *Player {
	p := &Player{rec: rec, now: now, gpus: make(map[string]*playedGPU, len(rec.GPUs))}
	for i := range rec.GPUs {
		gpu := &rec.GPUs[i]
		played := &playedGPU{
			recorded:  gpu,
			processes: make(map[uint32]device.Process, len(gpu.Processes)),
			first:     make(map[*device.Quantity]float64), rounds: make(map[*device.Quantity]float64),
		}
		for j := range gpu.Processes {
			process := &gpu.Processes[j]
			played.processes[process.PID] = process.described()
		}
		p.gpus[gpu.ID] = played
	}
	p.countRounds()
	return p
}

func (r *Recording) system() device.System {
	return device.System{Host: r.HostName, DriverVersion: r.DriverVersion, CUDAVersion: r.CUDAVersion, Replayed: true}
}

// Start implements device.Source.
func (p *Player) Start(_ context.Context, emit func(device.Event)) error {
	p.start = p.now()
	p.emit = emit
	p.emitted = -1
	return nil
}

// Shutdown implements device.Source.
func (*Player) Shutdown(context.Context) error { return nil }

// Snapshot implements device.Source.
func (p *Player) Snapshot(context.Context) device.Snapshot {
	elapsed := p.now().Sub(p.start)
	p.emitUntil(elapsed)
	return p.at(elapsed)
}

// emitUntil emits the events of all frames since the last call, but at most
// those of one round.
func (p *Player) emitUntil(elapsed time.Duration) {
	elapsed = max(elapsed, 0)
	from := max(p.emitted, elapsed-p.rec.Duration)
	first := max(from, 0) / p.rec.Duration
	for round := first; round-first <= elapsed/p.rec.Duration-first; round++ {
		for i := range p.rec.Frames {
			frame := &p.rec.Frames[i]
			at := round*p.rec.Duration + frame.At
			if at <= from || at > elapsed {
				continue
			}
			for j := range frame.GPUs {
				for _, xid := range frame.GPUs[j].XIDs {
					p.emit(device.Event{
						System: p.rec.system(), Time: p.start.Add(at), GPU: p.gpus[frame.GPUs[j].ID].recorded.Identity, Code: xid.Code,
						GPUInstance: xid.GPUInstance, ComputeInstance: xid.ComputeInstance,
					})
				}
			}
		}
	}
	// A clock that is set back must not repeat events.
	p.emitted = max(p.emitted, elapsed)
}

// at returns the snapshot at a time since Start. A time before Start is that of
// Start.
func (p *Player) at(elapsed time.Duration) device.Snapshot {
	elapsed = max(elapsed, 0)
	rounds := elapsed / p.rec.Duration
	position := elapsed % p.rec.Duration
	frames := p.rec.Frames
	next := sort.Search(len(frames), func(i int) bool { return frames[i].At > position })
	frame := &frames[next-1]

	snapshot := device.Snapshot{
		System:      p.rec.system(),
		Driver:      cmp.Or(frame.DriverState, device.DriverOK),
		Attribution: frame.Attribution,
		GPUs:        make([]device.GPU, 0, len(frame.GPUs)),
	}
	for i := range frame.GPUs {
		readings := &frame.GPUs[i]
		snapshot.GPUs = append(snapshot.GPUs, p.gpus[readings.ID].at(readings, float64(rounds)))
	}
	// A stable sort keeps MIG devices after their GPU, as in the file.
	slices.SortStableFunc(snapshot.GPUs, func(a, b device.GPU) int { return cmp.Compare(a.Index, b.Index) })
	return snapshot
}

func (g *playedGPU) at(r *Readings, rounds float64) device.GPU {
	gpu := device.GPU{
		Identity:       g.recorded.Identity,
		Lost:           r.Lost,
		Asleep:         r.Asleep,
		Unresponsive:   r.Unresponsive,
		EventsKnown:    g.recorded.MIG == nil,
		Readings:       r.Readings,
		ProcessesKnown: r.Processes != nil,
		Processes:      make([]device.Process, 0, len(r.Processes)),
		Owners:         r.Owners,
	}
	gpu.Readings.EachCounter(func(q *device.Quantity, value float64) float64 {
		return value + rounds*g.rounds[q]
	})
	for i := range r.Processes {
		process := g.processes[r.Processes[i].PID]
		process.PID = r.Processes[i].PID // of others nothing else is known
		process.Types, process.Memory = r.Processes[i].Types, r.Processes[i].Memory
		process.Utilization = maps.Clone(r.Processes[i].Utilization) // impossible values are removed from it
		if len(process.Types) == 0 {
			process.Types = []string{device.ProcessTypes[0]}
		}
		gpu.Processes = append(gpu.Processes, process)
	}
	gpu.MarkServers()
	if len(gpu.Owners) == 1 {
		for i := range gpu.Processes {
			gpu.Processes[i].Workload.Pod = gpu.Owners[0]
		}
	}
	return gpu
}

// described uses the parsers for /proc, so that a recording behaves like a real
// host.
func (p *Process) described() device.Process {
	uid := workload.Number{}
	if p.UserID != nil {
		uid = workload.Number{Value: int64(*p.UserID), Known: true}
	}
	return device.Process{
		Details:  workload.Details{Executable: p.Executable, NamespacePID: p.NamespacePID},
		Workload: workload.Identify(workload.ParseEnviron([]byte(strings.Join(p.Environ, "\x00"))), workload.ParseCgroup([]byte(p.Cgroup)), uid),
	}
}

// countRounds finds the increase of each counter in one round: the difference between
// its first and its last value. During the last frame, energy rises by the frame's power
// and busy time by its utilization; other counters do not rise.
func (p *Player) countRounds() {
	end := len(p.rec.Frames) - 1
	// The quantities that are the rate of a counter, by the counter.
	rates := map[*device.Quantity]*device.Quantity{device.Energy: device.PowerDraw}
	for _, engine := range device.Engines {
		rates[engine.BusyTime] = engine.Utilization
	}
	for f := range p.rec.Frames {
		for i := range p.rec.Frames[f].GPUs {
			readings := &p.rec.Frames[f].GPUs[i]
			gpu := p.gpus[readings.ID]
			readings.EachCounter(func(q *device.Quantity, value float64) float64 {
				if _, found := gpu.first[q]; !found {
					gpu.first[q] = value
				}
				// A counter falls if the driver was loaded again during the recording.
				// The receiver then treats the end of the round like that fall.
				gpu.rounds[q] = max(value-gpu.first[q], 0)
				return value
			})
			for counter, rate := range rates {
				if _, found := gpu.first[counter]; found && f == end {
					gpu.rounds[counter] += max(rate.Of(&readings.Readings).Value, 0) * (p.rec.Duration - p.rec.Frames[end].At).Seconds()
				}
			}
		}
	}
}
