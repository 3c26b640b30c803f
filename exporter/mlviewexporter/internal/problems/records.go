package problems

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// recordID identifies the record of an open problem by what has it.
type recordID struct {
	kind string
	input.Subject
}

// recordIDOf returns the recordID of a problem of a kind. What only says where in its
// subject the problem is does not count.
func recordIDOf(kind string, of input.Subject) recordID {
	switch known, _ := mlattr.ProblemNamed(kind); known.Of {
	case mlattr.OfRun, mlattr.OfService:
		of.Host, of.GPU = "", ""
	case mlattr.OfHost:
		of = input.Subject{Host: of.Host}
	case mlattr.OfGPU:
		of.Namespace, of.Service = "", ""
		if kind == mlattr.ProblemHeldIdle {
			of.Run = "" // that of the holder
		}
	}
	return recordID{kind, of}
}

// subjectOf returns what has the problem of a stream.
func subjectOf(one *series.Stream) input.Subject {
	l := &one.Labels
	return input.Subject{Namespace: l.Namespace, Service: l.Service, Run: l.Run, Host: l.Host, GPU: l.GPU}
}

const (
	// maxRecords limits the records of open problems.
	maxRecords = 1024
	// maxPhrases limits the phrases of a record, maxHeld its GPUs.
	maxPhrases, maxHeld = 16, 64
)

// Note keeps what ml_metrics says of a problem until it ends. A problem that is
// only a mark becomes a moment on the curves of its run.
func (s *Set) Note(r *input.Record, now time.Time) {
	kind, ok := mlattr.ProblemNamed(r.Kind)
	if !ok {
		return
	}
	if kind.Severity == mlattr.SeverityMark {
		if r.Ended.IsZero() && r.Stale.IsZero() {
			s.markRecord(r, kind.Title, now)
		}
		return
	}
	own := newRecord(r)
	id := recordIDOf(r.Kind, own.Subject)
	known := s.records[id]
	if !r.Ended.IsZero() {
		s.resolve(own, now)
		// A collector that is silent since may have reported it, too.
		for one := range s.open {
			if one.Old(now) && recordIDOf(one.Labels.Own[0], subjectOf(one)) == id {
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

// newRecord returns a copy of a record that shares no memory, with bounded texts.
func newRecord(r *input.Record) *input.Record {
	own := *r
	kept.Shorten(kept.MaxNoted, &own.ID, &own.Kind, &own.Unit, &own.Cause)
	// The subject is that of a stream, which has labels.
	kept.Shorten(kept.MaxLabel, &own.Namespace, &own.Service, &own.Run, &own.Host, &own.GPU, &own.EndReason)
	own.Holder = own.Holder.Clone()
	kept.Shorten(4*kept.MaxNoted, &own.Next)
	own.Held = kept.Clones(own.Held, maxHeld, kept.MaxNoted)
	for _, texts := range [...]*[]string{&own.Evidence, &own.Excluded, &own.Before} {
		*texts = kept.Clones(*texts, maxPhrases, kept.MaxNoted)
	}
	return &own
}

// markRecord adds a problem that is only a mark to the curves of its run. That of a
// service without a run is listed with the changes.
func (s *Set) markRecord(r *input.Record, title string, now time.Time) {
	of := s.Runs.Find(r.Namespace, r.Service, r.Run, r.Host)
	text := title
	if len(r.Evidence) > 0 {
		text += ": " + kept.Cut(r.Evidence[0], kept.MaxNoted)
	}
	if of != nil {
		s.Changes.Mark(of.Key, api.Mark{Time: kept.Earlier(r.Onset, now).UTC(), Kind: s.Texts.Of(r.Kind), Text: text})
	} else if r.Run == "" && r.Service != "" {
		s.Changes.Note(&api.Change{Time: r.Onset, Kind: r.Kind, Service: r.Service, Text: text}, "", now)
	}
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
	byKey := mlattr.Index(rows, func(n *api.Need) string { return n.Key })
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

// resolve keeps the record of a problem that has ended.
func (s *Set) resolve(own *input.Record, now time.Time) {
	own.Onset, own.Ended = kept.Earlier(own.Onset, now), kept.Earlier(own.Ended, now)
	of := own.Subject
	if kind, _ := mlattr.ProblemNamed(own.Kind); kind.Of != mlattr.OfGPU && kind.Of != mlattr.OfHost {
		of.Host, of.GPU = "", ""
	}
	if own.Kind == mlattr.ProblemHeldIdle {
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
