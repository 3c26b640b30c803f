package nvmlsource

import (
	"context"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxGPUs bounds the number of GPUs that a library can report.
const maxGPUs = 256

// listing is the result of opening the library and listing its GPUs. The
// goroutine that makes the calls fills it.
type listing struct {
	mu       sync.Mutex
	taken    bool
	opened   bool
	result   status
	version  string
	cuda     string
	gpus     []*knownGPU
	wants    func(*device.Quantity) bool
	called   func(call, status string, took time.Duration)
	failures []failure
}

// list opens the library if it is not open, and lists its GPUs. The identity of
// a known GPU is not read again, because a GPU that fell off the bus would not
// answer.
func (s *Source) list(ctx context.Context) status {
	l := &listing{opened: s.open, version: s.driverVersion, cuda: s.cudaVersion, wants: s.opts.Wants, called: s.opts.Called, result: statusTimeout}
	if !s.open {
		s.opts.Attempted()
	}
	known, wasOpen := s.wholeGPUs(), s.open
	switch s.calls.do(ctx, s.opts.CallTimeout, driverSubject, func() { l.fill(s.library, known) }) {
	case refused:
		// Nothing was called, so that an open library is still open.
		return statusTimeout
	case abandoned:
		if ctx.Err() == nil {
			s.opts.Abandoned(driverSubject)
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = true
	for _, f := range l.failures {
		s.opts.Failed(f.call, string(f.status))
	}
	if l.result != statusSuccess {
		// A library that was open before still is. The job closes a library
		// that it has opened.
		return l.result
	}
	if !wasOpen {
		s.opts.Opened()
	}
	s.open = true
	s.driverVersion, s.cudaVersion = l.version, l.cuda
	s.gpus = l.gpus
	return statusSuccess
}

// fill makes the calls. It works on its own values and hands them over at the
// end. If they are an error, or no longer wanted, it closes the library that it
// has opened. A library must not be closed after a failed Open.
func (l *listing) fill(lib library, known []*knownGPU) {
	opens := !l.opened
	done := listing{opened: l.opened, version: l.version, cuda: l.cuda, wants: l.wants, called: l.called}
	done.result = done.query(lib, known)
	if opens && done.opened && done.result != statusSuccess {
		askStatus("close", l.called, lib.Close)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken {
		if opens && done.result == statusSuccess {
			askStatus("close", l.called, lib.Close)
		}
		return
	}
	l.result, l.gpus, l.failures = done.result, done.gpus, done.failures
	l.version, l.cuda = done.version, done.cuda
}

func (l *listing) query(lib library, known []*knownGPU) status {
	if !l.opened {
		if result := askStatus("open", l.called, lib.Open); result != statusSuccess {
			return l.failed("open", result)
		}
		l.opened = true
		version, result := ask("driver_version", l.called, lib.DriverVersion)
		if result == statusSuccess {
			l.version = version
		} else {
			_ = l.failed("driver_version", result)
		}
		l.cuda = text(l, device.CUDAVersion, "cuda_version", lib.CUDAVersion)
	}
	count, result := ask("device_count", l.called, lib.DeviceCount)
	if result != statusSuccess {
		return l.failed("device_count", result)
	}
	byIndex := make(map[int]*knownGPU, len(known))
	if len(known) <= count {
		// Indexes are stable only while GPUs are added, not removed.
		for _, k := range known {
			byIndex[k.identity.Index] = k
		}
	}
	for index := range min(count, maxGPUs) {
		if k := byIndex[index]; k != nil {
			l.gpus = append(l.gpus, k)
			continue
		}
		if k := l.identify(lib, index); k != nil {
			l.gpus = append(l.gpus, k)
		}
	}
	if count > 0 && len(l.gpus) == 0 && len(l.failures) > 0 {
		// If no GPU returns its identity, the driver does not work or this
		// process has no permission for any.
		return l.failures[len(l.failures)-1].status
	}
	return statusSuccess
}

// identify reads a GPU's identity. A GPU without a UUID is left out until it
// returns one, because it could not be distinguished from others.
func (l *listing) identify(lib library, index int) *knownGPU {
	handle, result := ask("device", l.called, func() (gpu, status) { return lib.Device(index) })
	if result != statusSuccess {
		_ = l.failed("device", result)
		return nil
	}
	id, result := ask("uuid", l.called, handle.UUID)
	if result != statusSuccess || id == "" {
		_ = l.failed("uuid", result)
		return nil
	}
	identity := device.Identity{ID: id, Index: index}
	if identity.Name, result = ask("name", l.called, handle.Name); result != statusSuccess {
		_ = l.failed("name", result)
	}
	if identity.PCIBusID, result = ask("pci_bus_id", l.called, handle.PCIBusID); result != statusSuccess {
		_ = l.failed("pci_bus_id", result)
	}
	identity.Serial = text(l, device.Serial, "serial", handle.Serial)
	identity.VBIOS = text(l, device.VBIOS, "vbios", handle.VBIOS)
	identity.Architecture = text(l, device.Architecture, "architecture", handle.Architecture)
	if l.wants(device.NUMANode) {
		if node, result := guard(handle.NUMANode); l.failed("numa_node", result) == statusSuccess {
			identity.NUMANode = device.Read(float64(node))
		}
	}
	return &knownGPU{handle: handle, calls: handle.Calls(id, l.wants), identity: identity}
}

// text reads a text if it is wanted. It is empty if unknown.
func text(l *listing, quantity *device.Quantity, name string, question func() (string, status)) string {
	if !l.wants(quantity) {
		return ""
	}
	answer, result := guard(question)
	if l.failed(name, result) != statusSuccess {
		return ""
	}
	return answer
}

// failed notes a call that failed and returns its status.
func (l *listing) failed(call string, result status) status {
	if result != statusSuccess && !result.unsupported() {
		l.failures = append(l.failures, failure{call: call, status: result})
	}
	return result
}
