package nvmlsource

import (
	"cmp"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/attribution"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// defaultLibraryName is the library's name for the dynamic linker.
const defaultLibraryName = "libnvidia-ml.so.1"

// Options are the settings of a Source.
type Options struct {
	// LibraryPath is the library to load. Empty means the dynamic linker's.
	LibraryPath string
	// RootPath is where the host's root directory is mounted. Empty means /.
	RootPath string
	// Attribution describes processes and the GPUs' owners.
	Attribution *attribution.Attribution
	// CallTimeout is the limit for the calls about one GPU at one reading.
	CallTimeout time.Duration
	// RequireBuild makes Start fail if the build cannot call NVML.
	RequireBuild bool
	// SlowInterval is the least time between two readings with slow calls. 0 means
	// that each has them.
	SlowInterval time.Duration
	// Wants reports whether a quantity is needed. A call that yields none that
	// is needed is not made.
	Wants func(*device.Quantity) bool
	// Logger gets one line for each change of the driver's or a GPU's state.
	Logger *zap.Logger
	// Now is the clock. Several goroutines call it.
	Now func() time.Time
	// Telemetry counts what the source does.
	Telemetry Telemetry
}

// Telemetry counts what a Source does. It must be safe for concurrent use.
type Telemetry interface {
	// Attempted is called for each attempt to open the driver, and Opened for
	// each success.
	Attempted()
	Opened()
	// Called is called for each call that has returned, with its name, status
	// and duration.
	Called(call, status string, took time.Duration)
	// Failed is called for each call that failed, with its name and status.
	Failed(call, status string)
	// Dropped is called with the number of impossible values that were
	// discarded before they became readings.
	Dropped(value string, count int64)
	// Abandoned is called for each call that did not return in time.
	Abandoned()
}

// Tally has the counts of the last reading.
type Tally struct {
	// GPUs is the number of GPUs and MIG devices that the driver listed.
	GPUs int
	// Unsupported is the number of GPUs and MIG devices without a call, by the
	// call's name.
	Unsupported map[string]int
}

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
func (s status) unsupported() bool { return s == statusNotSupported || s == statusFunctionNotFound }

// failure is a call that did not succeed.
type failure struct {
	call   string
	status status
}

// failed reports whether a status is that of a call that failed.
func (s status) failed() bool { return s != statusSuccess && !s.unsupported() }

const (
	firstRetry = time.Second
	// maxRetry is the longest time between two attempts to open the driver.
	maxRetry = 30 * time.Second
)

// stateOf returns the driver's state for a status.
func stateOf(result status) device.DriverState {
	return cmp.Or(driverStates[result], device.DriverFailed)
}

// retry is the back-off for opening the driver.
type retry struct {
	wait time.Duration
	next time.Time
}

// due reports whether an attempt is due.
func (r *retry) due(now time.Time) bool { return !now.Before(r.next) }

// failed doubles the time to the next attempt, up to maxRetry.
func (r *retry) failed(now time.Time) {
	r.wait = min(max(2*r.wait, firstRetry), maxRetry)
	r.next = now.Add(r.wait)
}

// succeeded resets the back-off.
func (r *retry) succeeded() { *r = retry{} }

// lostSession reports whether to reopen the library after a round in which no
// GPU answered, and the driver's status. A lost GPU is no reason: the driver
// answers, and only a reset brings the GPU back.
func lostSession(failures []failure) (result status, lost bool) {
	for _, f := range failures {
		switch f.status {
		case statusUninitialized, statusDriverNotLoaded, statusLibRMVersionMismatch, statusUnknown:
			return f.status, true
		}
	}
	return statusSuccess, false
}

// stateLog logs one line for each change of a state.
type stateLog struct {
	logger *zap.Logger
	// quiet logs a missing library or driver as information, for the source
	// auto, for which a host without GPUs is normal.
	quiet bool
	// library is the configured library, for the line about a missing one.
	library string
	// state is the driver's last state, empty if there is none.
	state  device.DriverState
	result status
}

// driver logs the driver's state if it has changed.
func (l *stateLog) driver(state device.DriverState, result status) {
	l.result = result
	if state == l.state {
		return
	}
	l.state = state
	if state == device.DriverOK {
		l.logger.Info("The NVIDIA driver answers", zap.String("state", string(state)))
		return
	}
	write := l.logger.Warn
	if l.quiet && (state == device.DriverLibraryMissing || state == device.DriverMissing) {
		write = l.logger.Info
	}
	fields := []zap.Field{zap.String("state", string(state)), zap.String("nvml.return", string(result))}
	if state == device.DriverLibraryMissing {
		fields = append(fields, zap.String("library_path", l.library))
	}
	write(advice[state], fields...)
}
