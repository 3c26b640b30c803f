package nvmlsource

// status is the name of an NVML return code, or one of the names below that
// this package adds.
type status string

const (
	statusSuccess              status = "SUCCESS"
	statusUninitialized        status = "UNINITIALIZED"
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
	// statusUnexpectedType means that a field's value has a type that this
	// package does not know.
	statusUnexpectedType status = "UNEXPECTED_TYPE"
)

// unsupported reports whether a status means that the GPU or the library
// cannot tell a value at all, which is normal.
func (s status) unsupported() bool {
	return s == statusNotSupported || s == statusFunctionNotFound
}

// library is what this package calls of NVML. Any method may block for ever,
// and all of them are called by the one goroutine that a caller owns.
type library interface {
	// Open loads and initialises the library.
	Open() status
	// Close is called only after an Open that succeeded.
	Close() status
	// DriverVersion is the version of the kernel module.
	DriverVersion() (string, status)
	// DeviceCount is the number of GPUs that the driver shows to this process.
	DeviceCount() (int, status)
	// Device returns the GPU with this index.
	Device(index int) (gpu, status)
}

// gpu is one GPU of the library.
type gpu interface {
	UUID() (string, status)
	Name() (string, status)
	// PCIBusID is the address as sysfs writes it.
	PCIBusID() (string, status)
	// The utilizations are 0 to 1.
	Utilization() (float64, status)
	EncoderUtilization() (float64, status)
	DecoderUtilization() (float64, status)
	// Memory is in bytes.
	Memory() (memory, status)
	// Power is in watts.
	Power() (float64, status)
	// Energy is in joules since the driver was loaded.
	Energy() (float64, status)
	// The temperatures are in degrees Celsius.
	Temperature() (float64, status)
	MemoryTemperature() (float64, status)
	// ComputeProcesses are the processes that hold a compute context.
	ComputeProcesses() ([]process, status)
}

// memory is in bytes.
type memory struct {
	total, used uint64
}

// process is a process as NVML lists it.
type process struct {
	pid uint32
	// memory is in bytes; unavailableMemory means that it is unknown.
	memory uint64
}

// unavailableMemory is what NVML gives where it cannot tell the memory of a
// process, for example on Windows or on MIG devices without permission.
const unavailableMemory = ^uint64(0)
