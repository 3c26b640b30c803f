package growth

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "compute the tables of docs/evidence/scale.md anew from its costs")

// The page's table of growth follows from its table of costs.
func TestPage(t *testing.T) {
	const page = "../../../docs/evidence/scale.md"
	costs, computed, err := Tables(page)
	require.NoError(t, err)
	if *update {
		require.NoError(t, Write(page, costs))
		return
	}
	assert.Equal(t, Computed(costs), computed, "go test -update computes the tables anew, make bench-scale UPDATE=1 measures the costs too")
}

func example() Costs {
	var c Costs
	for i, k := range constants {
		*k.value(&c) = float64(i + 1)
	}
	return c
}

// The table of costs can be read back, and each row is about a cost of its own.
func TestCosts(t *testing.T) {
	back, err := ParseCosts(example().Table())
	require.NoError(t, err)
	assert.Equal(t, example(), back)
	_, err = ParseCosts("| a |\n")
	require.Error(t, err)
}

func TestWrite(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# Page\n"+beginCosts+end+"text\n"+beginGrowth+"old\n"+end+"more\n"), 0o600))
	require.NoError(t, Write(page, example()))
	costs, computed, err := Tables(page)
	require.NoError(t, err)
	assert.Equal(t, example(), costs)
	assert.Equal(t, Computed(costs), computed)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), end+"text\n")
	assert.Contains(t, string(text), end+"more\n")
}

// Ten times the machines need ten times of what they share, and each limit of a
// gateway can be the one that decides.
func TestGrow(t *testing.T) {
	c := Costs{
		AgentSpan: 10, GatewaySpan: 10, GatewayRequest: 100, WireSpan: 50, QueueSpan: 500, QueuePoint: 100,
		GatewayBase: 100, GatewayRank: 0.1, GatewayAgent: 50, SeriesRank: 40, SeriesRun: 20, SeriesGPU: 90, PointsGPU: 80,
	}
	f := Grow(c, 1000)
	assert.InDelta(t, 40_000, f.Spans, 0)
	assert.InDelta(t, 64_000, f.Points, 0)
	assert.InDelta(t, 250, f.Runs, 0)
	assert.InDelta(t, 0.0004, f.AgentCores, 1e-9)
	assert.InDelta(t, 0.4+0.11, f.GatewayCores, 1e-9)
	assert.Equal(t, "`instance` of `ml_guard`", f.Reason)
	assert.InDelta(t, 9, f.Gateways, 0, "8,000 ranks by 1,000, and one to spare")
	assert.InDelta(t, 100+100+1000*50/1024., f.GatewayMiB, 1e-6)
	assert.InDelta(t, 8000*130+250*20, f.Series, 0)
	assert.InDelta(t, 2.0, f.Wire, 1e-9)
	assert.InDelta(t, 3600*(40*500+64*100)/float64(1<<20), f.QueueHour, 1e-6)

	for reason, change := range map[string]func(*Costs){
		"processor":                    func(c *Costs) { c.GatewaySpan = 1e4 },
		"`stream` of `ml_guard`":       func(c *Costs) { c.PointsGPU = 1e4 },
		"`max_series` of `ml_metrics`": func(c *Costs) { c.SeriesRank = 1e4 },
		"`max_runs` of `ml_metrics`":   func(*Costs) {},
		"`instance` of `ml_guard`":     func(c *Costs) { c.PointsGPU = 99 },
	} {
		changed := c
		change(&changed)
		f := Grow(changed, 10_000)
		found := ""
		for _, n := range needs(changed, f) {
			if n.reason == reason {
				found = reason
			}
		}
		assert.Equal(t, reason, found)
		if reason != "`max_runs` of `ml_metrics`" {
			assert.Equal(t, reason, f.Reason)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 9.6: "10", 999: "999", 1234: "1,230", 10_700_000: "10,700,000"} {
		assert.Equal(t, want, whole(v))
	}
	for v, want := range map[float64]string{0.0123: "0.012", 1.25: "1.2", 12: "12", 123: "123", 1234: "1,230"} {
		assert.Equal(t, want, short(v))
	}
}
