// Package merge passes on each error of a GPU once, though both NVML and the kernel's
// log report it.
package merge

import (
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

const (
	// Hold is how long an error that NVML reported waits for its line in the
	// kernel's log, which says more. Both come within milliseconds.
	Hold = 2 * time.Second
	// Window is the longest time between two reports of one error. A driver that
	// hangs delays NVML, and a log that fails is opened again after a minute.
	Window = 90 * time.Second
	// maxReports bounds the reports that are kept. Of a storm, later ones are
	// passed on unpaired.
	maxReports = 1024
)

// Merger pairs the reports of two sources: of the errors of a GPU with one code in a
// window, as many are passed on as the source reports that reports more. It is safe
// for concurrent use.
type Merger struct {
	emit func(device.Event)

	mu sync.Mutex
	// reports are unpaired, the oldest first.
	reports []*report
	// reading is true while the kernel's log is read.
	reading bool
	closed  bool
}

// report is one source's report of an error.
type report struct {
	gpu  string
	code uint64
	// kernel is true for a report of the kernel's log, and false for one of NVML.
	kernel bool
	at     time.Time
	// held is the event, nil if it was passed on.
	held *device.Event
}

// New returns a merger that calls emit with each event. emit must not block, and
// must not call the merger.
func New(emit func(device.Event)) *Merger {
	return &Merger{emit: emit}
}

// Reading sets whether the kernel's log is read. While it is not, which is the
// default, NVML's events are passed on at once.
func (m *Merger) Reading(reading bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reading = reading
	if !reading {
		m.release(m.reports...)
	}
}

// NVML takes an event that NVML reported. It is passed on when its line is read, at
// the latest after Hold.
func (m *Merger) NVML(event device.Event) { m.take(event, false) }

// Kernel takes an event from the kernel's log, and passes it on at once if NVML's was
// not passed on before.
func (m *Merger) Kernel(event device.Event) { m.take(event, true) }

func (m *Merger) take(event device.Event, kernel bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	now := time.Now()
	m.forget(now)
	switch paired := m.pair(&event, kernel); {
	case paired != nil && (!kernel || paired.held == nil):
		return // it was passed on, or waits for its line
	case paired != nil:
		if !event.GPUInstance.Known {
			event.GPUInstance, event.ComputeInstance = paired.held.GPUInstance, paired.held.ComputeInstance
		}
	case len(m.reports) < maxReports:
		r := &report{gpu: gpuOf(&event), code: event.Code, kernel: kernel, at: now}
		m.reports = append(m.reports, r)
		if !kernel && m.reading {
			r.held = &event
			time.AfterFunc(Hold, func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.release(r)
			})
			return
		}
	}
	m.emit(event)
}

// Flush passes on what is held.
func (m *Merger) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.release(m.reports...)
}

// Close passes on what is held. Later events are dropped.
func (m *Merger) Close() {
	m.Flush()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// pair takes the oldest report of the same error by the other source. A GPU
// is gone once, also if both sources say so several times.
func (m *Merger) pair(event *device.Event, kernel bool) *report {
	gpu, gone := gpuOf(event), xid.Of(event.Code).Severity == xid.Gone
	for i := range m.reports {
		r := m.reports[i]
		if r.gpu != gpu || r.code != event.Code || r.kernel == kernel && !gone {
			continue
		}
		found := *r
		if !gone || kernel {
			// The first event that a GPU is gone still waits for its line.
			r.held = nil
		}
		if !gone {
			m.reports = slices.Delete(m.reports, i, i+1)
		}
		return &found
	}
	return nil
}

// forget forgets what is older than the window.
func (m *Merger) forget(now time.Time) {
	m.reports = slices.DeleteFunc(m.reports, func(r *report) bool { return r.held == nil && now.Sub(r.at) > Window })
}

// release passes on those events that are held.
func (m *Merger) release(reports ...*report) {
	for _, r := range reports {
		if r.held != nil {
			m.emit(*r.held)
			r.held = nil
		}
	}
}

// gpuOf identifies a GPU in both sources: by its address, or else its id.
func gpuOf(event *device.Event) string {
	if address, ok := kernellog.Address(event.GPU.PCIBusID); ok {
		return address
	}
	return event.GPU.ID
}
