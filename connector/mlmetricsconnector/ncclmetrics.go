package mlmetricsconnector

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

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
func (s *seenMetrics) noteNCCL(m pmetric.Metric, resource pcommon.Map, now time.Time) {
	if name := m.Name(); name != mlattr.NCCLRankState && name != mlattr.NCCLCommunicatorSize {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, point := range mlattr.NumberPoints(m).All() {
		attrs, at := point.Attributes(), point.Timestamp().AsTime()
		run := idOf(attrs, mlattr.RunID)
		if run == "" {
			run = idOf(resource, mlattr.RunID)
		}
		if run == "" || run == mlattr.Other || point.Flags().NoRecordedValue() || at.After(now.Add(maxNCCLAhead)) {
			continue
		}
		said := s.nccl[run]
		if said == nil {
			if len(s.nccl) >= maxClocks {
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
				said.Add(strconv.FormatInt(n, 10), strings.Clone(idOf(attrs, mlattr.NCCLRankHost)), idOf(attrs, mlattr.NCCLRankState))
			}
		}
	}
}

// stuck returns the ranks of runs that the others wait for, and forgets what was not
// said for goneAfter. The caller holds the lock.
func (s *seenMetrics) stuck(now time.Time) map[string][]ranks.Stuck {
	stuck := make(map[string][]ranks.Stuck)
	for run, said := range s.nccl {
		if now.Sub(said.arrived) > goneAfter {
			delete(s.nccl, run)
		} else if all := said.Stuck(); len(all) > 0 {
			stuck[run] = all
		}
	}
	return stuck
}

// ncclEvidence adds what NCCL says about the ranks that the others wait for.
func (v *runVerdict) ncclEvidence(p *problem.Problem, stuck []ranks.Stuck) {
	for i := range stuck[:min(len(stuck), maxNamed)] {
		_, place := v.placeOfStuck(&stuck[i])
		p.Evidence = append(p.Evidence, "NCCL: "+place+" "+stuck[i].Reason())
	}
	if more := len(stuck) - maxNamed; more > 0 {
		p.Evidence = append(p.Evidence, fmt.Sprintf("NCCL: %s more", quantity(more, "rank", "ranks")))
	}
}

// blame makes the first of the ranks that the others wait for the place of a hang.
func (v *runVerdict) blame(p *problem.Problem, stuck []ranks.Stuck) {
	if len(stuck) == 0 {
		return
	}
	host, place := v.placeOfStuck(&stuck[0])
	p.Rank, p.Host = stuck[0].Number, host
	if p.Next = "See whether the process of " + place + " still runs: the others wait for it."; stuck[0].Behind() {
		p.Next = "See what " + place + " does with py-spy dump: the others wait for it."
	}
}

// placeOfStuck returns the host of a rank, "" if its telemetry has none, and names
// the rank with it, else with the address that NCCL knows.
func (v *runVerdict) placeOfStuck(s *ranks.Stuck) (host, place string) {
	for i := range v.ranks {
		if rank := &v.ranks[i]; !rank.moved && rank.rank == s.Number {
			host = rank.host
		}
	}
	where := host
	if where == "" {
		where = s.Address
	}
	return host, placeOf(&rankReport{rank: s.Number, host: where})
}
