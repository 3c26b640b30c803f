package model

import (
	"cmp"
	"slices"
	"time"
)

// poolID identifies a pool of workers in one process.
type poolID struct{ namespace, service, pool, instance string }

// pool is a pool of workers.
type pool struct {
	poolID
	key string
	group
}

// poolOf returns the pool of a stream, which it adds if there is room, else nil.
func (s *Store) poolOf(one *stream, now time.Time) *pool {
	l := &one.labels
	id := poolID{l.Namespace, l.Service, l.Own[0], ""}
	switch one.series {
	case PoolSize, PoolBusy, PoolIdle:
		id.instance = l.Own[1]
	}
	p := s.pools[id]
	if p == nil {
		key := keyOf("pool", id.namespace, id.service, id.pool, id.instance)
		if len(s.pools) >= maxPools {
			s.limits.refuse("pools", key, now)
			return nil
		}
		s.limits.accept("pools", key)
		p = &pool{poolID: id, key: key}
		s.pools[id] = p
	}
	return p
}

// poolRows returns the rows of pools. Crashes, breakers and alerts name no
// process. They are in the row of the only process of a pool, else in a row of
// their own.
func (s *Store) poolRows(now time.Time) []Pool {
	rows := make([]Pool, 0, len(s.pools))
	for _, p := range s.pools {
		if row, ok := p.row(now); ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Key, b.Key))
	})
	for i := 0; i+1 < len(rows); i++ {
		counts, workers := &rows[i], &rows[i+1]
		same := func(other *Pool) bool { return other.Service == counts.Service && other.Pool == counts.Pool }
		if counts.Instance == "" && counts.Size == nil && counts.Busy == nil && same(workers) && (i+2 >= len(rows) || !same(&rows[i+2])) {
			workers.Crashes, workers.Breakers, workers.Alerts = counts.Crashes, counts.Breakers, counts.Alerts
			rows = slices.Delete(rows, i, i+1)
		}
	}
	return rows
}

func (p *pool) row(now time.Time) (row Pool, ok bool) {
	row = Pool{Key: p.key, Service: p.service, Pool: p.pool, Instance: p.instance}
	size, busy, idle := make(newest), make(newest), make(newest)
	var crashes, breakers, alerts total
	for _, one := range p.streams {
		if !one.live(now) {
			continue
		}
		ok = true
		switch one.series {
		case PoolSize:
			size.add(one)
		case PoolBusy:
			busy.add(one)
		case PoolIdle:
			idle.add(one)
		case WorkerCrashes:
			crashes.add(one.value)
		case BreakerOpenings:
			breakers.add(one.value)
		case HealthAlerts:
			alerts.add(one.value)
		}
	}
	row.Size, row.Busy, row.Idle = size.sum(), busy.sum(), idle.sum()
	row.Crashes, row.Breakers, row.Alerts = crashes.all(), breakers.all(), alerts.all()
	return row, ok
}

// newest are the streams of a gauge: of those that several collectors have computed of
// the same thing, the one that changed last.
type newest map[Labels]*stream

func (n newest) add(one *stream) {
	key := one.labels
	key.Collector = ""
	if known := n[key]; known == nil || one.moved > known.moved {
		n[key] = one
	}
}

// sum returns the sum of the values, nil without a stream.
func (n newest) sum() *float64 {
	var sum total
	for _, one := range n {
		sum.add(one.value)
	}
	return sum.all()
}
