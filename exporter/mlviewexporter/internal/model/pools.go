package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// poolID identifies a pool of workers in one process.
type poolID struct{ namespace, service, pool, instance string }

// pool is a pool of workers.
type pool struct {
	poolID
	key string
	series.Group
}

// poolOf returns the pool of a stream, which it adds if there is room, else nil.
func (s *router) poolOf(one *series.Stream, now time.Time) *pool {
	l := &one.Labels
	id := poolID{l.Namespace, l.Service, l.Own[0], ""}
	switch one.Series {
	case series.PoolSize, series.PoolBusy, series.PoolIdle:
		id.instance = l.Own[1]
	}
	p := s.pools[id]
	if p == nil {
		key := api.Key("pool", id.namespace, id.service, id.pool, id.instance)
		if len(s.pools) >= maxPools {
			s.limits.Refuse("pools", key, now)
			return nil
		}
		s.limits.Accept("pools", key)
		p = &pool{poolID: id, key: key}
		s.pools[id] = p
	}
	return p
}

// poolRows returns the rows of pools. Crashes, breakers and alerts name no
// process. They are in the row of the only process of a pool, else in a row of
// their own.
func (s *router) poolRows(now time.Time) []api.Pool {
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

func (p *pool) row(now time.Time) (row api.Pool, ok bool) {
	row = api.Pool{Key: p.key, Service: p.service, Pool: p.pool, Instance: p.instance}
	gauges := map[series.Series]newest{series.PoolSize: {}, series.PoolBusy: {}, series.PoolIdle: {}}
	counts := make(map[series.Series]series.Total)
	for _, one := range p.Streams {
		if !one.Live(now) {
			continue
		}
		ok = true
		if gauge := gauges[one.Series]; gauge != nil {
			gauge.add(one)
		} else {
			total := counts[one.Series]
			total.Add(one.Value)
			counts[one.Series] = total
		}
	}
	row.Size, row.Busy, row.Idle = gauges[series.PoolSize].sum(), gauges[series.PoolBusy].sum(), gauges[series.PoolIdle].sum()
	row.Crashes, row.Breakers = counts[series.WorkerCrashes].All(), counts[series.BreakerOpenings].All()
	row.Alerts = counts[series.HealthAlerts].All()
	return row, ok
}

// newest are the streams of a gauge: of those that several collectors have computed of
// the same thing, the one that changed last.
type newest map[series.Labels]*series.Stream

func (n newest) add(one *series.Stream) {
	key := one.Labels
	key.Collector = ""
	if known := n[key]; known == nil || one.Moved > known.Moved {
		n[key] = one
	}
}

// sum returns the sum of the values, nil without a stream.
func (n newest) sum() *float64 {
	var sum series.Total
	for _, one := range n {
		sum.Add(one.Value)
	}
	return sum.All()
}

// maxPools limits the pools, maxStreamsOfPool the streams of one.
const (
	maxPools         = 500
	maxStreamsOfPool = 1000
)
