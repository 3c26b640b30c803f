package nvmlsource

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// TestStatesAreGenerated holds the tables in Go against the file that people write.
func TestStatesAreGenerated(t *testing.T) {
	states, advice := make(map[status]device.DriverState), make(map[device.DriverState]string)
	var all []device.DriverState
	for _, of := range golden.YAML[[]struct {
		State  device.DriverState
		Status status
		Advice string
	}](t, "states.yaml") {
		all = append(all, of.State)
		if of.Status != "" {
			states[of.Status] = of.State
		}
		if of.Advice != "" {
			advice[of.State] = of.Advice
		}
	}
	assert.Equal(t, device.DriverStates, all)
	golden.Variables(t, "generated_states.go", "nvmlsource", "states.yaml",
		golden.Variable{Name: "driverStates", Comment: "are the driver's states by status. Others are DriverFailed.", Value: states},
		golden.Variable{Name: "advice", Comment: "has a log message for each state that says what to do about it.", Value: advice})
}
