package identity

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// clock has the times that points may have.
type clock struct{ now, first, last pcommon.Timestamp }

func clockAt(now time.Time) clock {
	return clock{
		now:   pcommon.NewTimestampFromTime(now),
		first: pcommon.NewTimestampFromTime(now.Add(-mlattr.ClockBehind)),
		last:  pcommon.NewTimestampFromTime(now.Add(mlattr.ClockAhead)),
	}
}

// point is what points of all types have.
type point interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	SetTimestamp(pcommon.Timestamp)
	SetStartTimestamp(pcommon.Timestamp)
	Flags() pmetric.DataPointFlags
}

// repair gives a point the collector's time if its own is missing or wrong: Prometheus'
// exporter ignores points that are older than the one before.
func (c *clock) repair(p point, of pmetric.AggregationTemporality) {
	if at := p.Timestamp(); at >= c.first && at <= c.last {
		return
	}
	p.SetTimestamp(c.now)
	if of == pmetric.AggregationTemporalityDelta {
		p.SetStartTimestamp(c.now)
	}
	c.now++ // of deltas of a series with equal times, only the first would count
}
