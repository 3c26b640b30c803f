package clients

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// TestTargets shows that the servers work together.
func TestTargets(t *testing.T) {
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		unhealthy, err := prometheus.UnhealthyTargets(t.Context())
		assert.NoError(c, err)
		assert.Empty(c, unhealthy)
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
}
