//go:build !cgo || !linux

package nvmlsource

import "time"

// buildSupported reports that this build cannot call NVML.
const buildSupported = false

// newLibrary is never called where buildSupported is false.
func newLibrary(string, func() time.Time) library {
	return nil
}
