package points

import (
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

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
		run := program.IDOf(attrs, mlattr.RunID)
		if run == "" {
			run = program.IDOf(resource, mlattr.RunID)
		}
		if run == "" || run == mlattr.Other || point.Flags().NoRecordedValue() || at.After(now.Add(maxNCCLAhead)) {
			continue
		}
		said := s.nccl[run]
		if said == nil {
			if len(s.nccl) >= maxNCCLRuns {
				continue
			}
			said = &ncclAnswers{}
			s.nccl[strings.Clone(run)] = said
		}
		if !said.Answer(at) {
			continue
		}
		said.arrived = now
		if rank, ok := attrs.Get(mlattr.RankGlobal); ok && m.Name() == mlattr.NCCLRankState {
			if n, ok := mlattr.ReadInt(rank); ok && n >= 0 {
				said.Add(strconv.FormatInt(n, 10), strings.Clone(program.IDOf(attrs, mlattr.NCCLRankHost)), program.IDOf(attrs, mlattr.NCCLRankState))
			}
		}
	}
}

// stuck returns the ranks of runs that the others wait for, and forgets what was not
// said for gpus.GoneAfter. The caller holds the lock.
func (s *Seen) stuck(now time.Time) map[string][]ranks.Stuck {
	stuck := make(map[string][]ranks.Stuck)
	for run, said := range s.nccl {
		if now.Sub(said.arrived) > gpus.GoneAfter {
			delete(s.nccl, run)
		} else if all := said.Stuck(); len(all) > 0 {
			stuck[run] = all
		}
	}
	return stuck
}
