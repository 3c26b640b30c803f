package mlmetricsconnector

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// settleProblems ends the emission of problems, and adds the series of those that
// last to the store.
func (c *metricsConnector) settleProblems(now time.Time) (over streams.Overflowed) {
	_, _, open := c.problems.Settle(now, func(problem.Subject, time.Time) []problem.Change { return nil })
	if left := c.problems.Left(); left > 0 {
		c.telemetry.left.Add(overMaxProblems, left)
	}
	for i := range open {
		if open[i].Shadow || open[i].Severity == mlattr.SeverityMark {
			continue
		}
		over.Add(addOnset(c.store, &open[i], now))
	}
	return over
}

// addOnset adds the series of a problem to the store.
func addOnset(store *streams.Store, p *problem.Entry, now time.Time) streams.Overflowed {
	e := emission{source: streams.Source{Resource: p.Subject.Resource, Run: streams.Run{Host: p.Subject.Host}}, now: now}
	run := p.Subject.Run
	if p.Subject.GPU == "" {
		e.source.Run.ID, run = run, ""
	}
	e.at(series.ProblemOnset, p.Onset, p.Kind, p.Subject.GPU, run)
	if p.Seen.IsZero() {
		p.Seen = now
	}
	return store.Apply(e.updates, p.Seen)
}
