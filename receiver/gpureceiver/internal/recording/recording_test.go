package recording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
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

// frame is a recording of the GPU a in one frame with these lines.
func frame(lines string) string {
	return head + "gpus: [{uuid: a, processes: [{pid: 3}]}, {uuid: m, mig: {parent: a, gpu_instance: 1, compute_instance: 0}}]\nframes: [{at: 0s, gpus: [{uuid: a, " + lines + "}]}]\n"
}

func list(entry string, times int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(entry+", ", times), ", ") + "]"
}

// What is wrong is named with its place and with what is allowed there.
func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ recording, expected string }{
		"nothing":              {"", "the recording is empty"},
		"no YAML":              {"\t{", "yaml"},
		"a text":               {"hello", "line 1: cannot unmarshal !!str"},
		"a null":               {"~", `"version" is 0; allowed is 1`},
		"unknown key":          {head + "frames: [{at: 0s}]\nframez: []\n", `line 5: field framez not found`},
		"unknown reading":      {frame("power: {watts: 3}"), `"frames[0]::gpus[0]" has "power.watts", which is no key of a recording`},
		"unknown set":          {frame("volts: 3"), `"frames[0]::gpus[0]" has "volts", which is no key of a recording`},
		"key twice":            {frame("lost: true, lost: false"), `mapping key "lost" already defined`},
		"two documents":        {twoFrames + "---\nversion: 1\n", "more than one YAML document"},
		"version":              {strings.Replace(twoFrames, "version: 1", "version: 2", 1), `"version" is 2; allowed is 1`},
		"version is a text":    {strings.Replace(twoFrames, "version: 1", "version: one", 1), `line 1: cannot unmarshal !!str`},
		"no origin":            {strings.Replace(twoFrames, "origin: made for a test\n", "", 1), `"origin" is missing`},
		"no host":              {strings.Replace(twoFrames, "host_name: h\n", "", 1), `"host_name" is missing`},
		"no frames":            {head, `"frames" has no entry; allowed are 1 to 10000`},
		"frames is no list":    {head + "frames: {at: 0s}\n", `cannot unmarshal !!map into []recording.Frame`},
		"frame is no mapping":  {head + "frames: [[0s]]\n", `cannot unmarshal !!seq into recording.Frame`},
		"first frame late":     {head + "frames: [{at: 1s}]\n", `"frames[0]::at" is 1s; the first frame is at 0s`},
		"frames out of order":  {head + "frames: [{at: 0s}, {at: 2s}, {at: 2s}]\n", `"frames[2]::at" is 2s; it must be later than the frame before it, 2s`},
		"negative time":        {head + "frames: [{at: -1s}]\n", `"frames[0]::at" is -1s`},
		"time without a unit":  {head + "frames: [{at: 0}]\n", `cannot unmarshal !!int`},
		"short duration":       {head + "duration: 2s\nframes: [{at: 0s}, {at: 2s}]\n", `"duration" is 2s; it must be longer`},
		"too long":             {head + "duration: 10000h\nframes: [{at: 0s}]\n", `"duration" is 10000h0m0s; it must be longer than the last frame's "at", 0s, and at most 720h0m0s`},
		"late frame":           {head + "frames: [{at: 0s}, {at: 721h}]\n", `"frames[1]::at" is 721h0m0s`},
		"no uuid":              {head + "gpus: [{index: 1}]\nframes: [{at: 0s}]\n", `"gpus[0]::uuid" is missing`},
		"same uuid":            {head + "gpus: [{uuid: a}, {uuid: a}]\nframes: [{at: 0s}]\n", `"gpus" has a twice`},
		"negative index":       {head + "gpus: [{uuid: a, index: -1}]\nframes: [{at: 0s}]\n", `"gpus[0]::index" is -1; allowed is at least 0`},
		"MIG without a parent": {head + "gpus: [{uuid: a, mig: {gpu_instance: 1}}]\nframes: [{at: 0s}]\n", `"gpus[0]::mig::parent" is ""; allowed is the "uuid" of a whole GPU`},
		"MIG of itself":        {head + "gpus: [{uuid: a, mig: {parent: a}}]\nframes: [{at: 0s}]\n", `"gpus[0]::mig::parent" is "a"`},
		"MIG of a part":        {head + "gpus: [{uuid: a}, {uuid: b, mig: {parent: a}}, {uuid: c, mig: {parent: b}}]\nframes: [{at: 0s}]\n", `"gpus[2]::mig::parent" is "b"`},
		"XID of a part":        {strings.Replace(frame("xids: [{code: 13}]"), "gpus: [{uuid: a, xids", "gpus: [{uuid: m, xids", 1), `"frames[0]::gpus[0]::xids" is there for a MIG device`},
		"unknown GPU":          {head + "frames: [{at: 0s, gpus: [{uuid: b}]}]\n", `"frames[0]::gpus[0]::uuid" is "b", which is none of`},
		"GPU twice":            {head + "gpus: [{uuid: a}]\nframes: [{at: 0s, gpus: [{uuid: a}, {uuid: a}]}]\n", `"frames[0]::gpus" has a twice`},
		"process twice":        {head + "gpus: [{uuid: a, processes: [{pid: 3}, {pid: 3}]}]\nframes: [{at: 0s}]\n", `"gpus[0]::processes" has 3 twice`},
		"process twice there":  {frame("processes: [{pid: 3}, {pid: 3}]"), `"frames[0]::gpus[0]::processes" has 3 twice`},
		"negative process":     {frame("processes: [{pid: -3}]"), `cannot unmarshal !!int`},
		"type of a process":    {frame("processes: [{pid: 3, types: [idle]}]"), `"frames[0]::gpus[0]::processes[0]::types" has "idle"; allowed are ["compute"`},
		"task of a process":    {frame("processes: [{pid: 3, utilization: {idle: 1}}]"), `"frames[0]::gpus[0]::processes[0]::utilization" has "idle": 1; allowed are numbers of ["general"`},
		"name in a set":        {frame("power: {limit_watts: {peak: 1}}"), `"frames[0]::gpus[0]" has "power.limit_watts.peak", which is no key`},
		"nan":                  {frame("power: {draw_watts: .nan}"), `has "power.draw_watts": "NaN"; allowed is a number from -1e30 to 1e30`},
		"nan in a set":         {frame("clocks: {hertz: {sm: .nan}}"), `has "clocks.hertz.sm": "NaN"; allowed is a number`},
		"null":                 {frame("power: {draw_watts: }"), `line 5: "draw_watts" is null; leave out what was unavailable`},
		"null in a set":        {frame("clocks: {hertz: {sm: ~}}"), `"sm" is null`},
		"null processes":       {frame("processes: null"), `"processes" is null`},
		"no number":            {frame("memory: {used_bytes: much}"), `has "memory.used_bytes": "much"; allowed is a number`},
		"no flag":              {frame("repair: {remap_pending: 1}"), `has "repair.remap_pending": "1"; allowed is true or false`},
		"not lost":             {frame("lost: perhaps"), `cannot unmarshal !!str`},
		"code of an XID":       {frame("xids: [{code: -1}]"), `cannot unmarshal !!int`},
		"driver state":         {head + "frames: [{at: 0s, driver_state: sleepy}]\n", `"frames[0]::driver_state" is "sleepy"; allowed are ["ok"`},
		"way of attribution":   {head + "frames: [{at: 0s, attribution: {guess: ok}}]\n", `"frames[0]::attribution" has "guess": "ok"; allowed are ["cgroup"`},
		"state of a way":       {head + "frames: [{at: 0s, attribution: {cgroup: maybe}}]\n", `"frames[0]::attribution" has "cgroup": "maybe"; allowed are`},
		"long text":            {strings.Replace(twoFrames, "made for a test", strings.Repeat("x", maxText+1), 1), `line 2: "origin" is longer than 4096 bytes`},
		"long value":           {frame("power: {draw_watts: " + strings.Repeat("x", 1000) + "}"), `has "power.draw_watts": "` + strings.Repeat("x", 64) + `"; allowed`},
		"many GPUs":            {head + "gpus: " + list("{uuid: a}", MaxGPUs+1) + "\nframes: [{at: 0s}]\n", `"gpus" is a list of 257 entries; allowed are at most 256`},
		"many frames":          {head + "frames: " + list("{at: 0s}", MaxFrames+1) + "\n", `"frames" is a list of 10001 entries; allowed are at most 10000`},
		"many processes":       {frame("processes: " + list("{pid: 3}", MaxProcesses+1)), `"processes" is a list of 1025 entries; allowed are at most 1024`},
		"many XIDs":            {frame("xids: " + list("{code: 3}", MaxXIDs+1)), `"xids" is a list of 65 entries; allowed are at most 64`},
		"many owners":          {frame("owners: " + list("{pod: p}", 65)), `"owners" is a list of 65 entries; allowed are at most 64`},
		"many fans":            {frame("thermal: {fan_speed_ratios: " + list("1", 17) + "}"), `has "thermal.fan_speed_ratios.16", which is no key`},
		"many variables":       {head + "gpus: [{uuid: a, processes: [{pid: 3, environ: " + list("A=b", 65) + "}]}]\nframes: [{at: 0s}]\n", `"environ" is a list of 65 entries; allowed are at most 64`},
		"alias":                {head + "gpus: &g [{uuid: a}]\nframes: [{at: 0s, gpus: *g}]\n", `line 4: "gpus" is an anchor or an alias`},
		"alias bomb":           {head + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nframes: [*b,*b,*b,*b,*b,*b,*b]\n", `"a" is an anchor or an alias`},
		"a key with dots":      {frame("power.draw_watts: 1"), `has "power.draw_watts", which is no key`},
		"an empty key":         {frame(`"": {power: {draw_watts: 1}}`), `which is no key`},
		"no number of a fan":   {frame("thermal: {fan_speed_ratios: [.inf]}"), `has "thermal.fan_speed_ratios.0": "+Inf"; allowed is a number`},
		"too large a number":   {frame("power: {draw_watts: -2e30}"), `has "power.draw_watts": "-2e+30"; allowed is a number`},
		"deep":                 {head + "frames: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), `cannot unmarshal !!seq`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.recording))
			require.ErrorContains(t, err, test.expected)
			assert.Less(t, len(err.Error()), 2000)
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

// of returns readings of these quantities.
func of(numbers map[*device.Quantity]float64) (r device.Readings) {
	for q, number := range numbers {
		q.Store(&r, number)
	}
	return r
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
		assert.InDelta(t, expected, device.Energy.Of(&gpu.Readings).Value, 1e-9, elapsed.String())
	}
	gpu := player.at(10 * time.Second).GPUs[0]
	assert.InDelta(t, 3, device.PowerDraw.Of(&gpu.Readings).Value, 0)
}

func TestReadingsThatAreAbsentAreUnavailable(t *testing.T) {
	snapshot := play(t, head+"gpus: [{uuid: a}, {uuid: b, index: 1}]\nframes: [{at: 0s, gpus: [{uuid: b, activity: {general: {utilization: 0}}}, {uuid: a}]}]\n").at(0)
	assert.True(t, snapshot.Replayed)
	assert.Equal(t, device.DriverOK, snapshot.Driver)
	require.Len(t, snapshot.GPUs, 2)
	assert.Equal(t, device.GPU{Identity: device.Identity{ID: "a"}, EventsKnown: true, Processes: []device.Process{}}, snapshot.GPUs[0], "ordered by index")
	assert.Equal(t, device.Read(0), device.GeneralEngine.Utilization.Of(&snapshot.GPUs[1].Readings))
}

// everything has each part of the format once.
const everything = `version: 1
origin: made for a test
host_name: h
driver_version: "570.1"
cuda_version: "12.8"
duration: 10s
gpus:
  - uuid: GPU-a
    name: NVIDIA A100-SXM4-80GB
    pci_bus_id: "0000:19:00.0"
    vbios: 92.00.45.00.05
    architecture: ampere
    numa_node: 1
    processes:
      - {pid: 3, executable: python3, namespace_pid: 17, user_id: 1000, environ: [RANK=1], cgroup: "0::/system.slice/slurmstepd.scope/job_47/step_0"}
  - uuid: MIG-a
    mig: {parent: GPU-a, profile: 1g.10gb, gpu_instance: 13, compute_instance: 0}
    processes:
      - {pid: 4}
  - {uuid: GPU-b, index: 1}
frames:
  - at: 0s
    attribution: {cgroup: ok, environ: denied}
    gpus:
      - uuid: GPU-a
        power: {energy_joules: 100}
        processes: [{pid: 3, types: [compute, graphics], memory_bytes: 7, utilization: {general: 0.5}}]
        xids: [{code: 94, gpu_instance: 13, compute_instance: 0}, {code: 13}]
      - uuid: MIG-a
        processes: [{pid: 4}]
        owners: [{namespace: team, pod: train-0, container: main}]
      - uuid: GPU-b
        asleep: true
        processes: []
  - at: 5s
    driver_state: failed
    gpus:
      - {uuid: GPU-b, lost: true, xids: [{code: 79}]}
      - {uuid: GPU-a, unresponsive: true}
`

// system is that of the recordings of these tests.
var system = device.System{Host: "h", DriverVersion: "570.1", CUDAVersion: "12.8", Replayed: true}

func TestEveryPartOfARecordingIsPlayed(t *testing.T) {
	player := play(t, everything)
	known := func(value int64) workload.Number { return workload.Number{Value: value, Known: true} }
	whole := device.Identity{
		ID: "GPU-a", Name: "NVIDIA A100-SXM4-80GB", PCIBusID: "0000:19:00.0", VBIOS: "92.00.45.00.05",
		Architecture: "ampere", NUMANode: device.Read(1.0),
	}
	part := device.Identity{ID: "MIG-a", MIG: &device.MIG{Parent: "GPU-a", Profile: "1g.10gb", GPUInstance: 13}}
	pod := workload.Pod{Namespace: "team", Name: "train-0", Container: "main"}
	assert.Equal(t, device.Snapshot{
		System: system, Driver: device.DriverOK,
		Attribution: map[workload.Source]workload.SourceState{workload.SourceCgroup: workload.SourceOK, workload.SourceEnviron: workload.SourceDenied},
		GPUs: []device.GPU{
			{
				Identity: whole, EventsKnown: true, ProcessesKnown: true,
				Readings: of(map[*device.Quantity]float64{device.Energy: 100}),
				Processes: []device.Process{{
					PID: 3, Types: []string{"compute", "graphics"}, Memory: device.Read(7.0), Utilization: device.Numbers{"general": 0.5},
					Details:  workload.Details{Executable: "python3", NamespacePID: known(17)},
					Workload: workload.Workload{RankGlobal: known(1), SlurmJobID: "47", UserID: "1000"},
				}},
			},
			{
				Identity: part, ProcessesKnown: true, Owners: []workload.Pod{pod},
				Processes: []device.Process{{PID: 4, Types: []string{"compute"}, Workload: workload.Workload{Pod: pod}}},
			},
			{Identity: device.Identity{ID: "GPU-b", Index: 1}, EventsKnown: true, Asleep: true, ProcessesKnown: true, Processes: []device.Process{}},
		},
	}, player.at(0))
	assert.Equal(t, device.Snapshot{
		System: system, Driver: device.DriverFailed,
		GPUs: []device.GPU{
			{Identity: whole, EventsKnown: true, Unresponsive: true, Processes: []device.Process{}},
			{Identity: device.Identity{ID: "GPU-b", Index: 1}, EventsKnown: true, Lost: true, Processes: []device.Process{}},
		},
	}, player.at(5*time.Second))
}

// The receiver of a snapshot may remove impossible values from it.
func TestSnapshotsShareNoValues(t *testing.T) {
	player := play(t, everything)
	clear(player.at(0).GPUs[0].Processes[0].Utilization)
	assert.Equal(t, play(t, everything).at(0), player.at(0))
}

// listener plays a recording with a clock that the test moves, and keeps what
// is told.
type listener struct {
	player *Player
	now    time.Time
	events []device.Event
}

func listen(t *testing.T, recording string) *listener {
	t.Helper()
	rec, err := Parse([]byte(recording))
	require.NoError(t, err)
	l := &listener{now: time.Unix(1000, 0)}
	l.player = NewPlayer(rec, func() time.Time { return l.now })
	require.NoError(t, l.player.Start(t.Context(), func(event device.Event) { l.events = append(l.events, event) }))
	return l
}

// codes moves the clock and returns the codes that were told since.
func (l *listener) codes(t *testing.T, elapsed time.Duration) []uint64 {
	t.Helper()
	l.now, l.events = time.Unix(1000, 0).Add(elapsed), nil
	l.player.Snapshot(t.Context())
	codes := []uint64{}
	for _, event := range l.events {
		codes = append(codes, event.Code)
	}
	return codes
}

func TestEventsAreToldOnceInEachRound(t *testing.T) {
	l := listen(t, everything)
	assert.Equal(t, []uint64{94, 13}, l.codes(t, 0))
	assert.Equal(t, device.Event{
		System: system, Time: time.Unix(1000, 0), GPU: l.player.at(0).GPUs[0].Identity, Code: 94,
		GPUInstance: workload.Number{Value: 13, Known: true}, ComputeInstance: workload.Number{Known: true},
	}, l.events[0])
	assert.False(t, l.events[1].GPUInstance.Known)

	for _, step := range []struct {
		elapsed time.Duration
		codes   []uint64
	}{
		{0, []uint64{}},
		{4999 * time.Millisecond, []uint64{}},
		{5 * time.Second, []uint64{79}},
		{9 * time.Second, []uint64{}},
		{10 * time.Second, []uint64{94, 13}},
		{19 * time.Second, []uint64{79}},
		{26 * time.Second, []uint64{94, 13, 79}},
		// A clock that was set back tells nothing twice.
		{3 * time.Second, []uint64{}},
		{26 * time.Second, []uint64{}},
		{29 * time.Second, []uint64{}},
		// After a long time a whole round is the most that is told.
		{90 * time.Minute, []uint64{79, 94, 13}},
		{90*time.Minute + 6*time.Second, []uint64{79}},
	} {
		assert.Equal(t, step.codes, l.codes(t, step.elapsed), step.elapsed.String())
	}
}

// The time of an event is that of its frame, not that of the look.
func TestEventsHaveTheirFramesTime(t *testing.T) {
	l := listen(t, everything)
	l.codes(t, 17*time.Second)
	var times []time.Duration
	for _, event := range l.events {
		times = append(times, event.Time.Sub(time.Unix(1000, 0)))
	}
	assert.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second, 15 * time.Second}, times)
}

// A snapshot tells the events as well, before what it shows.
func TestSnapshotTellsEvents(t *testing.T) {
	l := listen(t, everything)
	assert.Len(t, l.player.Snapshot(t.Context()).GPUs, 3)
	assert.Len(t, l.events, 2)
	require.NoError(t, l.player.Shutdown(t.Context()))
}

// What is left of a round after the last frame: energy rises by its power and
// busy time by its utilization, and other counters stand still.
func TestCountersRiseFromRoundToRound(t *testing.T) {
	player := play(t, head+`duration: 10s
gpus: [{uuid: a}]
frames:
  - at: 0s
    gpus: [{uuid: a, activity: {general: {busy_seconds: 100}, decoder: {busy_seconds: 0}}, nvlink: {received_bytes: 1000, errors: {replay: 1}}, power: {energy_joules: 0}}]
  - at: 4s
    gpus: [{uuid: a, activity: {general: {busy_seconds: 103, utilization: 0.5}, decoder: {busy_seconds: 0}}, nvlink: {received_bytes: 5000, errors: {replay: 3}}, power: {energy_joules: 40, draw_watts: 10}}]
`)
	for elapsed, expected := range map[time.Duration][5]float64{
		0:                {100, 0, 1000, 1, 0},
		4 * time.Second:  {103, 0, 5000, 3, 40},
		10 * time.Second: {106, 0, 5000, 3, 100},
		14 * time.Second: {109, 0, 9000, 5, 140},
		30 * time.Second: {118, 0, 13000, 7, 300},
	} {
		r := player.at(elapsed).GPUs[0].Readings
		assert.Equal(t, expected, [5]float64{
			device.GeneralEngine.BusyTime.Of(&r).Value, device.DecoderEngine.BusyTime.Of(&r).Value, device.NVLinkReceived.Of(&r).Value,
			device.NVLinkErrors.Member("replay").Of(&r).Value, device.Energy.Of(&r).Value,
		}, elapsed.String())
	}
}

// A GPU that vanishes before the end has no power in the time that is left.
func TestAVanishedGPUUsesNoEnergy(t *testing.T) {
	player := play(t, head+`duration: 10s
gpus: [{uuid: a}]
frames:
  - at: 0s
    gpus: [{uuid: a, power: {energy_joules: 5, draw_watts: 10}}]
  - at: 4s
`)
	assert.Empty(t, player.at(4*time.Second).GPUs)
	gpu := player.at(10 * time.Second).GPUs[0]
	assert.InDelta(t, 5, device.Energy.Of(&gpu.Readings).Value, 0)
}
