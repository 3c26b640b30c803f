package merge

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// said is an event of one source at a time.
type said struct {
	after  time.Duration
	kernel bool
	code   uint64
	gpu    string
}

func event(s said) device.Event {
	e := device.Event{Code: s.code, GPU: device.Identity{ID: "GPU-" + s.gpu, PCIBusID: "00000000:" + s.gpu + ":00.0"}}
	if s.kernel {
		e.Text, e.GPU.PCIBusID = "line", "0000:"+s.gpu+":00.0"
	}
	return e
}

// texts plays events, and returns the messages of what was passed on until the end:
// "line" for the log's, "" for NVML's.
func texts(t *testing.T, reading bool, events ...said) (passed []string) {
	synctest.Test(t, func(*testing.T) {
		m := New(func(e device.Event) { passed = append(passed, e.Text) })
		m.Reading(reading)
		for _, s := range events {
			time.Sleep(s.after)
			synctest.Wait()
			if s.kernel {
				m.Kernel(event(s))
			} else {
				m.NVML(event(s))
			}
		}
		m.Close()
		m.Close()
		m.NVML(event(said{code: 1}))
		m.Kernel(event(said{code: 1}))
	})
	return passed
}

func TestEachErrorOnce(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		without  bool
		events   []said
		expected []string
	}{
		"the line first":      {events: []said{{kernel: true, code: 31, gpu: "01"}, {after: 50 * ms, code: 31, gpu: "01"}}, expected: []string{"line"}},
		"NVML first":          {events: []said{{code: 31, gpu: "01"}, {after: 50 * ms, kernel: true, code: 31, gpu: "01"}}, expected: []string{"line"}},
		"NVML alone":          {events: []said{{code: 31, gpu: "01"}}, expected: []string{""}},
		"the line alone":      {events: []said{{kernel: true, code: 31, gpu: "01"}}, expected: []string{"line"}},
		"a line that is late": {events: []said{{code: 31, gpu: "01"}, {after: Hold + ms, kernel: true, code: 31, gpu: "01"}}, expected: []string{""}},
		"NVML that is late":   {events: []said{{kernel: true, code: 31, gpu: "01"}, {after: Window - ms, code: 31, gpu: "01"}}, expected: []string{"line"}},
		"another error, later": {
			events:   []said{{kernel: true, code: 31, gpu: "01"}, {after: Window + ms, code: 31, gpu: "01"}},
			expected: []string{"line", ""},
		},
		"another code": {events: []said{{kernel: true, code: 31, gpu: "01"}, {code: 43, gpu: "01"}}, expected: []string{"line", ""}},
		"another GPU":  {events: []said{{kernel: true, code: 31, gpu: "01"}, {code: 31, gpu: "02"}}, expected: []string{"line", ""}},
		"two, each twice": {
			events:   []said{{kernel: true, code: 31, gpu: "01"}, {kernel: true, code: 31, gpu: "01"}, {code: 31, gpu: "01"}, {code: 31, gpu: "01"}},
			expected: []string{"line", "line"},
		},
		"two, one of them also by NVML": {
			events:   []said{{code: 31, gpu: "01"}, {kernel: true, code: 31, gpu: "01"}, {kernel: true, code: 31, gpu: "01"}},
			expected: []string{"line", "line"},
		},
		"three of NVML, one line": {
			events:   []said{{code: 31, gpu: "01"}, {code: 31, gpu: "01"}, {code: 31, gpu: "01"}, {kernel: true, code: 31, gpu: "01"}},
			expected: []string{"line", "", ""},
		},
		"a GPU is gone once": {
			events:   []said{{kernel: true, code: 79, gpu: "01"}, {kernel: true, code: 79, gpu: "01"}, {code: 79, gpu: "01"}, {after: ms, kernel: true, code: 79, gpu: "01"}},
			expected: []string{"line"},
		},
		"a GPU is gone, NVML first": {
			events:   []said{{code: 79, gpu: "01"}, {kernel: true, code: 79, gpu: "01"}, {kernel: true, code: 79, gpu: "01"}},
			expected: []string{"line"},
		},
		"a GPU is gone, NVML says so twice": {
			events:   []said{{code: 79, gpu: "01"}, {code: 79, gpu: "01"}, {kernel: true, code: 79, gpu: "01"}},
			expected: []string{"line"},
		},
		"a GPU is gone, only NVML says so, and twice": {
			events:   []said{{code: 79, gpu: "01"}, {code: 79, gpu: "01"}},
			expected: []string{""},
		},
		"without the log": {without: true, events: []said{{code: 31, gpu: "01"}, {code: 31, gpu: "01"}}, expected: []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.expected, texts(t, !test.without, test.events...))
		})
	}
}

// An event of NVML is passed on after Hold, without another event, and at once if the
// log can no longer be read.
func TestHeldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A timer passes events on, too.
		var passed atomic.Int64
		m := New(func(device.Event) { passed.Add(1) })
		m.Reading(true)
		m.NVML(event(said{code: 31, gpu: "01"}))
		time.Sleep(Hold / 2)
		m.NVML(event(said{code: 43, gpu: "01"}))
		synctest.Wait()
		assert.Zero(t, passed.Load())
		time.Sleep(Hold / 2)
		synctest.Wait()
		assert.EqualValues(t, 1, passed.Load())
		time.Sleep(Hold / 2)
		synctest.Wait()
		assert.EqualValues(t, 2, passed.Load())

		m.NVML(event(said{code: 45, gpu: "01"}))
		m.Reading(false)
		assert.EqualValues(t, 3, passed.Load())
		m.Reading(true)
		m.NVML(event(said{code: 46, gpu: "01"}))
		m.Flush()
		assert.EqualValues(t, 4, passed.Load())
		m.Close()
	})
}

// A log that could not be read for a while is read from where it ended: what NVML
// reported meanwhile was passed on.
func TestALogThatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passed []string
		m := New(func(e device.Event) { passed = append(passed, e.Text) })
		m.Reading(true)
		m.Reading(false)
		m.NVML(event(said{code: 31, gpu: "01"}))
		assert.Equal(t, []string{""}, passed, "at once")
		time.Sleep(time.Minute)
		m.Kernel(event(said{kernel: true, code: 31, gpu: "01"}))
		m.Kernel(event(said{kernel: true, code: 43, gpu: "01"}))
		m.Reading(true)
		assert.Equal(t, []string{"", "line"}, passed)
		m.Close()
	})
}

// The line has the MIG device if the driver wrote it, and NVML's otherwise.
func TestMIGInstances(t *testing.T) {
	known := func(id int64) workload.Number { return workload.Number{Value: id, Known: true} }
	var passed []device.Event
	m := New(func(e device.Event) { passed = append(passed, e) })
	m.Reading(true)
	for _, ofLine := range []workload.Number{{}, known(3)} {
		ofNVML, line := event(said{code: 94, gpu: "01"}), event(said{kernel: true, code: 94, gpu: "01"})
		ofNVML.GPUInstance, ofNVML.ComputeInstance = known(7), known(0)
		line.GPUInstance = ofLine
		m.NVML(ofNVML)
		m.Kernel(line)
	}
	m.Close()
	assert.Equal(t, known(7), passed[0].GPUInstance)
	assert.Equal(t, known(0), passed[0].ComputeInstance)
	assert.Equal(t, known(3), passed[1].GPUInstance)
	assert.False(t, passed[1].ComputeInstance.Known)
}

// A storm costs no more memory, and nothing is left out.
func TestAStorm(t *testing.T) {
	passed := 0
	m := New(func(device.Event) { passed++ })
	m.Reading(true)
	const many = 3 * maxReports
	for range many {
		m.Kernel(event(said{kernel: true, code: 31, gpu: "01"}))
	}
	assert.Len(t, m.reports, maxReports)
	for range many {
		m.NVML(event(said{code: 43, gpu: "01"}))
	}
	assert.Len(t, m.reports, maxReports)
	for range maxReports {
		m.NVML(event(said{code: 31, gpu: "01"}))
	}
	m.Close()
	assert.Equal(t, 2*many, passed, "also pairs are found in a storm")
}
