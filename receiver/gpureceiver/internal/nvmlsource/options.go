package nvmlsource

import (
	"time"

	"go.uber.org/zap"

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
	// UserNames reports whether workloads have the names of their users.
	UserNames bool
	// PodResourcesSocket is the kubelet's socket for the GPUs of containers.
	// Empty means that the kubelet is not used.
	PodResourcesSocket string
	// CallTimeout is the limit for one round of calls about one GPU.
	CallTimeout time.Duration
	// RequireBuild makes Start fail if the build cannot call NVML.
	RequireBuild bool
	// SlowInterval is the least time between two rounds of slow calls. 0 means
	// a round after every reading.
	SlowInterval time.Duration
	// ReleaseBetweenReadings closes the library after each reading, unless a
	// GPU's persistence mode is off.
	ReleaseBetweenReadings bool
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
