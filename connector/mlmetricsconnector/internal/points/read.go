package points

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// sentByClients maps metric names to the series that a program which sends them
// needs no more: the one of that name, and those that say the same by another name.
var sentByClients = func() map[string][]series.ID {
	names := make(map[string][]series.ID, len(series.All))
	for i := range series.All {
		s, id := &series.All[i], series.ID(i) // #nosec G115 -- the table's index
		names[s.Name] = append(names[s.Name], id)
		for _, next := range s.Next {
			names[next] = append(names[next], id)
		}
	}
	return names
}()

// Read records which program sends which series, the processes of runs, their progress,
// the state of GPUs, and what NCCL says about ranks. It ignores what ml_metrics has
// written. history gets the drivers of hosts, and is nil if nobody wants to know.
func (s *Seen) Read(md pmetric.Metrics, history *change.History, now time.Time) {
	var facts vocabulary.Facts
	var shown trainingPoints
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		of, _ := program.Read(attrs)
		seeDriver(history, attrs, now)
		clients := false
		vocabulary.Default().Resource(attrs, &facts)
		shown = shown[:0]
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() == metadata.ScopeName {
				continue
			}
			known := facts.Systems | vocabulary.Default().Scope(sm.Scope().Name())
			for _, m := range sm.Metrics().All() {
				for _, id := range sentByClients[m.Name()] {
					s.Note(of, id, now)
				}
				s.noteGPU(m, attrs, now)
				s.noteCPU(m, attrs, of, now)
				shown.read(known, m)
				s.noteNCCL(m, attrs, now)
				clients = clients || !mlattr.IsDerived(m.Name())
			}
		}
		if !clients {
			continue
		}
		key := runs.Key{Resource: of, Run: program.RunOf(&facts)}
		s.Hosts.See(now, key.Run.Host)
		if key.Run.ID != "" && key.Run.Rank != "" {
			s.Ranks.See(key, now)
		}
		if key.Run.ID != "" && key.Run.ID != mlattr.Other && len(shown) > 0 {
			s.Ranks.Train(key, program.Of(&facts, attrs), shown, now)
		}
	}
}
