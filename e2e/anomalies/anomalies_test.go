package anomalies

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlanted(t *testing.T) {
	for _, p := range plans {
		t.Run(p.kind+"/"+p.system+"/"+p.strength, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			var result *found
			synctest.Test(t, func(t *testing.T) {
				var err error
				result, err = measure(t.Context(), p, 1, 20)
				require.NoError(t, err)
			})
			t.Logf("recall %.2f of %d, after %s (90%% %s), onset off %s (90%% %s), %d spans, took %s",
				result.recall(), result.planted, quantile(result.after, 0.5), quantile(result.after, 0.9),
				quantile(result.off, 0.5), quantile(result.off, 0.9), result.spans, time.Since(began))
			assert.GreaterOrEqual(t, result.recall(), p.recall)
		})
	}
}

func TestHealthy(t *testing.T) {
	began := time.Now()
	var h *health
	synctest.Test(t, func(t *testing.T) {
		var err error
		h, err = watch(t.Context(), 1, 50, 4, 12*time.Hour, time.Minute)
		require.NoError(t, err)
	})
	counts := map[string]int{}
	for _, s := range h.false_ {
		counts[s.kind]++
		fmt.Println(s.kind, s.service, s.run, s.host, s.gpu, s.onset.Format(time.RFC3339), s.detected.Format(time.RFC3339), s.seen.Sub(s.detected))
	}
	t.Logf("%v, %d spans, took %s", counts, h.spans, time.Since(began))
}
