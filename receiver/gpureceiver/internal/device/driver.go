package device

// DriverState is the state of the driver.
type DriverState string

// The states of a driver. The values are those of the attribute
// nvidia.gpu.driver.state.
const (
	// DriverOK means that the driver answers.
	DriverOK DriverState = "ok"
	// DriverLibraryMissing means that there is no NVML library.
	DriverLibraryMissing DriverState = "library_missing"
	// DriverMissing means that the library exists and the kernel module is not
	// loaded.
	DriverMissing DriverState = "driver_missing"
	// DriverVersionMismatch means that the library and the kernel module have
	// different versions.
	DriverVersionMismatch DriverState = "version_mismatch"
	// DriverNoPermission means that the device files cannot be opened.
	DriverNoPermission DriverState = "no_permission"
	// DriverUnresponsive means that a call about every GPU did not return in
	// time.
	DriverUnresponsive DriverState = "unresponsive"
	// DriverUnsupportedBuild means that this program was built without cgo
	// and cannot call NVML.
	DriverUnsupportedBuild DriverState = "unsupported_build"
	// DriverFailed means that the driver failed in any other way.
	DriverFailed DriverState = "failed"
)

// DriverStates lists every state in the order of reports.
var DriverStates = []DriverState{
	DriverOK,
	DriverLibraryMissing,
	DriverMissing,
	DriverVersionMismatch,
	DriverNoPermission,
	DriverUnresponsive,
	DriverUnsupportedBuild,
	DriverFailed,
}
