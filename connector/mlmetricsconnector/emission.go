package mlmetricsconnector

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/record"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/spans"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// conclusions is what is concluded of runs, services and GPUs, emission by emission.
type conclusions struct {
	member
	telemetry *telemetry
	state     *shared.State
	// writer is an attribute that records get, if it has a name.
	writer streams.Label
	// now returns the time.
	now func() time.Time

	store    *streams.Store
	clocks   *runs.Clocks
	losses   runs.Losses
	services *serving.Fleet
	// detect finds problems, which problems has until they end.
	detect   detect.Detector
	problems *problem.Board
	// verdicts are what people have said of problems, unread is why they could not be read.
	verdicts problem.Verdicts
	unread   string
	// withheld is since when nothing is concluded from silence.
	withheld problem.Withheld
}

func newConclusions(of member, tel *telemetry) *conclusions {
	cfg := of.cfg
	return &conclusions{
		member: of, telemetry: tel, state: new(shared.State), now: time.Now,
		store:  streams.NewStore(streams.Limits{Series: cfg.MaxSeries, Runs: cfg.MaxRuns, Expiration: cfg.MetricsExpiration}),
		clocks: runs.NewClocks(cfg.timeouts()), services: serving.NewFleet(),
		detect: detect.New(), problems: problem.NewBoard(),
	}
}

// conclude adds what an emission shows to the store, sends the records of problems and
// changes, and returns the runs that were replaced since the previous one.
func (c *conclusions) conclude(ctx context.Context, now time.Time, last bool) streams.Evicted {
	evicted := c.store.Evicted()
	c.telemetry.count(ctx, c.telemetry.builder.ConnectorMlMetricsRunsEvicted, int64(len(evicted)))
	c.telemetry.leave(evictedRuns, int64(len(evicted)))
	c.clocks.Forget(evicted)
	seen, expiration := c.Shared.seen, c.cfg.MetricsExpiration
	c.clocks.Read(&seen.Ranks, seen.Holders(), &c.losses, c.store, expiration, now)
	facts, said := seen.Settle(c.clocks.Services(c.store.Owners()), now)
	e := runs.Emission{Now: now, Last: last, Kept: c.cfg.Storage != nil || c.cfg.StateDirectory != "", Withheld: !c.withheld.Settle(now, c.state.LastRefusal()).IsZero(), Expiration: expiration, GPUs: facts, Said: said}
	all, owners := c.clocks.Advance(c.store, &e)
	facts.Write(c.store, now)
	if history := c.Shared.recording(); history != nil {
		for _, run := range all {
			history.Attempts(change.Subject{Resource: run.Key.Resource, Run: run.Key.ID}, run.Attempts(), now)
		}
	}
	c.services.Settle(c.store, expiration, now)
	c.readVerdicts(now)
	c.detect(&detect.State{
		Now: now, Limits: c.cfg.timeouts(), Runs: all, Losses: c.losses.Settle(c.clocks.Run, expiration, now),
		GPUs: facts, Owners: owners, Services: c.services, Withheld: e.Withheld, Lemons: &c.Shared.lemons, History: c.Shared.history,
	}, c.report)
	c.settleProblems(ctx, facts, e.Withheld, now)
	addNotices(c.store, c.state, now)
	c.telemetry.record(ctx, 0, spans.Skipped{}, &c.store.Overflowed)
	return evicted
}

// report reports a problem, and how many of its kind were right. One that is below the threshold
// of the configuration does not begin.
func (c *conclusions) report(p problem.Problem) {
	amount := p.Value
	if thresholds[p.Kind].most > 1 {
		amount /= p.Usual
	}
	if amount < c.cfg.Thresholds[p.Kind] && !c.problems.Open(p.Kind, p.Subject) {
		return
	}
	if text := c.verdicts.Of(p.Kind); text != "" {
		p.Evidence = append(slices.Clone(p.Evidence), text)
	}
	c.problems.Report(p)
}

// readVerdicts reads what people say of problems, if a directory may have it, and adds it to
// the store.
func (c *conclusions) readVerdicts(now time.Time) {
	if c.cfg.StateDirectory == "" {
		return
	}
	verdicts, err := problem.ReadVerdicts(c.cfg.StateDirectory)
	switch {
	case err == nil:
		c.verdicts, c.unread = verdicts, ""
	case err.Error() != c.unread:
		c.unread = err.Error()
		c.set.Logger.Error("The file of verdicts could not be read. The earlier ones stay.", zap.Error(err))
	}
	to := streams.Batch{Now: now}
	for verdict, n := range c.verdicts {
		to.Value(series.ProblemVerdicts, float64(n), verdict.Kind, verdict.Is)
	}
	c.store.Apply(to.Updates, now)
}

// settleProblems ends the emission of problems, adds the series of those that last
// to the store, and sends the records of those that began and ended.
func (c *conclusions) settleProblems(ctx context.Context, facts *gpus.Facts, withheld bool, now time.Time) {
	restored := c.Shared.restored.Load()
	if restored != nil {
		c.problems.Restore(*restored, now)
	}
	began, ended, open := c.problems.Settle(now, withheld, c.Shared.history.Before, c.news(facts, now))
	c.Shared.open.Store(&open)
	c.Shared.restored.CompareAndSwap(restored, nil)
	c.telemetry.leave(overMaxChanges, c.Shared.history.Left())
	c.telemetry.leave(overMaxProblems, c.problems.Left())
	c.telemetry.leave(overMaxDumps, c.Shared.seen.LeftDumps())
	c.Shared.history.Tidy(now)
	for i := range open {
		if p := &open[i]; p.Severity != mlattr.SeverityMark {
			// It belongs to no run: one that is gone must not live by its problem, nor end it.
			to := streams.Batch{Source: streams.Source{Resource: p.Subject.Resource, Run: streams.Run{Host: p.Subject.Host}}, Now: now}
			to.Time(series.ProblemOnset, p.Onset, p.Kind, p.Subject.GPU, p.Subject.Run)
			c.store.Apply(to.Updates, now)
		}
	}
	updated := slices.DeleteFunc(slices.Clone(open), func(p problem.Entry) bool { return !p.Updated })
	c.sendRecords(ctx, slices.Concat(began, updated, ended), now)
}

// news returns the function that says when the newest data arrived that could show
// that a problem is over: of the service, of the run or its GPUs, or of the GPU. Those
// of a host, and of a run that is silent, are over when their detector says so, unless
// it has forgotten them in a restart.
func (c *conclusions) news(facts *gpus.Facts, now time.Time) func(*problem.Entry) time.Time {
	return func(p *problem.Entry) (newest time.Time) {
		kind, _ := mlattr.ProblemNamed(p.Kind)
		if !p.Restored && kind.EndsUnreported {
			return now
		}
		switch kind.Of {
		case mlattr.OfService:
			return c.services.Newest(p.Subject.Resource)
		case mlattr.OfRun:
			key := streams.RunKey{Resource: p.Subject.Resource, ID: p.Subject.Run}
			// A run that hung before a restart is over when it sends, or has released
			// its GPUs.
			if of := runs.RunOf(key); !p.Restored || kind.EndsUnreported || facts.Runs[of].Released {
				newest = facts.Runs[of].Read
			}
			if run := c.clocks.Run(key); run != nil && run.Seen.After(newest) {
				newest = run.Seen
			}
			return newest
		case mlattr.OfGPU:
			return facts.GPUs[gpus.Key{Host: p.Subject.Host, ID: p.Subject.GPU}].Read
		default:
			return facts.Hosts[p.Subject.Host].Heard
		}
	}
}

// sendRecords sends the records of an emission, if there is a pipeline of logs. A
// record that is refused, or not accepted within flush_interval, is lost, and counted:
// its problem has a series, too, which must not wait for the logs.
func (c *conclusions) sendRecords(ctx context.Context, problems []problem.Entry, now time.Time) {
	history := c.Shared.recording()
	if history == nil {
		return
	}
	changes := history.Take()
	if len(problems)+len(changes) == 0 {
		return
	}
	r := record.New(c.set.BuildInfo.Version, c.writer, now)
	for i := range changes {
		r.Change(&changes[i])
	}
	for i := range problems {
		r.Problem(&problems[i])
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.FlushInterval)
	defer cancel()
	if _, err := c.Shared.outlets.Send(mlattr.WithConcluded(ctx), r.Logs); err != nil {
		c.telemetry.leave(lostRecords, int64(r.Logs.LogRecordCount()))
		c.set.Logger.Warn("Records of problems and changes could not be sent. They are lost.", zap.Error(err))
	}
}

// addNotices adds since when the collector loses data to the store, by the kind of its
// notices.
func addNotices(store *streams.Store, from *shared.State, now time.Time) {
	since := make(map[string]time.Time)
	for _, all := range from.Notices() {
		for _, one := range all {
			if first := since[one.Kind]; !one.Since.IsZero() && (first.IsZero() || one.Since.Before(first)) {
				since[one.Kind] = one.Since
			}
		}
	}
	to := streams.Batch{Now: now}
	for kind, first := range since {
		to.Time(series.CollectorNotice, first, kind)
	}
	store.Apply(to.Updates, now)
}
