package recording

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const head = "version: 1\norigin: made for a test\nhost_name: h\n"

const twoFrames = head + `gpus: [{uuid: GPU-a}]
frames:
  - at: 0s
    gpus: [{uuid: GPU-a, power: {energy_joules: 10, draw_watts: 2}}]
  - at: 3s
    gpus: [{uuid: GPU-a, power: {energy_joules: 16, draw_watts: 3}}]
`

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ recording, expected string }{
		"nothing":             {"", "the recording is empty"},
		"no YAML":             {"\t{", "yaml"},
		"unknown key":         {head + "frames: [{at: 0s}]\nframez: []\n", "framez"},
		"unknown reading":     {head + "gpus: [{uuid: a}]\nframes: [{at: 0s, gpus: [{uuid: a, watts: 3}]}]\n", "watts"},
		"two documents":       {twoFrames + "---\nversion: 1\n", "more than one YAML document"},
		"version":             {strings.Replace(twoFrames, "version: 1", "version: 2", 1), `"version" is 2; allowed is 1`},
		"no origin":           {strings.Replace(twoFrames, "origin: made for a test\n", "", 1), `"origin" is missing`},
		"no host":             {strings.Replace(twoFrames, "host_name: h\n", "", 1), `"host_name" is missing`},
		"no frames":           {head, `"frames" has 0 entries; allowed are 1 to 10000`},
		"first frame late":    {head + "frames: [{at: 1s}]\n", `"frames[0]::at" is 1s; the first frame is at 0s`},
		"frames out of order": {head + "frames: [{at: 0s}, {at: 2s}, {at: 2s}]\n", `"frames[2]": "at" is 2s`},
		"negative time":       {head + "frames: [{at: -1s}]\n", `"at" is -1s`},
		"short duration":      {head + "duration: 2s\nframes: [{at: 0s}, {at: 2s}]\n", `"duration" is 2s; it must be longer`},
		"too long":            {head + "duration: 10000h\nframes: [{at: 0s}]\n", "longer than 30 days"},
		"no uuid":             {head + "gpus: [{index: 1}]\nframes: [{at: 0s}]\n", `"gpus[0]": "uuid" is missing`},
		"same uuid":           {head + "gpus: [{uuid: a}, {uuid: a}]\nframes: [{at: 0s}]\n", `"gpus[1]::uuid" "a" is there twice`},
		"negative index":      {head + "gpus: [{uuid: a, index: -1}]\nframes: [{at: 0s}]\n", `"index" is -1`},
		"unknown GPU":         {head + "frames: [{at: 0s, gpus: [{uuid: b}]}]\n", `"gpus[0]::uuid" "b" is none of`},
		"GPU twice":           {head + "gpus: [{uuid: a}]\nframes: [{at: 0s, gpus: [{uuid: a}, {uuid: a}]}]\n", `"a" is there twice`},
		"unknown process":     {head + "gpus: [{uuid: a}]\nframes: [{at: 0s, gpus: [{uuid: a, processes: [{pid: 3}]}]}]\n", `process 3 is none of`},
		"process twice":       {head + "gpus: [{uuid: a, processes: [{pid: 3}, {pid: 3}]}]\nframes: [{at: 0s}]\n", `process 3 is there twice`},
		"no number":           {head + "gpus: [{uuid: a}]\nframes: [{at: 0s, gpus: [{uuid: a, power: {draw_watts: .nan}}]}]\n", "nan, inf and null are no readings"},
		"driver state":        {head + "frames: [{at: 0s, driver_state: sleepy}]\n", `"driver_state" is "sleepy"; allowed are ["ok"`},
		"no number at all":    {head + "gpus: [{uuid: a}]\nframes: [{at: 0s, gpus: [{uuid: a, memory: {used_bytes: much}}]}]\n", "much"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.recording))
			require.ErrorContains(t, err, test.expected)
		})
	}
}

func TestParseRefusesALargeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(path, []byte(head+"#"+strings.Repeat("x", MaxSize)), 0o600))
	_, err := Load(path)
	require.ErrorContains(t, err, "larger than")
}

func play(t *testing.T, recording string) *Player {
	t.Helper()
	rec, err := Parse([]byte(recording))
	require.NoError(t, err)
	return NewPlayer(rec, time.Now)
}

func TestDefaultDuration(t *testing.T) {
	assert.Equal(t, 6*time.Second, play(t, twoFrames).rec.Duration)
	assert.Equal(t, 10*time.Second, play(t, head+"frames: [{at: 0s}]\n").rec.Duration)
}

// A round adds what the counter rose by, and the last frame's power for the
// time until the round ends: 16 - 10 + 3 W * 3 s.
func TestEnergyRisesFromRoundToRound(t *testing.T) {
	player := play(t, twoFrames)
	for elapsed, expected := range map[time.Duration]float64{
		-time.Second:            10,
		0:                       10,
		2999 * time.Millisecond: 10,
		3 * time.Second:         16,
		6 * time.Second:         25,
		9 * time.Second:         31,
		60 * time.Second:        10 + 10*15,
	} {
		gpu := player.at(elapsed).GPUs[0]
		assert.InDelta(t, expected, gpu.Readings.Power.Energy.Value, 1e-9, elapsed.String())
	}
	assert.InDelta(t, 3, player.at(10 * time.Second).GPUs[0].Readings.Power.Draw.Value, 0)
}

func TestReadingsThatAreAbsentAreUnavailable(t *testing.T) {
	snapshot := play(t, head+"gpus: [{uuid: a}, {uuid: b, index: 1}]\nframes: [{at: 0s, gpus: [{uuid: b, activity: {general: {utilization: 0}}}, {uuid: a}]}]\n").at(0)
	assert.True(t, snapshot.Replayed)
	assert.Equal(t, device.DriverOK, snapshot.Driver)
	require.Len(t, snapshot.GPUs, 2)
	assert.Equal(t, device.GPU{Identity: device.Identity{ID: "a"}, EventsKnown: true, Processes: []device.Process{}}, snapshot.GPUs[0], "ordered by index")
	assert.Equal(t, device.Read(0.0), snapshot.GPUs[1].Readings.Activity.General.Utilization)
}

// FuzzRecording shows that a recording is refused or can be played at any
// time, and that its energy never falls from one round to the next.
func FuzzRecording(f *testing.F) {
	f.Add([]byte(twoFrames), int64(7*time.Second))
	f.Add([]byte(head+"duration: 1ns\nframes: [{at: 0s}]\n"), int64(math.MaxInt64))
	f.Add([]byte(head+"gpus: [{uuid: a, processes: [{pid: 1, environ: [RANK=1], cgroup: x, user_id: 0}]}]\nframes: [{at: 0s, driver_state: failed, gpus: [{uuid: a, processes: [{pid: 1}]}]}]\n"), int64(-1))
	f.Add([]byte("a: &a [x]\nb: *a\n"), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, elapsed int64) {
		rec, err := Parse(raw)
		if err != nil {
			return
		}
		if rec.Duration <= 0 {
			t.Fatalf("duration %s", rec.Duration)
		}
		player := NewPlayer(rec, time.Now)
		elapsed = max(elapsed, 0)
		now := player.at(time.Duration(elapsed))
		if elapsed > math.MaxInt64-int64(rec.Duration) {
			return
		}
		next := player.at(time.Duration(elapsed) + rec.Duration)
		if len(now.GPUs) != len(next.GPUs) {
			t.Fatalf("%d GPUs, then %d at the same place", len(now.GPUs), len(next.GPUs))
		}
		for i, gpu := range now.GPUs {
			if next.GPUs[i].Readings.Power.Energy.Value < gpu.Readings.Power.Energy.Value {
				t.Errorf("energy falls from %v to %v", gpu.Readings.Power.Energy.Value, next.GPUs[i].Readings.Power.Energy.Value)
			}
		}
	})
}
