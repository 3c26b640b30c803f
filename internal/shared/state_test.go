package shared

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNotices(t *testing.T) {
	var state State
	limit := func(n int64) func() []Notice {
		return func() []Notice {
			return []Notice{
				{Key: "runs", Kind: "limit", What: "Runs", Count: n, Fix: "max_runs: 2"},
				{Key: "modules", Kind: "gate", What: "Modules"},
			}
		}
	}
	first := state.PublishNotices("ml_metrics", limit(3))
	second := state.PublishNotices("ml_metrics", limit(4))
	other := state.PublishNotices("ml_guard/other", func() []Notice { return []Notice{{Key: "runs", Count: 1}} })
	silent := state.PublishNotices("ml_enrich", func() []Notice { return nil })
	assert.Equal(t, map[string][]Notice{
		"ml_metrics": {
			{Key: "modules", Kind: "gate", What: "Modules"},
			{Key: "runs", Kind: "limit", What: "Runs", Count: 7, Fix: "max_runs: 2"},
		},
		"ml_guard/other": {{Key: "runs", Count: 1}},
	}, state.Notices(), "instances of a component are added up")

	second()
	other()
	silent()
	assert.Equal(t, int64(3), state.Notices()["ml_metrics"][1].Count)
	assert.Len(t, state.Notices(), 1)
	first()
	first()
	assert.Empty(t, state.Notices())
}

// TestNoticesThatLast has two instances with one notice, of which each, one or none
// goes on.
func TestNoticesThatLast(t *testing.T) {
	var state State
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for _, test := range []struct{ first, second, want time.Time }{
		{early, late, early},
		{late, early, early},
		{time.Time{}, late, late},
		{late, time.Time{}, late},
		{},
	} {
		withdraw := []func(){
			state.PublishNotices("id", func() []Notice { return []Notice{{Key: "a", Since: test.first}} }),
			state.PublishNotices("id", func() []Notice { return []Notice{{Key: "a", Since: test.second}} }),
		}
		assert.Equal(t, test.want, state.Notices()["id"][0].Since)
		for _, end := range withdraw {
			end()
		}
	}
}

// TestNoticesWhileAComponentEnds publishes and withdraws while others read.
func TestNoticesWhileAComponentEnds(t *testing.T) {
	var state State
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for range 100 {
				state.PublishNotices("id", func() []Notice { return []Notice{{Key: "a", Count: 1}} })()
				for _, notice := range state.Notices()["id"] {
					assert.LessOrEqual(t, notice.Count, int64(4))
				}
			}
		})
	}
	busy.Wait()
	assert.Empty(t, state.Notices())
}
