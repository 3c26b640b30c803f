//go:build !cgo || !linux

package nvmlsource

// buildSupported reports that this build cannot call NVML.
const buildSupported = false

// newLibrary is never called where buildSupported is false.
func newLibrary(string) library {
	return nil
}
