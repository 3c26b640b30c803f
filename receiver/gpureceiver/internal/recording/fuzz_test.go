package recording

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// FuzzRecording shows that a recording is refused or can be played at any
// time, that no counter falls from one round to the next, and that a look
// tells at most what a round has.
func FuzzRecording(f *testing.F) {
	f.Add([]byte(twoFrames), int64(7*time.Second))
	f.Add([]byte(everything), int64(7*time.Second))
	f.Add([]byte(head+"duration: 1ns\nframes: [{at: 0s}]\n"), int64(math.MaxInt64))
	f.Add([]byte(frame("power: {energy_joules: 1e30, draw_watts: -1e30}, nvlink: {errors: {replay: 1}}, xids: [{code: 1}]")), int64(-1))
	f.Add([]byte(head+"a: &a [x,x,x]\nb: &b [*a,*a,*a]\nframes: [*b,*b]\n"), int64(0))
	captures, err := filepath.Glob(filepath.Join("..", "..", "testdata", "captures", "*.yaml"))
	if err != nil || len(captures) == 0 {
		f.Fatal("no captures", err)
	}
	for _, capture := range captures {
		raw, err := os.ReadFile(capture)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, int64(61*time.Second))
	}
	f.Fuzz(func(t *testing.T, raw []byte, elapsed int64) {
		rec, err := Parse(raw)
		if err != nil {
			return
		}
		if rec.Duration <= 0 {
			t.Fatalf("duration %s", rec.Duration)
		}
		player := NewPlayer(rec, time.Now)
		told := 0
		if err := player.Start(t.Context(), func(device.Event) { told++ }); err != nil {
			t.Fatal(err)
		}
		elapsed = max(elapsed, 0)
		player.emitUntil(time.Duration(elapsed))
		if all := xids(rec); told > all {
			t.Errorf("%d events told of a round of %d", told, all)
		}
		now := player.at(time.Duration(elapsed))
		if elapsed > math.MaxInt64-int64(rec.Duration) {
			return
		}
		next := player.at(time.Duration(elapsed) + rec.Duration)
		if len(now.GPUs) != len(next.GPUs) {
			t.Fatalf("%d GPUs, then %d at the same place", len(now.GPUs), len(next.GPUs))
		}
		for i := range now.GPUs {
			compareCounters(t, &now.GPUs[i].Readings, &next.GPUs[i].Readings)
		}
	})
}

func xids(rec *Recording) int {
	count := 0
	for i := range rec.Frames {
		for j := range rec.Frames[i].GPUs {
			count += len(rec.Frames[i].GPUs[j].XIDs)
		}
	}
	return count
}

// compareCounters fails the test for a counter that fell, or is no number.
func compareCounters(t *testing.T, earlier, later *device.Readings) {
	t.Helper()
	before := map[*device.Quantity]float64{}
	earlier.EachCounter(func(q *device.Quantity, value float64) float64 {
		before[q] = value
		return value
	})
	later.EachCounter(func(q *device.Quantity, value float64) float64 {
		if was := before[q]; !(value >= was) || math.IsInf(value, 0) {
			t.Errorf("%s falls from %v to %v", q.Name, was, value)
		}
		delete(before, q)
		return value
	})
	for missing := range before {
		t.Errorf("%s is gone", missing.Name)
	}
}
