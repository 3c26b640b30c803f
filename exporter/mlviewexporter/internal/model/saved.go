package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// savedRun is what is known of a run.
type savedRun struct {
	Namespace  string    `json:"namespace,omitempty"`
	Service    string    `json:"service"`
	ID         string    `json:"id"`
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"`
	State      string    `json:"state,omitempty"`
	Job        string    `json:"job,omitempty"`
	JobName    string    `json:"job_name,omitempty"`
	User       string    `json:"user,omitempty"`
	Version    string    `json:"version,omitempty"`
	Simulated  bool      `json:"simulated,omitempty"`
	Checkpoint time.Time `json:"checkpoint,omitzero"`
	// Fine and Coarse are its curves, as far as there was room for them.
	Fine   *savedPoints `json:"fine,omitempty"`
	Coarse *savedPoints `json:"coarse,omitempty"`
}

// maxCurves limits the curves that are written, in bytes.
const maxCurves = 6 << 20

// saved returns the runs for restore, those that were seen last first.
func (s *runs) saved() (all []savedRun) {
	// The curves of runs that were seen longest ago have no room first.
	room := maxCurves
	for _, r := range slices.SortedFunc(maps.Values(s.all), func(a, b *run) int {
		return cmp.Or(b.lastSeen.Compare(a.lastSeen), cmp.Compare(a.key, b.key))
	}) {
		one := savedRun{
			Namespace: r.namespace, Service: r.service, ID: r.id, FirstSeen: r.firstSeen, LastSeen: r.lastSeen,
			State: r.state, Job: r.job, JobName: r.jobName, User: r.user, Version: r.version,
			Simulated: r.simulated, Checkpoint: r.checkpoint,
		}
		if room -= r.curves.fine.size() + r.curves.coarse.size(); room >= 0 {
			one.Fine, one.Coarse = r.curves.fine.saved(), r.curves.coarse.saved()
		}
		all = append(all, one)
	}
	return all
}

// restore adds a run that saved has returned, unless it is older than what is kept.
func (s *runs) restore(in savedRun, now time.Time) {
	if _, known := s.all[runID{in.Namespace, in.Service, in.ID}]; known || len(s.all) >= s.settings.MaxRuns || now.Sub(in.LastSeen) > s.settings.History {
		return
	}
	r := s.of(in.Namespace, in.Service, in.ID, share.OriginOf(0, in.Service), now)
	if r == nil {
		return
	}
	r.firstSeen, r.lastSeen = plausible(in.FirstSeen, in.LastSeen), in.LastSeen
	r.again = r.lastSeen.Sub(r.firstSeen) >= againAfter
	r.job, r.jobName, r.user, r.version = s.texts.of(in.Job), s.texts.of(in.JobName), s.texts.of(in.User), s.texts.of(in.Version)
	if r.simulated = in.Simulated; !in.Checkpoint.IsZero() {
		r.checkpoint = plausible(in.Checkpoint, in.LastSeen)
	}
	if severity(in.State) > 0 {
		r.state = in.State
	}
	r.curves.restore(in.Fine, in.Coarse, now, s.settings.Interval, s.settings.History)
}
