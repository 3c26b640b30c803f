package gpureceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// Ids that change at every reading do not fill the memory, and do not push out
// a GPU that is there.
func TestRosterIsBounded(t *testing.T) {
	r := make(tracker)
	present := device.GPU{Identity: device.Identity{ID: "GPU-present"}}
	clock := time.Unix(100, 0)
	for i := range 3 * maxTracked {
		clock = clock.Add(time.Second)
		r.observe(&present, clock)
		r.observe(&device.GPU{Identity: device.Identity{ID: fmt.Sprint("GPU-", i)}}, clock)
		assert.LessOrEqual(t, len(r), maxTracked)
	}
	assert.Contains(t, r, "GPU-present")
	assert.Contains(t, r, fmt.Sprint("GPU-", 3*maxTracked-1))
	assert.NotContains(t, r, "GPU-0")
}
