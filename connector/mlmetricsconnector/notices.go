package mlmetricsconnector

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Reasons for what is left out.
const (
	overMaxSeries   = "max_series"
	overMaxRuns     = "max_runs"
	evictedRuns     = "evicted"
	overMaxChanges  = "changes"
	overMaxProblems = "problems"
	lostRecords     = "records"
)

// notices returns how often a limit was reached, whether prices are missing, and what
// is withheld.
func (c *metricsConnector) notices() []shared.Notice {
	return append(append(c.withheld.notices(c.now()), c.prices.notices(c.id.String())...), c.telemetry.left.Notices(func(reason string) (shared.Notice, bool) {
		moreRuns := fmt.Sprintf("%s: {max_runs: %d}", c.id, max(2*c.cfg.MaxRuns, defaultMaxRuns))
		switch reason {
		case overMaxSeries:
			return shared.Notice{
				Kind: "limit", What: "Updates of new series",
				Why: fmt.Sprintf("There are max_series (%d) series already; counters were added up without labels, gauges dropped.", c.cfg.MaxSeries),
				Fix: fmt.Sprintf("%s: {max_series: %d}", c.id, 2*c.cfg.MaxSeries),
			}, true
		case overMaxRuns:
			return shared.Notice{
				Kind: "limit", What: "Updates of new runs",
				Why: fmt.Sprintf("There are max_runs (%d) runs that have not ended; counters were added up by service, gauges dropped.", c.cfg.MaxRuns),
				Fix: moreRuns,
			}, true
		case overMaxProblems:
			return shared.Notice{
				Kind: "limit", What: "Problems",
				Why: "Too many problems are open, or too many of one run or service.",
			}, true
		case overMaxChanges:
			return shared.Notice{
				Kind: "limit", What: "Values that may change",
				Why: "Too many values of services, runs and hosts are compared already.",
			}, true
		case lostRecords:
			return shared.Notice{
				Kind: "refused", What: "Records of problems and changes",
				Why: "A pipeline of logs refused them.",
			}, true
		case evictedRuns:
			return shared.Notice{
				Kind: "limit", What: "Ended and silent runs",
				Why: fmt.Sprintf("New runs took their place, because there are at most max_runs (%d).", c.cfg.MaxRuns),
				Fix: moreRuns,
			}, true
		}
		return shared.Notice{}, false
	})...)
}
