package problems

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/limits"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// needOf returns the row of a problem as its record has it.
func (s *Set) needOf(r *Record, now time.Time) api.Need {
	l := series.Labels{Namespace: r.Namespace, Service: r.Service, Run: r.Run}
	if kind, _ := mlattr.ProblemNamed(r.Kind); kind.Of == mlattr.OfGPU || kind.Of == mlattr.OfHost {
		l.Host, l.GPU = r.Host, r.GPU
	}
	if r.Kind == api.HeldIdle {
		l.Run = "" // that of the holder
	}
	p := s.problemAt(r.Kind, &l, r.Onset)
	p.record = r
	return s.need(&api.State{}, &p, now)
}

// maxEnded limits the resolved problems that are kept.
const maxEnded = 5 * maxResolved

// resolve keeps the record of a problem that has ended.
func (s *Set) resolve(own *Record, now time.Time) {
	own.Onset, own.Ended = kept.Earlier(own.Onset, now), kept.Earlier(own.Ended, now)
	n := s.needOf(own, now)
	n.Key = api.Key("resolved", own.ID)
	n.Ended, n.EndReason = api.TimeOf(own.Ended), own.EndReason
	n.Value, n.Usual, n.Unit, n.GPUHours = own.Value, own.Usual, own.Unit, own.GPUHours
	n.Evidence, n.Next, n.Command = own.Evidence, "", ""
	s.resolved.add(&n)
}

// resolved are the problems that have ended, the newest end last.
type resolved struct {
	limits *limits.Counts
	all    []api.Need
}

// add adds a problem that has ended, in place of the one that ended first
// beyond the limit.
func (s *resolved) add(n *api.Need) {
	if slices.ContainsFunc(s.all, func(known api.Need) bool { return known.Key == n.Key }) {
		return
	}
	s.all = append(s.all, *n)
	slices.SortStableFunc(s.all, CompareEnds)
	if len(s.all) > maxEnded {
		s.all = slices.Delete(s.all, 0, 1)
		s.limits.Drop("resolved problems")
	}
}

// CompareEnds orders problems that have ended by when they did.
func CompareEnds(a, b api.Need) int { return a.Ended.Compare(*b.Ended) }

// Resolved returns the problems that ended within the last 24 hours, the newest end
// first.
func (s *Set) Resolved(state *api.State, now time.Time) []api.Need {
	var rows []api.Need
	for _, n := range slices.Backward(s.resolved.all) {
		if now.Sub(*n.Ended) <= resolvedFor {
			rows = append(rows, n)
		}
	}
	return api.Limited(state, "resolved", rows, maxResolved)
}

// restore adds the resolved problems that Export has written.
func (s *resolved) restore(all []api.Need, now time.Time) {
	for i := range all[:min(len(all), maxEnded)] {
		n := &all[i]
		if n.Ended == nil || now.Sub(*n.Ended) > resolvedFor || n.Ended.After(now.Add(time.Minute)) || urgency(n.Kind) < 0 {
			continue
		}
		for _, text := range [...]*string{&n.Key, &n.EndReason, &n.Run, &n.RunID, &n.Service, &n.Job, &n.Owner, &n.Team, &n.Subject, &n.Unit} {
			*text = strings.Clone(kept.Cut(*text, kept.MaxNoted))
		}
		n.Since = kept.Plausible(n.Since, *n.Ended)
		n.Evidence = n.Evidence[:min(len(n.Evidence), maxPhrases)]
		for j := range n.Evidence {
			n.Evidence[j] = kept.Cut(n.Evidence[j], kept.MaxNoted)
		}
		n.Before, n.GPUs, n.Next, n.Command, n.Cause = nil, nil, "", "", ""
		s.add(n)
	}
}
