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
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
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
	parents         input.Parents
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
	all := &parts{started: of.Now(), calls: calls.New(of), requests: calls.New(of), traces: traces.New(of), parents: input.NewParents()}
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

// again adds a value of a stream that is known by its Origin, and reports whether it is.
func (all *parts) again(u *series.Update, now time.Time) bool {
	one := all.Streams.OfOrigin(u.Origin)
	// What belongs to a stream may have left meanwhile.
	if one == nil || !one.Live(now) {
		return false
	}
	if one.Host != nil {
		one.Host = all.Hosts.SeeAgain(one.Host, one.Labels.Host, now)
	}
	if !one.Series.Derived() {
		all.arrived = now
	}
	if one.Sender != nil {
		one.Sender = all.Senders.SeeAgain(one.Sender, now)
	}
	if one.Overflow {
		all.overflow = now
	}
	if all.update(one, u, true, now) {
		if g, ok := one.Owner.(*gpus.GPU); ok {
			g.SeeAgain(one.Series, now)
		}
	}
	return true
}

// tell notes when a run or a host has last sent anything, as ml_metrics says.
func (all *parts) tell(one *series.Stream, now time.Time) {
	at := series.Unix(one.Value)
	if at == nil {
		return
	}
	at = api.Earlier(at, &now)
	all.arrived = shared.Later(all.arrived, *at)
	if r, ok := one.Run.(*runs.Run); ok {
		r.News.Hear(*at)
	} else if host := all.Hosts.Of(one.Labels.Host); host != nil {
		host.Hear(*at)
	}
}

// point adds a point to its stream.
func (all *parts) point(p *series.Point, now time.Time) {
	var host *silence.Sender
	if !p.Series.Derived() {
		host, all.arrived = all.Hosts.See(p.Labels.Host, now), now
	}
	if p.Overflow {
		all.overflow = now
	}
	key := series.Key{Series: p.Series, Labels: p.Labels}
	var from *fleet.Sender
	if all.Fleet {
		from = all.Senders.See(&p.From, now)
	}
	if from != nil && !p.Series.OfHardware() {
		key.Labels.Collector = from.ID // a GPU is one, whoever sends it
	}
	one := all.Streams.Find(&key)
	if one == nil {
		if p.Gone {
			return
		}
		if one = all.newStream(key, p, now); one == nil {
			return
		}
	}
	all.Streams.SetOrigin(one, p.Origin)
	one.Host, one.Sender, one.Overflow, one.Simulated = host, from, p.Overflow, p.Simulated
	if !all.update(one, &p.Update, false, now) {
		return
	}
	if p.Simulated {
		all.Services.SeeSimulated(one.Labels.Service)
	}
	if g, ok := one.Owner.(*gpus.GPU); ok {
		all.GPUs.See(g, p, now)
	}
}

// update gives a stream a new value, and reports whether there is one. again reports
// whether everything else of the point is as before.
func (all *parts) update(one *series.Stream, u *series.Update, again bool, now time.Time) bool {
	ok, changed := one.Update(u, now)
	if !ok {
		return false
	}
	switch {
	case one.Series == series.Problem && changed:
		all.problems.Mark(one)
	case one.Series == series.HostLastData || one.Series == series.RunLastData:
		all.tell(one, now)
	case changed && one.Series.Counts() && all.Fleet:
		all.counted = now
	}
	if one.Run != nil {
		one.Run.Updated(one, !again || changed, now)
	}
	return true
}

// newStream returns a new stream and adds it to what it belongs to, or nil if
// that is beyond a limit.
func (all *parts) newStream(key series.Key, p *series.Point, now time.Time) *series.Stream {
	if all.Streams.Len() >= series.MaxStreams && !all.Runs.ReplaceStreams(&p.Labels, now) {
		all.Limits.Drop("streams")
		return nil
	}
	key.Labels.Keep(all.Texts)
	if known := all.Streams.Find(&key); known != nil {
		return known // its labels are longer than what is kept of them
	}
	one := series.New(key)
	if !all.attach(one, p, now) {
		return nil
	}
	all.Streams.Add(one)
	return one
}

// attach adds a stream to what it belongs to, and reports whether there is room.
func (all *parts) attach(one *series.Stream, p *series.Point, now time.Time) bool {
	l := &one.Labels
	subject := one.Series.Subject()
	from := share.OriginOf(p.Sender, l.Service)
	if l.Run != "" && (subject == series.OfRun || subject == series.OfModel || one.Series == series.Errors) {
		if r := all.Runs.Of(l.Namespace, l.Service, l.Run, from, now); r != nil {
			if !r.Attach(one) {
				all.Limits.Drop("series of one run")
				return false
			}
			one.Run = r
		}
	}
	owned := func(by series.Owner, limit int, of string) bool {
		if !by.Add(one, limit) {
			all.Limits.Drop(of)
			return false
		}
		one.Owner = by
		return true
	}
	switch subject {
	case series.OfModel:
		if !serving.Trains(one) {
			if m := all.models.Of(serving.ModelIDOf(one), now); m != nil {
				owned(m, serving.MaxStreamsOfModel, "series of one model")
			}
		}
	case series.OfService:
		if of := all.Services.Of(l.Namespace, l.Service, from, now); of != nil {
			owned(of, serving.MaxStreamsOfService, "series of one service")
		}
	case series.OfPool:
		pool := all.pools.Of(one, now)
		return pool != nil && owned(pool, serving.MaxStreamsOfPool, "series of one pool")
	case series.OfProblem:
		return all.problems.Add(one, now)
	case series.OfGPU:
		g := all.GPUs.Of(p, now)
		return g != nil && owned(g, gpus.MaxStreamsOfGPU, "series of one GPU")
	case series.OfHost, series.OfCollector:
		return owned(&all.ofHosts, maxStreamsOfHosts, "series of hosts")
	}
	return one.Owner != nil || one.Run != nil
}

// spans adds the spans of one request.
func (all *parts) spans(spans []input.Span, now time.Time) {
	all.arrived = now
	all.parents.Note(spans)
	var source *input.Source
	var from share.Origin
	var run *runs.Run
	var service *serving.Service
	noted := false
	for i := range spans {
		if source != spans[i].Source {
			source, noted = spans[i].Source, false
			from, run = share.OriginOf(source.Sender, source.Service), nil
			if source.Run != "" {
				run = all.Runs.OfSpans(source.Namespace, source.Service, source.Run, from, now)
			}
			all.Hosts.See(source.Host, now)
			service = all.Services.Of(source.Namespace, source.Service, from, now)
			all.Services.See(source, service)
			if run != nil {
				run.AddSettings(source.Settings)
				run.See(source, now)
			}
		}
		if service != nil && source.Run == "" && spans[i].Runless {
			service.WithoutRun++
		}
		if !noted && !spans[i].Failed {
			all.Limits.Shares.Succeeded(from, now)
			noted = true
		}
		all.span(&spans[i], run, from, now)
	}
	all.traces.Evict(0)
}

// span adds a span to all that it concerns, and to its run unless that is nil.
func (all *parts) span(in *input.Span, run *runs.Run, from share.Origin, now time.Time) {
	var named failures.Run
	if run != nil {
		run.Span(in, now)
		named = failures.Run{Key: run.Key, ID: run.ID, Again: run.Again}
	}
	// Of a chain of spans that report one request the lowest counts, and a failure counts where
	// it occurred.
	var below input.Below
	if in.Asks || in.Failed {
		below = all.parents.Of(in)
	}
	asked := in.Asks && !below.Asks
	if asked {
		all.models.Request(in, now)
	}
	if in.Held { // what is listed can be opened
		all.traces.Add(in, named.Key)
		switch {
		case in.Part != input.NoCall:
			all.calls.Add(in, named.Key)
		case asked:
			all.requests.Add(in, named.Key)
		}
	}
	elsewhere := in.Fact.ErrorElsewhere || below.Failed && in.Fingerprint == ""
	if in.Failed && !elsewhere && (in.ML || in.Class != "" || in.Fingerprint != "") {
		all.Failures.Span(in, named, from, now)
	}
}

// event adds a log record.
func (all *parts) event(e *input.Event, now time.Time) {
	if e.XID != nil {
		all.Hosts.See(e.Host, now)
		all.arrived = now
		if e.GPU != "" {
			all.GPUs.SeeXID(gpus.Ref{Host: e.Host, ID: e.GPU}, *e.XID, now)
		}
	}
	if e.Change != nil {
		run := ""
		if r := all.Runs.Find(e.Namespace, e.Change.Service, e.Change.RunID, e.Change.Host); r != nil {
			run = r.Key
		}
		all.Changes.Note(e.Change, run, now)
	}
	if e.Problem != nil {
		all.problems.Note(e.Problem, now)
	}
	if e.Failure != nil {
		all.Failures.Record(e.Failure, now)
	}
}
