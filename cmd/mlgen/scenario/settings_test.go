package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The caller decides how many of the calls, passes, batches and rounds fail.
func TestErrorRatio(t *testing.T) {
	for _, name := range []string{"snakepit", "taskweaver", "tuft", "fx"} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings()
			failures := func(ratio float64) int64 {
				settings.ErrorRatio = func(time.Time) float64 { return ratio }
				return flatten(perform(t, name, settings, 400)).truth.FailureCount
			}
			few, many := failures(0), failures(0.5)
			assert.Greater(t, many, few+50)
			if name != "taskweaver" { // whose first tries may fail in a round that does not
				assert.Zero(t, few)
			}
		})
	}
}

// What a process does in a pause belongs to no step.
func TestPause(t *testing.T) {
	for name, step := range map[string]string{"torchtel": "AdamW.step", "fx": "batch_processing"} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings()
			settings.Rate = 1 / time.Hour.Seconds()
			s, err := New(name, settings)
			require.NoError(t, err)
			begin := testStart.Add(30 * time.Minute)
			s.(Pauser).Pause(begin)
			sent := flatten(s.Step(begin.Add(20 * time.Second)))
			require.NotEmpty(t, sent.named(step))
			for _, span := range sent.spans {
				assert.GreaterOrEqual(t, span.StartUnixNano, begin.UnixNano(), "%s begins in the pause", span.Name)
			}
		})
	}
}
