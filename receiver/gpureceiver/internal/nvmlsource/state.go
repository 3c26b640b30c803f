package nvmlsource

import (
	"cmp"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	firstRetry = time.Second
	// maxRetry is the longest time between two attempts to open the driver.
	maxRetry = 30 * time.Second
)

// driverStates are the driver's states by status. Others are DriverFailed.
var driverStates = map[status]device.DriverState{
	statusSuccess:              device.DriverOK,
	statusLibraryNotFound:      device.DriverLibraryMissing,
	statusDriverNotLoaded:      device.DriverMissing,
	statusLibRMVersionMismatch: device.DriverVersionMismatch,
	statusNoPermission:         device.DriverNoPermission,
	statusTimeout:              device.DriverUnresponsive,
}

// stateOf returns the driver's state for a status.
func stateOf(result status) device.DriverState {
	return cmp.Or(driverStates[result], device.DriverFailed)
}

// advice has a log message for each state that says what to do about it.
var advice = map[device.DriverState]string{
	device.DriverLibraryMissing:   "No NVML library was found; GPU metrics start when there is one. In a container, the NVIDIA runtime mounts it with the capability utility",
	device.DriverMissing:          "The NVML library exists, but the NVIDIA kernel module is not loaded; GPU metrics start when it is",
	device.DriverVersionMismatch:  "The NVML library and the NVIDIA kernel module have different versions; load the new module and restart the collector, because a loaded library cannot be replaced",
	device.DriverNoPermission:     "The NVIDIA device files cannot be opened; the collector needs access to /dev/nvidiactl and /dev/nvidia*",
	device.DriverUnresponsive:     "The NVIDIA driver does not answer; GPU metrics continue when it does",
	device.DriverUnsupportedBuild: "This collector was built without cgo and cannot read GPUs; use a build with cgo, or source replay",
	device.DriverFailed:           "The NVIDIA driver failed; the receiver tries again",
}

// retry is the back-off for opening the driver.
type retry struct {
	wait time.Duration
	next time.Time
}

// due reports whether an attempt is due.
func (r *retry) due(now time.Time) bool {
	return !now.Before(r.next)
}

// failed doubles the time to the next attempt, up to maxRetry.
func (r *retry) failed(now time.Time) {
	r.wait = min(max(2*r.wait, firstRetry), maxRetry)
	r.next = now.Add(r.wait)
}

// succeeded resets the back-off.
func (r *retry) succeeded() {
	*r = retry{}
}

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
