package problems

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// recordID identifies the record of an open problem by what has it.
type recordID struct {
	kind, namespace, service, run, host, gpu string
}

// recordIDOf returns the recordID of a problem of a kind. What only says where in its
// subject the problem is does not count.
func recordIDOf(kind string, l *series.Labels) recordID {
	id := recordID{kind, l.Namespace, l.Service, l.Run, l.Host, l.GPU}
	switch known, _ := mlattr.ProblemNamed(kind); known.Of {
	case mlattr.OfRun, mlattr.OfService:
		id.host, id.gpu = "", ""
	case mlattr.OfHost:
		id = recordID{kind: kind, host: l.Host}
	case mlattr.OfGPU:
		id.namespace, id.service = "", ""
		if kind == api.HeldIdle {
			id.run = "" // that of the holder
		}
	}
	return id
}

const (
	// maxRecords limits the records of open problems.
	maxRecords = 1024
	// maxPhrases limits the phrases of a record, maxHeld its GPUs.
	maxPhrases, maxHeld = 16, 64
)

// Note keeps what ml_metrics says of a problem until it ends. A problem that is
// only a mark becomes a moment on the curves of its run.
func (s *Set) Note(r *input.Record, namespace string, now time.Time) {
	kind, ok := mlattr.ProblemNamed(r.Kind)
	if !ok {
		return
	}
	if kind.Severity == mlattr.SeverityMark {
		if r.Ended.IsZero() && r.Stale.IsZero() {
			s.markRecord(r, kind.Title, namespace, now)
		}
		return
	}
	own := newRecord(r, s.Texts.Of(namespace))
	id := recordIDOf(r.Kind, own.labels())
	known := s.records[id]
	if !r.Ended.IsZero() {
		s.resolve(own, now)
		// A collector that is silent since may have reported it, too.
		for one := range s.open {
			if one.Old(now) && recordIDOf(one.Labels.Own[0], &one.Labels) == id {
				delete(s.open, one)
				s.Streams.Remove(one)
			}
		}
		// Another collector may have begun one of the same kind meanwhile.
		if known != nil && (!s.Fleet || known.ID == r.ID) {
			delete(s.records, id)
		}
		return
	}
	if r.Updated && known != nil && known.ID != r.ID {
		return // another collector knows it better
	}
	if known == nil && len(s.records) >= maxRecords {
		s.Limits.Drop("problems")
		return
	}
	own.Onset, own.Stale = kept.Earlier(own.Onset, now), kept.Earlier(own.Stale, now)
	s.records[id] = own
}

// Record is what ml_metrics says of a problem, and the service.namespace of its program.
type Record struct {
	input.Record
	Namespace string
}

// labels are those that the series of the problem has.
func (r *Record) labels() *series.Labels {
	return &series.Labels{Namespace: r.Namespace, Service: r.Service, Run: r.Run, Host: r.Host, GPU: r.GPU}
}

// newRecord returns a copy of a record of a namespace that shares no memory, with bounded
// texts.
func newRecord(r *input.Record, namespace string) *Record {
	own := Record{Record: *r, Namespace: namespace}
	for _, text := range [...]*string{&own.ID, &own.Kind, &own.Service, &own.Run, &own.Host, &own.GPU, &own.Unit, &own.Cause} {
		*text = strings.Clone(kept.Cut(*text, kept.MaxNoted))
	}
	own.EndReason = strings.Clone(kept.Cut(own.EndReason, kept.MaxLabel))
	own.Holder = own.Holder.Clone()
	own.Next = strings.Clone(kept.Cut(own.Next, 4*kept.MaxNoted))
	own.Held = clones(own.Held, maxHeld)
	for _, texts := range [...]*[]string{&own.Evidence, &own.Excluded, &own.Before} {
		*texts = clones(*texts, maxPhrases)
	}
	return &own
}

// clones returns copies of at most so many texts that share no memory, of bounded length.
func clones(texts []string, limit int) []string {
	return api.Mapped(texts[:min(len(texts), limit)], func(text string) string { return strings.Clone(kept.Cut(text, kept.MaxNoted)) })
}

// markRecord adds a problem that is only a mark to the curves of its run. That of a
// service without a run is listed with the changes.
func (s *Set) markRecord(r *input.Record, title, namespace string, now time.Time) {
	of := s.Runs.Find(namespace, r.Service, r.Run, r.Host)
	text := title
	if len(r.Evidence) > 0 {
		text += ": " + kept.Cut(r.Evidence[0], kept.MaxNoted)
	}
	if of == nil {
		if r.Run == "" && r.Service != "" {
			s.Changes.Note(&api.Change{Time: r.Onset, Kind: r.Kind, Service: r.Service, Text: text}, "", now)
		}
		return
	}
	s.Changes.Mark(of.Key, api.Mark{Time: kept.Earlier(r.Onset, now).UTC(), Kind: s.Texts.Of(r.Kind), Text: text})
}

// beforeProblem returns the changes before a problem that its record names.
func (s *Set) beforeProblem(p *problem, n *api.Need) []api.Change {
	rows := []api.Change{}
	if p.record == nil {
		return rows
	}
	for _, phrase := range p.record.Before {
		stamp, text, _ := strings.Cut(phrase, " ")
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil || text == "" {
			continue
		}
		c := api.Change{Key: api.Key("change", n.Key, stamp, text), Time: at.UTC(), Service: n.Service, Text: text}
		for _, known := range s.Changes.All {
			if known.Text == text && known.Time.Sub(at).Abs() < 2*time.Second {
				c = known
			}
		}
		rows = append(rows, c)
	}
	return rows
}

// follow sets the causes of problems, as their records name them.
func follow(rows []api.Need, all []*problem) {
	byID := make(map[string]string, len(all))
	for i := range all {
		for _, id := range all[i].ids {
			byID[id] = rows[i].Key
		}
	}
	for i := range all {
		if r := all[i].record; r != nil && r.Cause != "" && byID[r.Cause] != rows[i].Key {
			rows[i].Cause = byID[r.Cause]
		}
	}
}

// grouped returns the problems in their order with their places, each with those that
// follow from it right after it. A problem comes where the most urgent of those does,
// and is as severe.
func grouped(rows []api.Need) []api.Need {
	byKey := make(map[string]*api.Need, len(rows))
	for i := range rows {
		byKey[rows[i].Key] = &rows[i]
	}
	first := func(n *api.Need) *api.Need {
		for range rows {
			cause := byKey[n.Cause]
			if cause == nil {
				return n
			}
			if n.Severity == string(mlattr.SeverityPage) {
				cause.Severity = n.Severity
			}
			n = cause
		}
		n.Cause = "" // records may name each other in a circle
		return n
	}
	ordered := make([]api.Need, 0, len(rows))
	for place, all := range api.Grouped(rows, first) {
		cause := first(all[0])
		slices.SortStableFunc(all, func(a, b *api.Need) int { return api.TrueFirst(a == cause, b == cause) })
		for _, n := range all {
			n.Urgency = place + 1
			ordered = append(ordered, *n)
		}
	}
	return ordered
}

// maxEnded limits the resolved problems that are kept.
const maxEnded = 5 * maxResolved

// resolve keeps the record of a problem that has ended.
func (s *Set) resolve(own *Record, now time.Time) {
	own.Onset, own.Ended = kept.Earlier(own.Onset, now), kept.Earlier(own.Ended, now)
	of := own.labels()
	if kind, _ := mlattr.ProblemNamed(own.Kind); kind.Of != mlattr.OfGPU && kind.Of != mlattr.OfHost {
		of.Host, of.GPU = "", ""
	}
	if own.Kind == api.HeldIdle {
		of.Run = "" // that of the holder
	}
	p := s.problemAt(own.Kind, of, own.Onset)
	p.record = own
	n := s.need(&api.State{}, &p, now)
	n.Key = api.Key("resolved", own.ID)
	n.Ended, n.EndReason = api.TimeOf(own.Ended), own.EndReason
	n.Value, n.Usual, n.Unit, n.GPUHours = own.Value, own.Usual, own.Unit, own.GPUHours
	n.Evidence, n.Next, n.Command = own.Evidence, "", ""
	s.end(&n)
}

// end adds a problem that has ended, in place of the one that ended first beyond the limit.
func (s *Set) end(n *api.Need) {
	if slices.ContainsFunc(s.resolved, func(known api.Need) bool { return known.Key == n.Key }) {
		return
	}
	s.resolved = append(s.resolved, *n)
	slices.SortStableFunc(s.resolved, CompareEnds)
	if len(s.resolved) > maxEnded {
		s.resolved = slices.Delete(s.resolved, 0, 1)
		s.Limits.Drop("resolved problems")
	}
}

// CompareEnds orders problems that have ended by when they did.
func CompareEnds(a, b api.Need) int { return a.Ended.Compare(*b.Ended) }

// Resolved returns the problems that ended within the last 24 hours, the newest end
// first.
func (s *Set) Resolved(state *api.State, now time.Time) []api.Need {
	rows := api.Where(slices.Values(s.resolved), func(n api.Need) bool { return now.Sub(*n.Ended) <= resolvedFor })
	slices.Reverse(rows)
	return api.Limited(state.Collector.Hidden, "resolved", together(rows), maxResolved)
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
	return api.Mapped(same, func(all []*api.Need) api.Need {
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

// restoreEnded adds the resolved problems that Export has written.
func (s *Set) restoreEnded(all []api.Need, now time.Time) {
	for i := range all[:min(len(all), maxEnded)] {
		n := &all[i]
		if n.Ended == nil || now.Sub(*n.Ended) > resolvedFor || n.Ended.After(now.Add(time.Minute)) || urgency(n.Kind) < 0 {
			continue
		}
		for _, text := range [...]*string{&n.Key, &n.EndReason, &n.Run, &n.RunID, &n.Service, &n.Job, &n.Owner, &n.Team, &n.Subject, &n.Unit} {
			*text = strings.Clone(kept.Cut(*text, kept.MaxNoted))
		}
		n.Since = kept.Plausible(n.Since, *n.Ended)
		n.Evidence = clones(n.Evidence, maxPhrases)
		n.Before, n.GPUs, n.Next, n.Command, n.Cause = nil, nil, "", "", ""
		s.end(n)
	}
}
