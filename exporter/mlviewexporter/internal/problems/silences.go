package problems

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// reportSilence is how long a collector is silent until that is a problem: the usual
// stall_timeout of ml_metrics.
const reportSilence = 5 * time.Minute

// silences returns the collectors as problems that fell silent while somebody
// worked of whom only they told. ml_metrics of a collector that has died cannot say so.
func (s *Set) silences(state *api.State, now time.Time) (rows []api.Need) {
	for _, row := range state.Collectors {
		one := s.Senders.All[row.ID]
		n := s.silence(one, &row, now)
		if n == nil {
			s.endSilence(one, mlattr.ProblemOver, now)
			continue
		}
		s.silent[one] = n
		rows = append(rows, *n)
	}
	return rows
}

// silence returns the problem that a collector is silent, nil if it is none.
func (s *Set) silence(one *fleet.Sender, row *api.SendingCollector, now time.Time) *api.Need {
	if row.SilentSince == nil || now.Sub(*row.SilentSince) < reportSilence {
		return nil
	}
	kind, _ := mlattr.ProblemNamed(mlattr.ProblemHostSilent)
	n := &api.Need{
		Key: api.Key("need", mlattr.ProblemHostSilent, "collector", one.ID), Kind: kind.Name, Severity: string(kind.Severity), Since: *row.SilentSince,
		Subject: "collector " + row.Title(), Before: []api.Change{},
		Next: "See whether the collector runs and reaches this page, and the hosts behind it.",
	}
	working := mlattr.Where(maps.Values(s.Runs.All), func(r *runs.Run) bool {
		w := r.Writers[r.Writer]
		return w != nil && w.Sender == one && r.News.Silent(now) && runs.Severity(r.CurrentState(now)) >= runs.Severity(mlattr.RunRunning)
	})
	holding := mlattr.Where(maps.Values(s.GPUs.All), func(g *gpus.GPU) bool {
		all := g.Workloads(now)
		return len(all) > 0 && all[0].Sender == one
	})
	held := len(holding)
	if len(working)+held == 0 {
		return nil
	}
	n.GPUs = slices.Sorted(slices.Values(mlattr.Mapped(holding, func(g *gpus.GPU) string { return g.Key })))
	n.Say("no data since %s", api.Clock(n.Since, now))
	n.Say("%s worked then, and %s held", api.Counted(len(working), "run", "runs"), api.Counted(held, "GPU was", "GPUs were"))
	if len(working) == 1 {
		s.ofRun(n, working[0])
	}
	if held > 0 {
		n.GPUHours = api.Finite(float64(held) * now.Sub(n.Since).Hours())
	}
	return n
}

// endSilence keeps as resolved that a collector was silent, if that was a problem.
func (s *Set) endSilence(one *fleet.Sender, reason string, now time.Time) {
	if n := s.silent[one]; n != nil {
		n.Key, n.Ended, n.EndReason, n.Next = api.Key("resolved", n.Key, n.Since.String()), api.TimeOf(now), reason, ""
		s.ended.add(n)
		delete(s.silent, one)
	}
}
