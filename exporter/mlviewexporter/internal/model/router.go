package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// again adds a value of a stream that is known by its Origin, and reports whether it is.
func (s *Store) again(u *series.Update, now time.Time) bool {
	one := s.streams.OfOrigin(u.Origin)
	// What belongs to a stream may have left meanwhile.
	if one == nil || !one.Live(now) {
		return false
	}
	if one.Host != nil {
		one.Host = s.hosts.SeeAgain(one.Host, one.Labels.Host, now)
	}
	if !one.Series.Derived() {
		s.arrived = now
	}
	if one.Sender != nil {
		one.Sender = s.senders.SeeAgain(one.Sender, now)
	}
	if one.Overflow {
		s.overflow = now
	}
	if s.update(one, u, true, now) {
		if g, ok := one.Owner.(*gpus.GPU); ok {
			g.SeeAgain(one.Series, now)
		}
	}
	return true
}

// tell notes when a run or a host has last sent anything, as ml_metrics says.
func (s *Store) tell(one *series.Stream, now time.Time) {
	at := series.Unix(one.Value)
	if at == nil {
		return
	}
	at = api.Earlier(at, &now)
	s.arrived = *api.Later(&s.arrived, at)
	if r, ok := one.Run.(*runs.Run); ok {
		r.News.Hear(*at)
	} else if host := s.hosts.Of(one.Labels.Host); host != nil {
		host.Hear(*at)
	}
}

// point adds a point to its stream.
func (s *Store) point(p *series.Point, now time.Time) {
	var host *silence.Sender
	if !p.Series.Derived() {
		host, s.arrived = s.hosts.See(p.Labels.Host, now), now
	}
	if p.Overflow {
		s.overflow = now
	}
	key := series.Key{Series: p.Series, Labels: p.Labels}
	var from *fleet.Sender
	if s.Fleet {
		from = s.senders.See(&p.From, now)
	}
	if from != nil && !p.Series.OfHardware() {
		key.Labels.Collector = from.ID // a GPU is one, whoever sends it
	}
	one := s.streams.Find(&key)
	if one == nil {
		if p.Gone {
			return
		}
		if one = s.newStream(key, p, now); one == nil {
			return
		}
	}
	s.streams.SetOrigin(one, p.Origin)
	one.Host, one.Sender, one.Overflow, one.Simulated = host, from, p.Overflow, p.Simulated
	if !s.update(one, &p.Update, false, now) {
		return
	}
	if p.Simulated {
		s.services.SeeSimulated(one.Labels.Service)
	}
	if g, ok := one.Owner.(*gpus.GPU); ok {
		s.gpus.See(g, p, now)
	}
}

// update gives a stream a new value, and reports whether there is one. again reports
// whether everything else of the point is as before.
func (s *Store) update(one *series.Stream, u *series.Update, again bool, now time.Time) bool {
	ok, changed := one.Update(u, now)
	if !ok {
		return false
	}
	switch {
	case one.Series == series.Problem && changed:
		s.problems.Mark(one)
	case one.Series == series.HostLastData || one.Series == series.RunLastData:
		s.tell(one, now)
	case changed && one.Series.Counts() && s.Fleet:
		s.counted = now
	}
	if one.Run != nil {
		one.Run.Updated(one, !again || changed, now)
	}
	return true
}

// newStream returns a new stream and adds it to what it belongs to, or nil if
// that is beyond a limit.
func (s *Store) newStream(key series.Key, p *series.Point, now time.Time) *series.Stream {
	if s.streams.Len() >= series.MaxStreams && !s.runs.ReplaceStreams(&p.Labels, now) {
		s.Limits.Drop("streams")
		return nil
	}
	key.Labels.Keep(s.Texts)
	if known := s.streams.Find(&key); known != nil {
		return known // its labels are longer than what is kept of them
	}
	one := series.New(key)
	if !s.attach(one, p, now) {
		return nil
	}
	s.streams.Add(one)
	return one
}

// attach adds a stream to what it belongs to, and reports whether there is room.
func (s *Store) attach(one *series.Stream, p *series.Point, now time.Time) bool {
	l := &one.Labels
	subject := one.Series.Subject()
	from := share.OriginOf(p.Sender, l.Service)
	if l.Run != "" && (subject == series.OfRun || subject == series.OfModel || one.Series == series.Errors) {
		if r := s.runs.Of(l.Namespace, l.Service, l.Run, from, now); r != nil {
			if !r.Attach(one) {
				s.Limits.Drop("series of one run")
				return false
			}
			one.Run = r
		}
	}
	owned := func(by series.Owner, limit int, of string) bool {
		if !by.Add(one, limit) {
			s.Limits.Drop(of)
			return false
		}
		one.Owner = by
		return true
	}
	switch subject {
	case series.OfModel:
		if !serving.Trains(one) {
			if m := s.models.Of(serving.ModelIDOf(one), now); m != nil {
				owned(m, serving.MaxStreamsOfModel, "series of one model")
			}
		}
	case series.OfService:
		if of := s.services.Of(l.Namespace, l.Service, from, now); of != nil {
			owned(of, serving.MaxStreamsOfService, "series of one service")
		}
	case series.OfPool:
		pool := s.poolOf(one, now)
		return pool != nil && owned(pool, maxStreamsOfPool, "series of one pool")
	case series.OfProblem:
		return s.problems.Add(one, now)
	case series.OfGPU:
		g := s.gpus.Of(p, now)
		return g != nil && owned(g, gpus.MaxStreamsOfGPU, "series of one GPU")
	case series.OfHost, series.OfCollector:
		return owned(&s.ofHosts, maxStreamsOfHosts, "series of hosts")
	}
	return one.Owner != nil || one.Run != nil
}

// span adds a span to all that it concerns.
func (s *Store) span(in *input.Span, from share.Origin, now time.Time) {
	src := in.Source
	s.hosts.See(src.Host, now)
	s.services.Span(in, s.services.Of(src.Namespace, src.Service, from, now))
	var named failures.Run
	if src.Run != "" {
		if r := s.runs.Of(src.Namespace, src.Service, src.Run, from, now); r != nil {
			r.Span(in, now)
			named = failures.Run{Key: r.Key, ID: r.ID, Again: r.Again}
		}
	}
	s.traces.Add(in, named.Key)
	if in.Call != input.NoCall {
		s.calls.Add(in, named.Key)
	}
	if s.models.IsRequest(in) {
		s.models.Request(in, now)
		if in.Call == input.NoCall {
			s.requests.Add(in, named.Key)
		}
	}
	if in.Failed && !in.FailureElsewhere && (in.ML || in.Class != "" || in.Fingerprint != "") && !s.failures.Covered(in) {
		s.failures.Span(in, named, from, now)
	}
}

// event adds a log record.
func (s *Store) event(e *input.Event, now time.Time) {
	if e.XID != nil {
		s.hosts.See(e.Host, now)
		s.arrived = now
	}
	if e.XID != nil && e.GPU != "" {
		xid := *e.XID
		xid.Time = kept.Earlier(xid.Time, now)
		s.gpus.SeeXID(gpus.Ref{Host: e.Host, ID: e.GPU}, xid)
	}
	if e.Change != nil {
		run := ""
		if r := s.runs.Find(e.Namespace, e.Change.Service, e.Change.RunID, e.Change.Host); r != nil {
			run = r.Key
		}
		s.changes.Note(e.Change, run, now)
	}
	if e.Problem != nil {
		s.problems.Note(e.Problem, e.Namespace, now)
	}
	if e.Failure != nil {
		s.failures.Record(e.Failure, now)
	}
}

// poolID identifies a pool of workers in one process.
type poolID struct{ namespace, service, pool, instance string }

// pool is a pool of workers.
type pool struct {
	poolID
	key string
	series.Group
}

// poolOf returns the pool of a stream, which it adds if there is room, else nil.
func (s *Store) poolOf(one *series.Stream, now time.Time) *pool {
	l := &one.Labels
	id := poolID{l.Namespace, l.Service, l.Own[0], ""}
	if one.Series.OfWorkers() {
		id.instance = l.Own[1]
	}
	p := s.pools[id]
	if p == nil {
		key := api.Key("pool", id.namespace, id.service, id.pool, id.instance)
		if len(s.pools) >= maxPools {
			s.Limits.Refuse("pools", key, now)
			return nil
		}
		s.Limits.Accept("pools", key)
		p = &pool{poolID: id, key: key}
		s.pools[id] = p
	}
	return p
}

// poolRows returns the rows of pools. Crashes, breakers and alerts name no
// process. They are in the row of the only process of a pool, else in a row of
// their own.
func (s *Store) poolRows(now time.Time) []api.Pool {
	rows := make([]api.Pool, 0, len(s.pools))
	for _, p := range s.pools {
		if row, ok := p.row(now); ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b api.Pool) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Key, b.Key))
	})
	for i := 0; i+1 < len(rows); i++ {
		counts, workers := &rows[i], &rows[i+1]
		same := func(other *api.Pool) bool { return other.Service == counts.Service && other.Pool == counts.Pool }
		if counts.Instance == "" && counts.Size == nil && counts.Busy == nil && same(workers) && (i+2 >= len(rows) || !same(&rows[i+2])) {
			workers.Crashes, workers.Breakers, workers.Alerts = counts.Crashes, counts.Breakers, counts.Alerts
			rows = slices.Delete(rows, i, i+1)
		}
	}
	return rows
}

// row returns the row of a pool, and false without a current value. Of the gauges that several
// collectors have computed of the same thing, the one that changed last counts.
func (p *pool) row(now time.Time) (row api.Pool, ok bool) {
	row = api.Pool{Key: p.key, Service: p.service, Pool: p.pool, Instance: p.instance}
	numbers := map[series.Series]**float64{
		series.PoolSize: &row.Size, series.PoolBusy: &row.Busy, series.PoolIdle: &row.Idle,
		series.WorkerCrashes: &row.Crashes, series.BreakerOpenings: &row.Breakers, series.HealthAlerts: &row.Alerts,
	}
	newest := make(map[series.Key]*series.Stream)
	for _, one := range p.Streams {
		if !one.Live(now) {
			continue
		}
		key := one.Key
		if one.Series.OfWorkers() {
			key.Labels.Collector = ""
		}
		if known := newest[key]; known == nil || one.Moved > known.Moved {
			newest[key] = one
		}
	}
	for key, one := range newest {
		number := numbers[key.Series]
		*number = api.Finite(api.Value(*number) + one.Value)
	}
	return row, len(newest) > 0
}

// maxPools limits the pools, maxStreamsOfPool the streams of one.
const (
	maxPools         = 500
	maxStreamsOfPool = 1000
)
