package anomalies

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var (
	update   = flag.Bool("update", false, "write docs/evidence/anomalies.md")
	days     = flag.Float64("days", 7, "how many days healthy fleets live")
	planting = flag.Int("victims", 40, "in how many runs or services each problem is planted")
	first    = flag.Int64("seed", 1, "the first seed")
)

// The fleets, together fleetRuns runs, of which -short has one, for less than a day.
const (
	fleets         = 6
	runsOfFleet    = fleetRuns / fleets
	servicesPer    = 3
	shortLife      = 16 * time.Hour
	flushOfHealthy = time.Minute
	victims, hangs = 40, 300
	shortVictims   = 10
)

// TestAnomalies measures everything, and with -short a part of it. It fails where a
// limit is exceeded.
func TestAnomalies(t *testing.T) {
	var all results
	t.Run("planted", func(t *testing.T) { all.planted = planted(t) })
	t.Run("healthy", func(t *testing.T) { all.healthy = healthy(t) })
	t.Run("recorded", func(t *testing.T) { all.recorded = recorded(t) })
	if *update {
		require.NoError(t, os.WriteFile("../../docs/evidence/anomalies.md", []byte(all.page()), 0o600))
	}
}

func planted(t *testing.T) []row {
	rows := make([]row, len(plans))
	t.Run("all", func(t *testing.T) {
		for i, p := range plans {
			rows[i].plan = p
			if testing.Short() && !p.fast {
				continue
			}
			t.Run(p.name(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { rows[i].found = plant(t, p) })
				if !p.missed {
					assert.GreaterOrEqual(t, rows[i].found.recall(), p.recall)
				}
			})
		}
	})
	return rows
}

// ofFleet reports whether a problem needs a fleet of its own.
func ofFleet(kind string) bool {
	return kind == mlattr.ProblemLemonHost || kind == mlattr.ProblemLemonVersion
}

// plant measures one plan.
func plant(t *testing.T, p plan) *found {
	n := *planting
	switch {
	case p.kind == mlattr.ProblemLemonVersion:
		n = max(min(n, victims)/10, 1) // a large fleet for a day
		if testing.Short() {
			n = 1
		}
	case testing.Short() && ofFleet(p.kind):
		n = min(n, shortVictims/3) // each is a fleet
	case testing.Short():
		n = min(n, shortVictims)
	case p.kind == mlattr.ProblemLooksHung && p.within == soon:
		n = n * hangs / victims
	}
	f := &found{}
	for i := range n {
		of, each := n, *first
		if ofFleet(p.kind) {
			of, each = 1, *first+int64(i) // a fleet has few lemons
		}
		one, err := measure(t.Context(), p, each, of)
		require.NoError(t, err)
		f.join(one)
		if f.planted >= n {
			break
		}
	}
	t.Logf("%s: recall %.2f of %d, after %s, onset off by %s, %d spans", p.name(), f.recall(), f.planted, both(f.after), both(f.off), f.spans)
	return f
}

func healthy(t *testing.T) (all health) {
	n, life := fleets, time.Duration(*days*24*float64(time.Hour))
	if testing.Short() {
		n, life = 2, shortLife
	}
	var lock sync.Mutex
	t.Run("all", func(t *testing.T) {
		for i := range n {
			t.Run("fleet", func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					h, err := watch(t.Context(), *first+int64(i), runsOfFleet, servicesPer, life, flushOfHealthy)
					require.NoError(t, err)
					for _, s := range h.untrue {
						t.Log(s)
					}
					lock.Lock()
					defer lock.Unlock()
					all.add(h)
				})
			})
		}
	})
	for _, l := range limits {
		assert.Falsef(t, all.refuted(l), "%d false problems of severity %s, where %.2f are allowed", all.count(l.severity), l.severity, all.expected(l))
	}
	return all
}

func recorded(t *testing.T) (all []recording) {
	folders, err := filepath.Glob(filepath.Join(recordings, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen, spans, err := replay(t.Context(), folder)
				require.NoError(t, err)
				rec := recording{client: filepath.Base(folder), spans: spans}
				for _, s := range seen {
					rec.kinds = append(rec.kinds, s.kind)
				}
				assert.Empty(t, rec.kinds)
				all = append(all, rec)
			})
		})
	}
	return all
}
