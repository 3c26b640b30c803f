package points

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Metrics of a process by the conventions, as clients and host_metrics send them.
const (
	processCPUTime        = "process.cpu.time"
	processCPUUtilization = "process.cpu.utilization"
)

// noteCPU records a metric of the CPU time of a process. Other metrics have no
// effect.
func (s *Seen) noteCPU(m pmetric.Metric, attrs pcommon.Map, resource streams.Resource, now time.Time) {
	if name := m.Name(); name != processCPUTime && name != processCPUUtilization {
		return
	}
	sum, at, known := 0.0, now, false
	for _, point := range mlattr.NumberPoints(m).All() {
		if point.Flags().NoRecordedValue() || !computes(point.Attributes()) {
			continue
		}
		sum, known = sum+Number(point), true
		if point.Timestamp() != 0 {
			at = point.Timestamp().AsTime()
		}
	}
	if !known || !(sum >= 0) {
		return
	}
	key := processes.Of(attrs, resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Name() == processCPUTime {
		s.cpu.Time(key, sum, at, now)
	} else {
		// Of all cores, so that it is at least so many of one.
		s.cpu.Use(key, sum, now)
	}
}

// computes reports whether a point is about the time in which a process computes,
// not that in which it waits.
func computes(attrs pcommon.Map) bool {
	for _, key := range [...]string{"cpu.mode", "process.cpu.state", "state", "type"} {
		switch mode := program.IDOf(attrs, key); mode {
		case "", "user", "system", "nice":
		default:
			return false
		}
	}
	return true
}
