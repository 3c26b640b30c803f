package problems

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxResolved limits the problems that have ended, as they are shown, maxEnded as they
	// are kept.
	maxResolved = 200
	maxEnded    = 5 * maxResolved
	// resolvedFor is how long a problem that has ended is shown.
	resolvedFor = 24 * time.Hour
)

// ended are the problems that have ended, the newest end last.
type ended struct {
	limits *kept.Counts
	rows   []api.Need
}

// add adds a problem that has ended, in place of the one that ended first beyond the limit.
func (e *ended) add(n *api.Need) {
	if slices.ContainsFunc(e.rows, func(known api.Need) bool { return known.Key == n.Key }) {
		return
	}
	e.rows = append(e.rows, *n)
	slices.SortStableFunc(e.rows, func(a, b api.Need) int { return a.Ended.Compare(*b.Ended) })
	if len(e.rows) > maxEnded {
		e.rows = slices.Delete(e.rows, 0, 1)
		e.limits.Drop("resolved problems")
	}
}

// latest removes the problems that ended too long ago to be shown, and returns the others,
// the newest end first.
func (e *ended) latest(now time.Time) []api.Need {
	e.rows = slices.DeleteFunc(e.rows, func(n api.Need) bool { return now.Sub(*n.Ended) > resolvedFor })
	rows := slices.Clone(e.rows)
	slices.Reverse(rows)
	return rows
}

// together joins the rows of GPUs of one host whose problems of a kind began and ended at
// the same times.
func together(rows []api.Need) []api.Need {
	type group struct {
		key, kind, host, run, owner, reason string
		since, ended                        int64
	}
	same := api.Grouped(rows, func(n *api.Need) group {
		host, _, of := strings.Cut(n.Subject, gpuOf)
		if !of {
			return group{key: n.Key}
		}
		return group{"", n.Kind, host, n.Run, n.Owner, n.EndReason, n.Since.UnixNano(), n.Ended.UnixNano()}
	})
	return mlattr.Mapped(same, func(all []*api.Need) api.Need {
		joined := *all[0]
		host, first, _ := strings.Cut(joined.Subject, gpuOf)
		names := []string{first}
		for _, n := range all[1:] {
			names = append(names, strings.TrimPrefix(n.Subject, host+gpuOf))
			if joined.GPUHours != nil && n.GPUHours != nil {
				joined.GPUHours = new(*joined.GPUHours + *n.GPUHours)
			}
		}
		if len(all) > 1 {
			slices.SortFunc(names, gpus.CompareIndexes)
			joined.Subject = placesOn(host, names...)
		}
		return joined
	})
}

// restore adds the resolved problems that Export has written.
func (e *ended) restore(all []api.Need, now time.Time) {
	for i := range all[:min(len(all), maxEnded)] {
		n := &all[i]
		if n.Ended == nil || now.Sub(*n.Ended) > resolvedFor || n.Ended.After(now.Add(time.Minute)) || urgency(n.Kind) < 0 {
			continue
		}
		kept.Shorten(kept.MaxNoted, &n.Key, &n.EndReason, &n.Run, &n.RunID, &n.Service, &n.Job, &n.Owner, &n.Team, &n.Subject, &n.Unit)
		n.Since = kept.Plausible(n.Since, *n.Ended)
		n.Evidence = kept.Clones(n.Evidence, maxPhrases, kept.MaxNoted)
		n.Before, n.GPUs, n.Next, n.Command, n.Cause = nil, nil, "", "", ""
		e.add(n)
	}
}
