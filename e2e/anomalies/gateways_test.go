package anomalies

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// victimsOfGateways is the number of runs in which each problem is planted. With three
// gateways, most of them have their GPUs' host at another gateway than themselves.
const victimsOfGateways = 5

// needGPUs are the kinds of problems whose evidence are the GPUs of a run.
var needGPUs = []string{
	mlattr.ProblemLooksHung, mlattr.ProblemGPUFailed, mlattr.ProblemHeldIdle, mlattr.ProblemThrottled, mlattr.ProblemMemoryGrowth,
}

// TestGatewaysFindWhatOneCollectorFinds plants the problems that show in GPUs, once
// before one collector and once before agents that send to three gateways: the gateway
// of a run has to know as much of its GPUs as a collector that gets everything.
func TestGatewaysFindWhatOneCollectorFinds(t *testing.T) {
	for _, p := range plans {
		if !p.fast || !slices.Contains(needGPUs, p.kind) {
			continue
		}
		t.Run(p.name(), func(t *testing.T) {
			t.Parallel()
			one, three := reports(t, p, 0), reports(t, p, 3)
			require.NotEmpty(t, one)
			assert.Equal(t, one, three)
		})
	}
}

// reports returns the problems that are reported after a plan, in the order of their
// subjects: by one collector, or by the gateways of a fleet.
func reports(t *testing.T, p plan, n int) (all []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(begins) // a bubble begins on a Saturday at midnight
		var to destination
		var err error
		if n == 0 {
			to, err = newCollector(t.Context(), flushOfPlanted)
		} else {
			to, err = newGateways(t.Context(), n)
		}
		require.NoError(t, err)
		w := newWorldOf(t.Context(), *first, to)
		_, err = w.measure(p, victimsOfGateways)
		require.NoError(t, err)
		for _, s := range to.reported() {
			all = append(all, s.kind+" "+s.run+" "+s.host+" "+s.gpu+": "+s.evidence)
		}
	})
	slices.Sort(all)
	return all
}
