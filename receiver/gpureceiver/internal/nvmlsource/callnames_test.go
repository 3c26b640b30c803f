//go:build cgo && linux

package nvmlsource

import (
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
)

// The names that are asked about before a call are those of the list, and a
// GPU has no call of another name.
func TestCallNames(t *testing.T) {
	asked := map[string]bool{}
	// Nothing is called, so that no library is needed.
	g := &boundGPU{binding: &binding{histories: make(map[historyKey]*sampleHistory)}, device: struct{ nvml.Device }{}}
	calls := g.Calls("GPU-x", func(name string) bool {
		asked[name] = true
		return true
	})
	names := CallNames()
	for name := range asked {
		assert.Contains(t, names, name)
	}
	for _, c := range calls {
		if c.name != callFields {
			assert.Contains(t, names, c.name)
		}
	}
	slices.Sort(names)
	assert.Len(t, slices.Compact(names), len(CallNames()), "each once")
	assert.Empty(t, g.Calls("GPU-x", func(string) bool { return false }))
}
