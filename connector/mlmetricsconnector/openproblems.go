package mlmetricsconnector

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// settleProblems ends the emission of problems, adds the series of those that last
// to the store, and sends the records of those that began and ended.
func (c *metricsConnector) settleProblems(ctx context.Context, now time.Time) (over streams.Overflowed) {
	began, ended, open := c.problems.Settle(now, c.changesBefore)
	if left := c.shared.history.Left(); left > 0 {
		c.telemetry.left.Add(overMaxChanges, left)
	}
	c.shared.history.Tidy(now)
	if left := c.problems.Left(); left > 0 {
		c.telemetry.left.Add(overMaxProblems, left)
	}
	for i := range open {
		if open[i].Shadow || open[i].Severity == mlattr.SeverityMark || c.expired(&open[i], now) {
			continue
		}
		over.Add(addOnset(c.store, &open[i], now))
	}
	c.sendRecords(ctx, began, ended, now)
	return over
}

// expired reports whether a problem is gone, and may come back, and the series of its
// subject have expired meanwhile.
func (c *metricsConnector) expired(p *problem.Entry, now time.Time) bool {
	return p.Found.Before(now) && c.cfg.MetricsExpiration > 0 && !p.Seen.IsZero() && now.Sub(p.Seen) > c.cfg.MetricsExpiration
}

// sendRecords sends the records of an emission, if there is a pipeline of logs. A
// record that is refused, or not accepted within flush_interval, is lost, and counted:
// its problem has a series, too, which must not wait for the logs.
func (c *metricsConnector) sendRecords(ctx context.Context, began, ended []problem.Entry, now time.Time) {
	history := c.shared.recording()
	if history == nil {
		return
	}
	changes := history.Take()
	if len(began)+len(ended)+len(changes) == 0 {
		return
	}
	r := newRecords(c.version, c.flusher.Writer, now)
	for i := range changes {
		r.change(&changes[i])
	}
	for i := range began {
		r.problem(&began[i])
	}
	for i := range ended {
		r.problem(&ended[i])
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.FlushInterval)
	defer cancel()
	if _, err := c.shared.outlets.Send(mlattr.WithConcluded(ctx), r.logs); err != nil {
		c.telemetry.left.Add(lostRecords, int64(r.logs.LogRecordCount()))
		c.logger.Warn("Records of problems and changes could not be sent. They are lost.", zap.Error(err))
	}
}

// changesBefore returns the changes before the onset of a problem.
func (c *metricsConnector) changesBefore(of problem.Subject, onset time.Time) []problem.Change {
	var before []problem.Change
	for _, one := range c.shared.history.Before(change.Subject{Resource: of.Resource, Run: of.Run, Host: of.Host}, onset) {
		before = append(before, problem.Change{Time: one.Time, Text: one.Text})
	}
	return before
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
