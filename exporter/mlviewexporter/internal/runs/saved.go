package runs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/curves"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// SavedRun is what is known of a run.
type SavedRun struct {
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
	Fine   *curves.SavedPoints `json:"fine,omitempty"`
	Coarse *curves.SavedPoints `json:"coarse,omitempty"`
}

// maxCurves limits the curves that are written, in bytes.
const maxCurves = 6 << 20

// Saved returns the runs for restore, those that were seen last first.
func (s *Set) Saved() (all []SavedRun) {
	// The curves of runs that were seen longest ago have no room first.
	room := maxCurves
	for _, r := range slices.SortedFunc(maps.Values(s.All), func(a, b *Run) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.Key, b.Key))
	}) {
		one := SavedRun{
			Namespace: r.Namespace, Service: r.Service, ID: r.ID, FirstSeen: r.FirstSeen, LastSeen: r.LastSeen,
			State: r.state, Job: r.Job, JobName: r.JobName, User: r.user, Version: r.version,
			Simulated: r.simulated, Checkpoint: r.Checkpoint,
		}
		if room -= r.Curves.Fine.Size() + r.Curves.Coarse.Size(); room >= 0 {
			one.Fine, one.Coarse = r.Curves.Fine.Saved(), r.Curves.Coarse.Saved()
		}
		all = append(all, one)
	}
	return all
}

// Restore adds a run that saved has returned, unless it is older than what is kept.
func (s *Set) Restore(in SavedRun, now time.Time) {
	if _, known := s.All[Ref{in.Namespace, in.Service, in.ID}]; known || len(s.All) >= s.settings.MaxRuns || now.Sub(in.LastSeen) > s.settings.History {
		return
	}
	r := s.Of(in.Namespace, in.Service, in.ID, share.OriginOf(0, in.Service), now)
	if r == nil {
		return
	}
	r.FirstSeen, r.LastSeen = kept.Plausible(in.FirstSeen, in.LastSeen), in.LastSeen
	r.Again = r.LastSeen.Sub(r.FirstSeen) >= againAfter
	r.Job, r.JobName, r.user, r.version = s.texts.Of(in.Job), s.texts.Of(in.JobName), s.texts.Of(in.User), s.texts.Of(in.Version)
	if r.simulated = in.Simulated; !in.Checkpoint.IsZero() {
		r.Checkpoint = kept.Plausible(in.Checkpoint, in.LastSeen)
	}
	if Severity(in.State) > 0 {
		r.state = in.State
	}
	r.Curves.Restore(in.Fine, in.Coarse, now, s.settings.Interval, s.settings.History)
}
