package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// reportSilence is how long a collector is silent until that is a problem: the usual
// stall_timeout of ml_metrics.
const reportSilence = 5 * time.Minute

// silentCollectors returns the collectors as problems that fell silent while somebody
// worked of whom only they told. ml_metrics of a collector that has died cannot say so.
func (s *Store) silentCollectors(state *State, now time.Time) (rows []Need) {
	for i := range state.Collectors {
		row := &state.Collectors[i]
		one := s.senders.all[row.ID]
		n := s.silenceOf(one, row, now)
		if n == nil {
			s.endSilence(one, mlattr.ProblemOver, now)
			continue
		}
		s.silences[one] = n
		rows = append(rows, *n)
	}
	return rows
}

// silenceOf returns the problem that a collector is silent, nil if it is none.
func (s *Store) silenceOf(one *sender, row *SendingCollector, now time.Time) *Need {
	if row.SilentSince == nil || now.Sub(*row.SilentSince) < reportSilence {
		return nil
	}
	kind, _ := mlattr.ProblemNamed(HostSilent)
	n := &Need{
		Key: keyOf("need", HostSilent, "collector", one.id), Kind: kind.Name, Severity: string(kind.Severity), Since: *row.SilentSince,
		Subject: "collector " + row.title(), Before: []Change{},
		Next: "See whether the collector runs and reaches this page, and the hosts behind it.",
	}
	var runs []*run
	for _, r := range s.runs.all {
		w := r.writers[r.writer]
		if w != nil && w.sender == one && r.news.Silent(now) && severity(r.currentState(now)) >= severity(mlattr.RunRunning) {
			runs = append(runs, r)
		}
	}
	for _, g := range s.gpus.all {
		if all := g.workloads(now); len(all) > 0 && all[0].sender == one {
			n.GPUs = append(n.GPUs, g.key)
		}
	}
	held := len(n.GPUs)
	if len(runs)+held == 0 {
		return nil
	}
	slices.Sort(n.GPUs)
	n.say("no data since %s", clock(n.Since, now))
	n.say("%s worked then, and %s held", counted(len(runs), "run", "runs"), counted(held, "GPU was", "GPUs were"))
	if len(runs) == 1 {
		r := runs[0]
		n.Run, n.RunID, n.Service, n.Job, n.Owner, n.Team = r.key, r.id, r.service, cmp.Or(r.jobName, r.job), s.runs.ownerOf(r), r.namespace
	}
	if held > 0 {
		n.GPUHours = finite(float64(held) * now.Sub(n.Since).Hours())
	}
	return n
}

// endSilence keeps as resolved that a collector was silent, if that was a problem.
func (s *Store) endSilence(one *sender, reason string, now time.Time) {
	if n := s.silences[one]; n != nil {
		n.Key, n.Ended, n.EndReason, n.Next = keyOf("resolved", n.Key, n.Since.String()), timePointer(now), reason, ""
		s.addResolved(n)
		delete(s.silences, one)
	}
}
