package recorder

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

// desk records into a file of the test's, with a clock that the test moves.
type desk struct {
	*Recorder
	path string
	now  time.Time
	logs *observer.ObservedLogs
}

func record(t *testing.T) *desk {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	d := &desk{path: filepath.Join(t.TempDir(), "recording.yaml"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), logs: logs}
	recorder, err := New(Options{
		Path: d.path, Duration: time.Hour, Program: "a test", Logger: zap.New(core), Now: func() time.Time { return d.now },
	})
	require.NoError(t, err)
	d.Recorder = recorder
	t.Cleanup(func() { require.NoError(t, recorder.Shutdown(context.Background())) })
	return d
}

func (d *desk) after(elapsed time.Duration) {
	d.now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(elapsed)
}

// recorded completes the recording and reads it.
func (d *desk) recorded(t *testing.T) *recording.Recording {
	t.Helper()
	require.NoError(t, d.Shutdown(t.Context()))
	rec, err := recording.Load(d.path)
	require.NoError(t, err)
	return rec
}

func (d *desk) messages() []string {
	var messages []string
	for _, entry := range d.logs.All() {
		messages = append(messages, entry.Message)
	}
	return messages
}

// What is recorded of a played capture plays as the capture does, in all but
// what is nobody's business.
func TestARecordingOfACaptureIsTheCapture(t *testing.T) {
	captures, err := filepath.Glob(filepath.Join("..", "..", "testdata", "captures", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, captures)
	for _, capture := range captures {
		t.Run(filepath.Base(capture), func(t *testing.T) {
			rec, err := recording.Load(capture)
			require.NoError(t, err)
			d := record(t)
			played := recording.NewPlayer(rec, func() time.Time { return d.now })
			var played1, played2 []device.Event
			require.NoError(t, played.Start(t.Context(), func(event device.Event) {
				d.Event(&event)
				played1 = append(played1, event)
			}))
			var expected []device.Snapshot
			for i := range rec.Frames {
				d.after(rec.Frames[i].At)
				snapshot := played.Snapshot(t.Context())
				d.Add(&snapshot)
				expected = append(expected, anonymous(snapshot))
			}

			again := d.recorded(t)
			d.after(0)
			replayed := recording.NewPlayer(again, func() time.Time { return d.now })
			require.NoError(t, replayed.Start(t.Context(), func(event device.Event) { played2 = append(played2, event) }))
			for i := range rec.Frames {
				d.after(rec.Frames[i].At)
				snapshot := replayed.Snapshot(t.Context())
				assert.Equal(t, anonymous(expected[i]), anonymous(snapshot), "frame %d", i)
			}
			require.Len(t, played2, len(played1))
			for i := range played1 {
				assert.Equal(t, played1[i].Code, played2[i].Code)
				assert.Equal(t, played1[i].Time, played2[i].Time)
				assert.Equal(t, played1[i].GPUInstance, played2[i].GPUInstance)
				assert.Equal(t, played1[i].GPU.Index, played2[i].GPU.Index)
			}
		})
	}
}

// anonymous is a snapshot without what is not recorded. Ids and numbers of
// processes are replaced by the order in which they come.
func anonymous(snapshot device.Snapshot) device.Snapshot {
	snapshot.Host = ""
	ids := map[string]string{}
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i]
		key := fmt.Sprint(gpu.Index, gpu.MIG != nil)
		if gpu.MIG != nil {
			key += fmt.Sprint(gpu.MIG.GPUInstance, gpu.MIG.ComputeInstance)
			part := *gpu.MIG // that of the recording stays
			part.Parent = ids[part.Parent]
			gpu.MIG = &part
		}
		ids[gpu.ID] = key
		gpu.ID, gpu.Owners = key, nil
		for j := range gpu.Processes {
			p := &gpu.Processes[j]
			p.PID, p.Details, p.Workload, p.Evidence = uint32(j), workload.Details{}, workload.Workload{}, workload.Evidence{}
		}
	}
	return snapshot
}

// secret is in every text that must not be in a recording.
const secret = "tell-nobody"

func TestARecordingTellsNothingPrivate(t *testing.T) {
	d := record(t)
	identity := device.Identity{ID: "GPU-" + secret, Name: "NVIDIA H100 80GB HBM3", Serial: secret, VBIOS: "96.00.74.00.01", PCIBusID: "0000:19:00.0"}
	known := workload.Number{Value: 424242, Known: true}
	pod := workload.Pod{Namespace: secret, Name: secret, Container: secret}
	d.Event(&device.Event{System: device.System{Host: secret}, GPU: identity, Code: 31})
	d.Add(&device.Snapshot{
		System: device.System{Host: secret, DriverVersion: "570.1"}, Driver: device.DriverOK,
		GPUs: []device.GPU{
			{
				Identity: identity, ProcessesKnown: true, Owners: []workload.Pod{pod},
				Processes: []device.Process{{
					PID: 424242, Types: []string{"compute"}, Memory: device.Read(5.0),
					Details: workload.Details{Executable: secret, Start: time.Unix(424242, 0), NamespacePID: known},
					Workload: workload.Workload{
						RunID: secret, RankGlobal: known, SlurmJobID: secret, ContainerID: secret, PodUID: secret,
						Pod: pod, ServiceName: secret, UserID: "424242",
					},
				}},
			},
			{Identity: device.Identity{ID: "MIG-" + secret, MIG: &device.MIG{Parent: identity.ID, Profile: "1g.10gb", GPUInstance: 13}}},
		},
	})
	rec := d.recorded(t)

	raw, err := os.ReadFile(d.path)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), secret)
	assert.NotContains(t, string(raw), "424242")
	assert.Equal(t, []recording.GPU{
		{
			Identity: device.Identity{ID: "GPU-00000000-0000-0000-0000-000000000000", Name: identity.Name, PCIBusID: identity.PCIBusID, VBIOS: identity.VBIOS},
		},
		{
			Identity: device.Identity{
				ID:  "MIG-00000000-0000-0000-0000-000000000001",
				MIG: &device.MIG{Parent: "GPU-00000000-0000-0000-0000-000000000000", Profile: "1g.10gb", GPUInstance: 13},
			},
		},
	}, rec.GPUs)
	assert.Equal(t, []recording.XID{{Code: 31}}, rec.Frames[0].GPUs[0].XIDs)
	assert.Equal(t, "recorded by a test on 2026-01-02", rec.Origin)
	assert.Equal(t, "570.1", rec.DriverVersion)
	info, err := os.Stat(d.path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
	assert.Equal(t, []string{"Recording the GPUs", "The recording is complete"}, d.messages())
}

// A process that ended and one that got its number are two.
func TestANumberThatIsUsedAgainIsAnotherProcess(t *testing.T) {
	d := record(t)
	for i, start := range []int64{1, 1, 2} {
		d.after(time.Duration(i) * time.Second)
		d.Add(&device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{{
			Identity: device.Identity{ID: "a"}, ProcessesKnown: true,
			Processes: []device.Process{{PID: 7, Details: workload.Details{Start: time.Unix(start, 0)}}},
		}}})
	}
	rec := d.recorded(t)
	assert.Equal(t, uint32(1), rec.Frames[1].GPUs[0].Processes[0].PID)
	assert.Equal(t, uint32(2), rec.Frames[2].GPUs[0].Processes[0].PID)
}

// What could not be read again is left out, and what cannot be true is not:
// it is what a report of a bug is about.
func TestGarbageIsRecordedAsFarAsItCanBeRead(t *testing.T) {
	d, fan := record(t), device.FanSpeeds.Members
	d.Add(&device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{{
		Identity: device.Identity{ID: "a", Index: -1, Name: strings.Repeat("x", 10_000)},
		Readings: of(map[*device.Quantity]float64{
			device.GeneralEngine.Utilization: 8083343.05, device.PowerDraw: math.NaN(),
			device.PowerLimit: math.Inf(1), device.PowerInstantGPU: 2,
			fan[0]: 0.3, fan[2]: math.Inf(-1), fan[3]: 0.4,
		}),
		ProcessesKnown: true,
		Processes: []device.Process{
			{PID: 1, Memory: device.Read(math.NaN()), Utilization: device.Numbers{"general": math.NaN(), "unheard": 1}},
			{PID: 1},
		},
	}, {
		Identity: device.Identity{ID: "a"},
	}, {
		Identity: device.Identity{ID: "orphan", MIG: &device.MIG{Parent: "unheard"}},
	}}})
	rec := d.recorded(t)
	require.Len(t, rec.Frames[0].GPUs, 1)
	gpu := rec.Frames[0].GPUs[0]
	assert.Equal(t, of(map[*device.Quantity]float64{
		device.GeneralEngine.Utilization: 8083343.05, device.PowerInstantGPU: 2, fan[0]: 0.3, fan[3]: 0.4,
	}), gpu.Readings)
	assert.Equal(t, recording.ProcessList{{PID: 1}}, gpu.Processes)
}

func TestProcessesBeyondTheLimitAreLeftOut(t *testing.T) {
	d := record(t)
	snapshot := device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{{Identity: device.Identity{ID: "a"}, ProcessesKnown: true}}}
	for pid := range uint32(recording.MaxProcesses + 10) {
		snapshot.GPUs[0].Processes = append(snapshot.GPUs[0].Processes, device.Process{PID: pid})
	}
	d.Add(&snapshot)
	rec := d.recorded(t)
	assert.Len(t, rec.Frames[0].GPUs[0].Processes, recording.MaxProcesses)
}

func TestTheRecordingEndsAfterItsDuration(t *testing.T) {
	d := record(t)
	for _, elapsed := range []time.Duration{0, 10 * time.Second, 10 * time.Second, 5 * time.Second, time.Hour - time.Second, time.Hour, 2 * time.Hour} {
		d.after(elapsed)
		d.Add(&device.Snapshot{Driver: device.DriverMissing})
	}
	// Without a Shutdown.
	<-d.done
	rec := d.recorded(t)
	var times []time.Duration
	for _, frame := range rec.Frames {
		times = append(times, frame.At)
		assert.Equal(t, device.DriverMissing, frame.DriverState)
	}
	assert.Equal(t, []time.Duration{0, 10 * time.Second, time.Hour - time.Second}, times)
}

// An error waits for the next frame that has its GPU.
func TestErrorsWaitForTheirGPU(t *testing.T) {
	d := record(t)
	gpu := device.GPU{Identity: device.Identity{ID: "a"}}
	d.Add(&device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{gpu}})
	for range 2 * recording.MaxXIDs {
		d.Event(&device.Event{GPU: gpu.Identity, Code: 79})
	}
	for i := range 2 * recording.MaxGPUs {
		d.Event(&device.Event{GPU: device.Identity{ID: strconv.Itoa(i)}})
	}
	assert.Len(t, d.pending, recording.MaxGPUs)
	d.after(time.Second)
	d.Add(&device.Snapshot{Driver: device.DriverOK})
	d.after(2 * time.Second)
	d.Add(&device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{gpu}})
	d.after(3 * time.Second)
	d.Add(&device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{gpu}})
	rec := d.recorded(t)
	assert.Empty(t, rec.Frames[0].GPUs[0].XIDs)
	assert.Len(t, rec.Frames[2].GPUs[0].XIDs, recording.MaxXIDs)
	assert.Empty(t, rec.Frames[3].GPUs[0].XIDs)
	d.Event(&device.Event{GPU: gpu.Identity, Code: 79})
	d.Add(&device.Snapshot{})
}

// A recording that grows too large ends early, and can be read.
func TestALargeRecordingEndsEarly(t *testing.T) {
	d := record(t)
	assert.Equal(t, recording.MaxSize-tailSize, d.limit)
	d.limit = 32 << 10
	snapshot := device.Snapshot{Driver: device.DriverOK, GPUs: []device.GPU{{Identity: device.Identity{ID: "a"}, ProcessesKnown: true}}}
	for pid := range uint32(100) {
		snapshot.GPUs[0].Processes = append(snapshot.GPUs[0].Processes, device.Process{
			PID: pid, Types: device.ProcessTypes, Memory: device.Read(123456789012.0), Utilization: device.Numbers{"general": 0.123456789},
		})
	}
	for i := 0; ; i++ {
		d.after(time.Duration(i) * time.Second)
		d.Add(&snapshot)
		d.mu.Lock()
		ended := d.ended
		d.mu.Unlock()
		if ended {
			break
		}
	}
	rec := d.recorded(t)
	assert.Greater(t, len(rec.Frames), 1)
	assert.Len(t, rec.Frames[0].GPUs[0].Processes, 100)
	info, err := os.Stat(d.path)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(d.limit+tailSize))
}

// Nothing that is there is ever written over.
func TestAFileThatExistsIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.yaml")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := New(Options{Path: path, Logger: zap.NewNop(), Now: time.Now})
	require.ErrorIs(t, err, fs.ErrExist)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(raw))
}

func TestNothingReadIsNothingRecorded(t *testing.T) {
	d := record(t)
	require.NoError(t, d.Shutdown(t.Context()))
	require.NoError(t, d.Shutdown(t.Context()))
	assert.NoFileExists(t, d.path)
}

// A disk that fails costs the recording and nothing else.
func TestADiskThatFails(t *testing.T) {
	d := record(t)
	require.NoError(t, d.file.Close())
	for i := range 3 {
		d.after(time.Duration(i) * time.Second)
		d.Add(&device.Snapshot{Driver: device.DriverOK})
	}
	require.NoError(t, d.Shutdown(t.Context()))
	assert.Equal(t, []string{"Recording the GPUs", "The recording failed"}, d.messages())
	assert.NoFileExists(t, d.path)
}

func TestAFolderThatIsNotThere(t *testing.T) {
	_, err := New(Options{Path: filepath.Join(t.TempDir(), "none", "x.yaml"), Logger: zap.NewNop(), Now: time.Now})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
