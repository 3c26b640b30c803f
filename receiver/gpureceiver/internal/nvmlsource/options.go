package nvmlsource

import (
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// defaultLibraryName is what the dynamic linker is asked for.
const defaultLibraryName = "libnvidia-ml.so.1"

// Options are the settings of a Source.
type Options struct {
	// LibraryPath is the library to load. Empty means the dynamic linker's.
	LibraryPath string
	// RootPath is where the host's root directory is mounted. Empty means /.
	RootPath string
	// PodResourcesSocket is the kubelet's socket that says which container has
	// which GPU. Empty means that none is asked.
	PodResourcesSocket string
	// CallTimeout is how long one round of calls about one GPU may take.
	CallTimeout time.Duration
	// RequireBuild makes Start fail where the build cannot call NVML.
	RequireBuild bool
	// SlowInterval is the least time between two rounds of the slow calls. 0
	// means one after every reading.
	SlowInterval time.Duration
	// ReleaseBetweenReadings closes the library after each reading, unless a
	// GPU's persistence mode is off.
	ReleaseBetweenReadings bool
	// Wants reports whether a quantity is needed. A call that yields none that
	// is needed is not made. Nil means that all are needed.
	Wants func(*device.Quantity) bool
	// Logger gets one line for each change of the driver's or a GPU's state.
	Logger *zap.Logger
	// Now is the clock. It may be asked by several goroutines at once.
	Now func() time.Time

	// The following are called from several goroutines, too.

	// Attempted is called for each attempt to open the driver, and Opened for
	// each that succeeded.
	Attempted, Opened func()
	// Called is called for each call that has returned, with its name, what it
	// returned and how long it took.
	Called func(call, status string, took time.Duration)
	// Failed is called for each call that failed, with the name of the value
	// and of the status.
	Failed func(call, status string)
	// Dropped is called with a number of values that cannot be true and were
	// left out before they became readings.
	Dropped func(value string, count int64)
	// Abandoned is called for each call that was left behind because it did
	// not return in time, with what it was about.
	Abandoned func(subject string)
}

// complete makes every function one that can be called.
func (o *Options) complete() {
	for _, hook := range []*func(){&o.Attempted, &o.Opened} {
		if *hook == nil {
			*hook = func() {}
		}
	}
	if o.Wants == nil {
		o.Wants = func(*device.Quantity) bool { return true }
	}
	if o.Called == nil {
		o.Called = func(string, string, time.Duration) {}
	}
	if o.Failed == nil {
		o.Failed = func(string, string) {}
	}
	if o.Dropped == nil {
		o.Dropped = func(string, int64) {}
	}
	if o.Abandoned == nil {
		o.Abandoned = func(string) {}
	}
}
