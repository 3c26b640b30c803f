package nvmlsource

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
	statusInsufficientSize     status = "INSUFFICIENT_SIZE"
	statusDriverNotLoaded      status = "DRIVER_NOT_LOADED"
	statusNVMLTimeout          status = "TIMEOUT"
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
	// statusTooMany means that a GPU has more processes than maxProcesses.
	statusTooMany status = "TOO_MANY"
)

// unsupported reports whether a status means that the GPU or the library lacks a
// value, which is normal.
func (s status) unsupported() bool {
	return s == statusNotSupported || s == statusFunctionNotFound
}

// dead reports whether to make no more calls about a GPU in this round.
func (s status) dead() bool {
	return s == statusTimeout || s == statusGPUIsLost
}

// failure is a call that did not succeed.
type failure struct {
	call   string
	status status
}
