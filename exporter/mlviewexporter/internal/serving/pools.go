package serving

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// poolID identifies a pool of workers in one process.
type poolID struct{ namespace, service, pool, instance string }

// Pool is a pool of workers: its row, as far as its name says it, and its streams.
type Pool struct {
	api.Pool
	series.Group
}

// Pools are the pools of workers.
type Pools struct {
	*input.Bounds
	streams *series.Table
	all     map[poolID]*Pool
}

// NewPools returns no pools.
func NewPools(of *input.Bounds, streams *series.Table) *Pools {
	return &Pools{Bounds: of, streams: streams, all: make(map[poolID]*Pool)}
}

const (
	// maxPools limits the pools.
	maxPools = 500
	// MaxStreamsOfPool limits the streams of one pool.
	MaxStreamsOfPool = 1000
)

// Of returns the pool of a stream, which it adds if there is room, else nil.
func (s *Pools) Of(one *series.Stream, now time.Time) *Pool {
	l := &one.Labels
	id := poolID{l.Namespace, l.Service, l.Own[0], ""}
	if one.Series.OfWorkers() {
		id.instance = l.Own[1]
	}
	p := s.all[id]
	if p == nil {
		key := api.Key("pool", id.namespace, id.service, id.pool, id.instance)
		if len(s.all) >= maxPools {
			s.Limits.Refuse("pools", key, now)
			return nil
		}
		s.Limits.Accept("pools", key)
		p = &Pool{Pool: api.Pool{Key: key, Service: id.service, Pool: id.pool, Instance: id.instance}}
		s.all[id] = p
	}
	return p
}

// Rows returns the rows of pools. Crashes, breakers and alerts name no
// process. They are in the row of the only process of a pool, else in a row of
// their own.
func (s *Pools) Rows(now time.Time) []api.Pool {
	rows := make([]api.Pool, 0, len(s.all))
	for _, p := range s.all {
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
func (p *Pool) row(now time.Time) (row api.Pool, ok bool) {
	row = p.Pool
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

// Prune removes the pools without current values.
func (s *Pools) Prune(now time.Time) {
	for id, p := range s.all {
		if p.DropGone(s.streams, now); len(p.Streams) == 0 {
			delete(s.all, id)
		}
	}
}
