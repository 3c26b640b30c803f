package points

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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
		number, ok := mlattr.Number(point)
		if !ok || !computes(point.Attributes()) {
			continue
		}
		sum, known = sum+number, true
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
	waits := func(key string) bool {
		return !slices.Contains([]string{"", "user", "system", "nice"}, mlattr.IDAt(attrs, key))
	}
	return !slices.ContainsFunc([]string{"cpu.mode", "process.cpu.state", "state", "type"}, waits)
}

// trainingPoints are the points of a resource that show the progress of a trainer
// whose steps may have no spans.
type trainingPoints []training.Point

// read adds the points of a metric. known are the clients that its resource and its
// scope identify.
func (p *trainingPoints) read(known vocabulary.System, m pmetric.Metric) {
	reader := vocabulary.Default()
	meaning, ok := reader.MetricMeaning(known|reader.Metric(m.Name()), m.Name(), m.Unit())
	if !ok || !meaning.System.Has(table.StepsInMetrics) || !training.Shows(&meaning.Metric) {
		return
	}
	point := training.Point{Metric: m.Name(), Measure: meaning.Measure, Instrument: meaning.Instrument}
	sent := false
	add := func(flags pmetric.DataPointFlags, at pcommon.Timestamp, value float64, count uint64) {
		if !flags.NoRecordedValue() {
			sent = true
			point.Value += value * meaning.Factor
			point.Count += count
			point.At = max(point.At, int64(min(at, maxTime))) // #nosec G115 -- not above maxTime
		}
	}
	switch {
	case meaning.Instrument != table.Histogram:
		point.Delta = m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range mlattr.NumberPoints(m).All() {
			number, _ := mlattr.Number(one)
			add(one.Flags(), one.Timestamp(), number, 0)
			if meaning.Instrument == table.Gauge {
				break // the others are of other things
			}
		}
	case m.Type() == pmetric.MetricTypeHistogram:
		point.Delta = m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range m.Histogram().DataPoints().All() {
			add(one.Flags(), one.Timestamp(), one.Sum(), one.Count())
		}
	case m.Type() == pmetric.MetricTypeExponentialHistogram:
		point.Delta = m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range m.ExponentialHistogram().DataPoints().All() {
			add(one.Flags(), one.Timestamp(), one.Sum(), one.Count())
		}
	}
	if sent {
		*p = append(*p, point)
	}
}

// maxTime is the largest time of a point that is read, in the year 2262.
const maxTime = pcommon.Timestamp(1<<63 - 1)

// maxNCCLRuns limits the runs of which is remembered what NCCL says.
const maxNCCLRuns = 8192

// maxNCCLAhead is how far a time in what NCCL says may be ahead of the collector's
// clock.
const maxNCCLAhead = time.Minute

// ncclAnswers is what NCCL says about a run, and when that arrived.
type ncclAnswers struct {
	ranks.Answers
	arrived time.Time
}

// noteNCCL records what NCCL says about the ranks of runs. Other metrics have no
// effect.
func (s *Seen) noteNCCL(m pmetric.Metric, resource pcommon.Map, now time.Time) {
	if name := m.Name(); name != mlattr.NCCLRankState && name != mlattr.NCCLCommunicatorSize {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, point := range mlattr.NumberPoints(m).All() {
		attrs, at := point.Attributes(), point.Timestamp().AsTime()
		run := cmp.Or(mlattr.IDAt(attrs, mlattr.RunID), mlattr.IDAt(resource, mlattr.RunID))
		if run == "" || run == mlattr.Other || point.Flags().NoRecordedValue() || at.After(now.Add(maxNCCLAhead)) {
			continue
		}
		said := shared.Bounded(&s.nccl, run, maxNCCLRuns, strings.Clone)
		if said == nil || !said.Answer(at) {
			continue
		}
		said.arrived = now
		if rank, ok := attrs.Get(mlattr.RankGlobal); ok && m.Name() == mlattr.NCCLRankState {
			if n, ok := mlattr.ReadInt(rank); ok && n >= 0 {
				said.Add(strconv.FormatInt(n, 10), strings.Clone(mlattr.IDAt(attrs, mlattr.NCCLRankHost)), mlattr.IDAt(attrs, mlattr.NCCLRankState))
			}
		}
	}
}

// said returns what NCCL and dumps say about the ranks of runs, and forgets what NCCL did not
// say for gpus.GoneAfter. The caller holds the lock.
func (s *Seen) said(now time.Time) map[string]ranks.Said {
	all := make(map[string]ranks.Said)
	for run, said := range s.nccl {
		if now.Sub(said.arrived) > gpus.GoneAfter {
			delete(s.nccl, run)
		} else if stuck := said.Stuck(); len(stuck) > 0 {
			all[run] = ranks.Said{Stuck: stuck}
		}
	}
	s.dumps.settle(now)
	for run, wait := range s.dumps.waits {
		all[run] = ranks.Said{Stuck: all[run].Stuck, Wait: wait}
	}
	return all
}
