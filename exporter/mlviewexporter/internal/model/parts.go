package model

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/calls"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/changes"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/problems"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/traces"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// parts hold what the page shows, each one kind of it. What is received is passed to those
// that it concerns, and a State is taken of all. They are not safe for concurrent use.
type parts struct {
	problems.Subjects
	models          *serving.Models
	pools           *serving.Pools
	calls, requests *calls.Ring
	traces          *traces.Set
	problems        *problems.Set
	// ofHosts has the streams of hosts and of collectors' notices, overflow is when data
	// was received that stands for what another component had no room for.
	ofHosts  series.Group
	overflow time.Time
	// arrived is when data of a host, a client or a GPU last came: what ml_metrics
	// computes is no news of them. counted is when one of its counters last grew, on the
	// page of a fleet.
	arrived, counted time.Time
	started, pruned  time.Time
}

// newParts returns parts that hold nothing.
func newParts(of *input.Bounds) *parts {
	all := &parts{started: of.Now(), calls: calls.New(of), requests: calls.New(of), traces: traces.New(of)}
	all.Subjects = problems.Subjects{
		Bounds: of, Streams: series.NewTable(), Hosts: fleet.NewHosts(of.Texts), Senders: fleet.NewSenders(of.Texts, of.Limits),
		Services: serving.NewServices(of), Failures: failures.New(of), Changes: changes.New(of),
	}
	all.GPUs = gpus.New(of, all.Streams)
	all.Runs = runs.New(of, all.Streams, all.Changes, all.GPUs)
	all.models, all.pools = serving.NewModels(all.Streams, all.Services), serving.NewPools(of, all.Streams)
	all.problems = problems.New(all.Subjects)
	return all
}

// state returns a State, with what components report as missing. Its rows share nothing
// with the parts that changes.
func (all *parts) state(reported []api.Missing, now time.Time) *api.State {
	all.Runs.Record(now)
	all.prune(now)
	all.Runs.HoldGPUs(now)
	state := &api.State{Version: api.SchemaVersion, Time: now.UTC(), Collector: all.collector(now)}
	state.GPUs = all.GPUs.Rows(all.Runs.Holder, now)
	state.Failures = api.Limited(state.Collector.Hidden, "failures", all.Failures.Rows("", all.Runs.KeyOf, all.Services.Simulated, now), failures.MaxFailures)
	state.Collectors = all.Senders.Rows(now)
	state.Needs = all.problems.Rows(state, now)
	state.Resolved = all.problems.Resolved(state, now)
	state.Runs = all.Runs.Rows(now)
	state.Calls = all.callRows("", now)
	state.Pools = all.pools.Rows(now)
	state.Models = all.models.Rows(now)
	state.Changes = all.Changes.Rows()
	gpus.Count(state)
	simulated := slices.ContainsFunc(state.Runs, func(r api.Run) bool { return r.Simulated })
	state.Collector.Simulated = state.Collector.Simulated || simulated
	state.Missing = all.missing(state, reported, now)
	return state
}

func (all *parts) collector(now time.Time) api.Collector {
	arrived := all.arrived
	if arrived.IsZero() {
		arrived = all.counted // of collectors that do not say when data came
	}
	c := api.Collector{
		Version: all.Version, Started: all.started.UTC(), DataTime: api.TimeOf(arrived),
		Interval: all.Interval.Seconds(), Hosts: len(all.Hosts.All),
	}
	c.HostsReporting = len(mlattr.Where(maps.Values(all.Hosts.All), func(host *silence.Sender) bool { return !host.Silent(now) }))
	c.HostsWithoutGPU = all.GPUs.Without(slices.Sorted(maps.Keys(all.Hosts.All)))
	c.Hidden = all.Limits.Hidden()
	if all.JaegerURL != "" {
		c.Links = map[string]string{"jaeger": all.JaegerURL}
	}
	return c
}

// detail returns what the page shows of an opened run.
func (all *parts) detail(r *runs.Run, state *api.State, now time.Time) *api.RunDetail {
	row := r.Row(now)
	ranks, missing := r.RankRows(now)
	return &api.RunDetail{
		Run: row, Needs: mlattr.Where(slices.Values(state.Needs), func(n api.Need) bool { return n.Run == r.Key }),
		Ranks: ranks, MissingRanks: missing, Phases: r.Phases(now), TimeRatio: r.TimeRatio(now),
		Spent: r.Spent.Row(), Settings: r.Settings(),
		Changes:  all.Changes.Of(r.Key, r.Service, r.Hosts, r.FirstSeen, r.LastSeen),
		Curves:   r.Curves.Rows(now, r.StepsEnd(row.State)),
		Marks:    all.Changes.MarksOf(r.Key, r.Service, r.Hosts, all.Failures.Marks(r.Key)),
		Calls:    all.callRows(r.Key, now),
		Failures: all.Failures.Rows(r.Key, all.Runs.KeyOf, all.Services.Simulated, now),
		Traces:   all.traces.OfRun(r.Key),
	}
}

// callRows returns the calls and the requests to models of a run, or of all.
func (all *parts) callRows(run string, now time.Time) []api.Call {
	times := all.Services.CallTimes(now)
	rows := append(all.calls.Rows(run, times, all.Services.Simulated), all.requests.Rows(run, times, all.Services.Simulated)...)
	slices.SortStableFunc(rows, func(a, b api.Call) int { return b.Time.Compare(a.Time) })
	return rows
}

// pruneEvery is the time between two removals of what is gone.
const pruneEvery = time.Minute

// prune removes what has been gone for long.
func (all *parts) prune(now time.Time) {
	if now.Sub(all.pruned) < pruneEvery && !now.Before(all.pruned) {
		return
	}
	all.pruned = now
	history := all.History
	all.Runs.Prune(now)
	all.GPUs.Prune(all.problems.Prune(now), now)
	all.models.Prune(history, now)
	all.pools.Prune(now)
	all.Services.Prune(all.Streams, now)
	all.ofHosts.DropGone(all.Streams, now)
	all.Hosts.Prune(history, now)
	all.Senders.Prune(history, now)
	all.Limits.Prune(now)
	all.Changes.Prune(now)
	all.Failures.Prune(now)
}
