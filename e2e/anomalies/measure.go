package anomalies

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// usualLeast is the least time for which a run or service is well before something
	// is planted in it, at most usualSpread more.
	usualLeast, usualSpread = 3 * time.Hour, time.Hour
	// begins is the time of the week when this does: Monday at 7.
	begins = (2*24 + 7) * time.Hour
	// flushOfPlanted is the time between two emissions.
	flushOfPlanted = 15 * time.Second
	// early is how long before the onset a report counts as of it: times of arrival
	// are by the collector's clock.
	early = time.Minute
)

// found is what was measured for a plan.
type found struct {
	planted, found int
	// after are the times to detection, off the errors of the onset, of those that
	// were found.
	after, off []time.Duration
	spans      int
}

// join adds what was measured in another world.
func (f *found) join(other *found) {
	f.planted, f.found, f.spans = f.planted+other.planted, f.found+other.found, f.spans+other.spans
	f.after, f.off = append(f.after, other.after...), append(f.off, other.off...)
}

// recall is the share that was found in time.
func (f *found) recall() float64 { return float64(f.found) / float64(f.planted) }

// quantile returns a quantile of times, 0 of none.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(int(q*float64(len(times))), len(times)-1)]
}

// victim is what something is planted in.
type victim struct {
	onset time.Time
	// is reports whether a problem is of it.
	is func(*sighting) bool
}

// measure plants a plan's problem in n runs or services. It must run in a synctest
// bubble.
func measure(ctx context.Context, p plan, seed int64, n int) (*found, error) {
	time.Sleep(begins) // a bubble begins on a Saturday at midnight
	w, err := newWorld(ctx, seed, flushOfPlanted)
	if err != nil {
		return nil, err
	}
	return w.measure(p, n)
}

// measure plants a plan's problem in n runs or services of a new world, and stops its
// collectors.
func (w *world) measure(p plan, n int) (*found, error) {
	usual := cmp.Or(p.usual, usualLeast)
	var victims []*victim
	for i := range n {
		v := &victim{}
		victims = append(victims, v)
		delay := usual + spread(w.random, usualSpread)
		if p.inRun != nil {
			runs := []*run{}
			switch p.kind {
			case mlattr.ProblemSlowHost:
				runs = w.trainOnHosts(p.system, i, 2, 3)
			case mlattr.ProblemLemonHost:
				runs = w.trainOnHosts(p.system, i, 4, 5)
			case mlattr.ProblemLemonVersion:
				runs = w.trainApart(p.system, i, 3, 12)
			default:
				runs = append(runs, w.train(p.system, i, w.places(p.system, i, max(p.ranks, 1))))
			}
			first := runs[0]
			v.is = func(s *sighting) bool {
				return s.run == first.id || s.gpu != "" && s.gpu == first.places[0].GPU.ID || s.kind == p.kind && (s.host == first.host && s.host != "" || p.kind == mlattr.ProblemLemonVersion)
			}
			w.in(delay, func() {
				v.onset = time.Now()
				for _, r := range runs {
					p.inRun(r)
				}
			})
			for _, r := range runs {
				r.lasting = true
			}
			continue
		}
		s := w.serve(p.system, i)
		v.is = func(seen *sighting) bool { return strings.HasSuffix(seen.service, s.name[len(s.name)-3:]) }
		w.in(delay, func() { v.onset = time.Now(); p.inService(s) })
	}
	w.live(usual + usualSpread + p.within)
	result := &found{planted: n, spans: w.spans}
	for _, v := range victims {
		result.add(v, p, w.collector.reported())
	}
	if err := w.collector.stop(w.ctx); err != nil {
		return nil, fmt.Errorf("stop the collector: %w", err)
	}
	return result, w.collector.failed()
}

// trainOnHosts adds runs that share hosts: each has two ranks on each of them.
func (w *world) trainOnHosts(system string, number, n, hosts int) (runs []*run) {
	places := make([][]fleet.Place, n)
	for host := range hosts {
		all := w.addHost(fmt.Sprintf("gpu-%04d-%d", number, host), 2*n)
		for i := range places {
			places[i] = append(places[i], all[2*i:2*i+2]...)
		}
	}
	for i, own := range places {
		runs = append(runs, w.train(system, n*number+i, own))
	}
	return runs
}

// trainApart adds runs of one rank, some on each of the hosts. Those of one user have the same
// step time.
func (w *world) trainApart(system string, number, n, hosts int) (runs []*run) {
	medians := make(map[int]time.Duration)
	for host := range hosts {
		for i, place := range w.addHost(fmt.Sprintf("gpu-%04d-%d", number, host), n) {
			r := w.train(system, n*(hosts*number+host)+i, []fleet.Place{place})
			user := r.number % users
			r.times.median = cmp.Or(medians[user], r.times.median)
			medians[user] = r.times.median
			runs = append(runs, r)
		}
	}
	return runs
}

// places returns the GPUs of a run, on a host of its own: at least some and at most
// 8, and 1 in a system without ranks.
func (w *world) places(system string, number, least int) []fleet.Place {
	ranks := least + w.random.IntN(9-least)
	if system == fx {
		ranks = 1
	}
	return w.addHost(fmt.Sprintf("gpu-%04d", number), ranks)
}

// add adds a victim that was found in time, by the first of the problems.
func (f *found) add(v *victim, p plan, all []*sighting) {
	for _, s := range all {
		if s.kind != p.kind || !v.is(s) || s.detected.Before(v.onset.Add(-early)) {
			continue
		}
		if after := s.detected.Sub(v.onset); after <= p.within {
			f.found++
			f.after = append(f.after, after)
			f.off = append(f.off, s.onset.Sub(v.onset).Abs())
		}
		return
	}
}
