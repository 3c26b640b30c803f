package model

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// settledAfter is how long a run must look hung or be silent until it counts as
// settled: longer than a restart or a slow checkpoint takes.
const settledAfter = 10 * time.Minute

// Settled is a run that has come to an end: it has ended, or it has looked hung or
// been silent for 10 minutes.
type Settled struct {
	// Key is the key of the run, State its ml.run.state and Since when it settled.
	Key, State string
	Since      time.Time
	// Path is the share of its sender and service, Again whether the run did not come
	// only once.
	Path  share.Path
	Again bool
}

// settled returns the runs that have settled and whose last numbers have been
// recorded.
func (s *runs) settled(now time.Time) (all []Settled) {
	s.record(now)
	for _, r := range s.all {
		if r.stateNoted.IsZero() || len(r.curves.fine.times) == 0 {
			continue
		}
		wait := settledAfter
		switch r.state {
		case mlattr.RunEnded, mlattr.RunFailed:
			// The last numbers of a run arrive together with its end.
			wait = 2 * s.settings.Interval
		case mlattr.RunStalled, mlattr.RunSilent:
		default:
			continue
		}
		if now.Sub(r.stateNoted) >= wait {
			all = append(all, Settled{r.key, r.state, r.stateNoted, s.limits.shares.Path(r.origin), r.again})
		}
	}
	return all
}
