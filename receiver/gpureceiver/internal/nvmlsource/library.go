package nvmlsource

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// status is the name of an NVML return code, or one of the names below that
// this package adds.
type status string

const (
	statusSuccess              status = "SUCCESS"
	statusUninitialized        status = "UNINITIALIZED"
	statusInvalidArgument      status = "INVALID_ARGUMENT"
	statusNotFound             status = "NOT_FOUND"
	statusNotSupported         status = "NOT_SUPPORTED"
	statusNoPermission         status = "NO_PERMISSION"
	statusDriverNotLoaded      status = "DRIVER_NOT_LOADED"
	statusLibraryNotFound      status = "LIBRARY_NOT_FOUND"
	statusFunctionNotFound     status = "FUNCTION_NOT_FOUND"
	statusGPUIsLost            status = "GPU_IS_LOST"
	statusLibRMVersionMismatch status = "LIB_RM_VERSION_MISMATCH"
	statusUnknown              status = "UNKNOWN"

	// statusPanic means that the binding panicked.
	statusPanic status = "PANIC"
	// statusTimeout means that the call has not returned in time.
	statusTimeout status = "TIMED_OUT"
	// statusUnexpectedType means that a value's type is unknown.
	statusUnexpectedType status = "UNEXPECTED_TYPE"
)

// unsupported reports whether a status means that the GPU or the library lacks a
// value, which is normal.
func (s status) unsupported() bool {
	return s == statusNotSupported || s == statusFunctionNotFound
}

// library is the part of NVML that this package calls. Any method can block
// forever. One goroutine calls them all.
type library interface {
	// Open loads and initialises the library.
	Open() status
	// Close is called only after an Open that succeeded.
	Close() status
	// DriverVersion is the version of the kernel module.
	DriverVersion() (string, status)
	// CUDAVersion is the newest version that the driver supports.
	CUDAVersion() (string, status)
	// DeviceCount is the number of GPUs that the driver shows to this process.
	DeviceCount() (int, status)
	// Device returns the GPU with this index.
	Device(index int) (gpu, status)
}

// gpu is one GPU or MIG device of the library.
type gpu interface {
	UUID() (string, status)
	Name() (string, status)
	// PCIBusID is the address as sysfs writes it.
	PCIBusID() (string, status)
	Serial() (string, status)
	VBIOS() (string, status)
	// Architecture is a name in lower case, empty if unknown.
	Architecture() (string, status)
	// NUMANode is the node of the host memory next to the GPU.
	NUMANode() (int, status)
	// Calls returns the calls about the readings that yield a wanted quantity,
	// in the order in which they are to be made. They remember earlier
	// answers, so that a GPU's calls are created once and used again. The
	// samples of the GPU with this id are remembered longer than its handle.
	Calls(id string, wants func(*device.Quantity) bool) []call
	// MIGDevices is the number of MIG devices that a GPU can have, 0 while it
	// is not in MIG mode. A GPU without that mode is unsupported.
	MIGDevices() (int, status)
	// MIGDevice returns the MIG device with this index; there are gaps.
	MIGDevice(index int) (gpu, status)
	// Instances are the ids of a MIG device within its GPU.
	Instances() (gpuInstance, computeInstance int, result status)
	// Size is that of a MIG device.
	Size() (migSize, status)
	// Renew takes over the handle of another gpu for the same device.
	Renew(with gpu)
	// Release frees what the GPU holds in the library, for a GPU that is gone
	// while others are not.
	Release()
	// ComputeProcesses, GraphicsProcesses and MPSProcesses are the processes
	// that hold a context of that kind. They take milliseconds.
	ComputeProcesses() ([]process, status)
	GraphicsProcesses() ([]process, status)
	MPSProcesses() ([]process, status)
	// ProcessUtilization returns the driver's samples of processes after a time
	// in its own microseconds, 0 for all samples that it still has.
	ProcessUtilization(since uint64) ([]processSample, status)
}

// call is one question to a GPU about its readings.
type call struct {
	// name is the call's name in the receiver's own metrics. Several calls can
	// share one.
	name string
	// yields are the quantities that the call reads. It is made if any of them
	// is wanted.
	yields []*device.Quantity
	// fields are the fields that the GPU's fieldBatch has to read before.
	fields []fieldKey
	// slow is true for a call that takes the driver milliseconds.
	slow bool
	// part is true for a call that is answered from the fields, so that it
	// does not reach the library.
	part bool
	// read makes the call. Only if it succeeds, store puts the values into the
	// readings.
	read func() (store func(*device.Readings), result status)
}

// wanted reports whether the call yields a wanted quantity.
func (c *call) wanted(wants func(*device.Quantity) bool) bool {
	return slices.ContainsFunc(c.yields, wants)
}

// number is a call for one quantity.
func number(name string, quantity *device.Quantity, ask func() (float64, status)) call {
	return call{name: name, yields: []*device.Quantity{quantity}, read: func() (func(*device.Readings), status) {
		value, result := ask()
		return func(r *device.Readings) { quantity.Store(r, value) }, result
	}}
}

// part is a call for one quantity that is answered from the fields.
func part(name string, quantity *device.Quantity, value fieldNumber) call {
	c := number(name, quantity, value.read)
	c.fields, c.part = value.keys, true
	return c
}

// process is a process as NVML lists it.
type process struct {
	pid uint32
	// memory is in bytes, or unavailableMemory.
	memory uint64
}

// unavailableMemory is NVML's value if it does not know the memory of a process,
// for example on a MIG device without permission.
const unavailableMemory = ^uint64(0)

// processSample is a process's use of a GPU in one of the driver's sample
// periods.
type processSample struct {
	pid uint32
	// time is the end of the period in the driver's microseconds.
	time uint64
	// The utilizations are in percent.
	general, encoder, decoder uint32
}
