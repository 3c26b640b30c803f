package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// serviceID identifies a service.
type serviceID struct{ namespace, name string }

// service is a program that sends telemetry.
type service struct {
	serviceID
	origin    share.Origin
	firstSeen time.Time
	// user is the one that its spans name.
	user string
	// versions has when each was first seen.
	versions map[string]time.Time
	// failed counts the failures of spans by version.
	failed   map[string]float64
	streams  []*stream
	lastSeen time.Time
}

// maxPerService limits the versions of a service that are remembered.
const maxPerService = 32

// forgetOldest makes room for one more: it removes what was first seen longest ago,
// more than an hour, and returns it. ok is false if there is no room: as many are
// in use in turn.
func forgetOldest(seen map[string]time.Time, now time.Time) (oldest string, ok bool) {
	if len(seen) < maxPerService {
		return "", true
	}
	for one, at := range seen {
		if oldest == "" || cmp.Or(at.Compare(seen[oldest]), cmp.Compare(one, oldest)) < 0 {
			oldest = one
		}
	}
	if now.Sub(seen[oldest]) < time.Hour {
		return "", false
	}
	delete(seen, oldest)
	return oldest, true
}

func (s *Store) serviceOf(namespace, name string, from share.Origin, now time.Time) *service {
	id := serviceID{namespace, name}
	one := s.services[id]
	if one == nil {
		if len(s.services) >= maxServices && !s.replaceService(now) {
			s.dropped["services"]++
			return nil
		}
		id = serviceID{s.texts.of(namespace), s.texts.of(name)}
		if one = s.services[id]; one != nil {
			return one
		}
		one = &service{serviceID: id, origin: from, firstSeen: now, versions: make(map[string]time.Time), failed: make(map[string]float64)}
		s.services[id] = one
	}
	one.lastSeen = now
	return one
}

// replaceService forgets a service without series that was seen longest ago, of senders
// that have more than their share.
func (s *Store) replaceService(now time.Time) bool {
	if len(s.leavingServices) == 0 && now.Sub(s.fullServices).Abs() >= searchAgain {
		all := slices.Collect(maps.Values(s.services))
		slices.SortFunc(all, func(a, b *service) int { return b.lastSeen.Compare(a.lastSeen) })
		for _, i := range s.leave(len(all), func(i int) (share.Origin, int) { return all[i].origin, 1 }) {
			if len(all[i].streams) == 0 {
				s.leavingServices = append(s.leavingServices, all[i])
			}
		}
		if len(s.leavingServices) == 0 {
			s.fullServices = now
		}
	}
	for len(s.leavingServices) > 0 {
		next := s.leavingServices[0]
		s.leavingServices = s.leavingServices[1:]
		if s.services[next.serviceID] == next && len(next.streams) == 0 {
			s.forgetService(next.serviceID)
			return true
		}
	}
	return false
}

func (s *Store) forgetService(id serviceID) {
	delete(s.services, id)
	delete(s.seen.spansWithoutRun, id)
}

// seeVersion notes when a version of a service was first seen.
func (s *Store) seeVersion(of *service, version string, now time.Time) {
	if version == "" || of == nil {
		return
	}
	if _, known := of.versions[version]; known {
		return
	}
	version = s.texts.of(version)
	if _, known := of.versions[version]; known {
		return
	}
	if forgotten, ok := forgetOldest(of.versions, now); ok {
		delete(of.failed, forgotten)
		of.versions[version] = now
	}
}

// moveRank notes on which host a rank is.
func (s *Store) moveRank(r *run, one *rank, host string) {
	if host == "" || host == one.host && r.hosts[host] {
		return
	}
	host = s.texts.of(host)
	one.host = host
	if r.hosts[host] || len(r.hosts) >= maxHosts {
		return
	}
	r.hosts[host] = true
	clear(s.withID)
}

// noteState notes a new state of a run.
func (s *Store) noteState(r *run, now time.Time) {
	state := r.currentState(now)
	if state == r.state || state == mlattr.RunUnknown {
		return
	}
	was := r.state
	r.state, r.stateNoted = state, now
	if was != mlattr.RunUnknown {
		s.mark(mark{Run: r.key, Mark: Mark{Time: now.UTC(), Kind: "state", Text: stateWord(state) + " (was " + stateWord(was) + ")"}})
	}
}

// stateWord names a state as the page does.
func stateWord(state string) string {
	if state == mlattr.RunStalled {
		return "looks hung"
	}
	return state
}

// maxNoted limits the text of a change or of a mark, in bytes.
const maxNoted = 256

// noteChange adds a change that ml_metrics has recorded.
func (s *Store) noteChange(c *Change, namespace string, now time.Time) {
	one := Change{
		Time: earlier(c.Time, now), Kind: s.texts.of(c.Kind), Service: s.texts.of(c.Service), Host: s.texts.of(c.Host),
		RunID: s.texts.of(c.RunID), From: s.texts.of(c.From), To: s.texts.of(c.To),
		Text: strings.Clone(cut(c.Text, maxNoted)),
	}
	if one.Text == "" {
		one.Text = one.Kind + " " + one.To
	}
	if r := s.runs[runID{namespace, c.Service, c.RunID}]; r != nil {
		one.Run = r.key
	} else if r := s.runWithID(c.RunID, c.Service, c.Host); r != nil && c.RunID != "" {
		one.Run = r.key
	}
	one.Key = keyOf("change", one.Kind, one.Service, one.RunID, one.Host, one.From, one.To, one.Time.Format(time.RFC3339Nano))
	if slices.ContainsFunc(s.changes, func(other Change) bool { return other.Key == one.Key || s.settings.Fleet && one.repeats(&other) }) {
		return
	}
	s.changes = appended(s.changes, one, maxChanges, func(other *Change) bool {
		return other.Run == one.Run && other.Service == one.Service && other.Host == one.Host
	})
}

// repeatedWithin is how far apart several collectors see the same change.
const repeatedWithin = 15 * time.Minute

// repeats reports whether another collector has reported the same change.
func (c *Change) repeats(other *Change) bool {
	same := *other
	same.Key, same.Time = c.Key, c.Time
	return same == *c && other.Time.Sub(c.Time).Abs() <= repeatedWithin
}

// maxOfOne limits the changes of one run or service, and the moments of one run, so
// that they do not push out those of others.
const maxOfOne = 50

// appended adds one to a list. It removes the oldest of those that belong together
// with it if these are too many, else the oldest of all.
func appended[T any](all []T, one T, limit int, same func(*T) bool) []T {
	n, first := 0, 0
	for i := len(all) - 1; i >= 0; i-- {
		if same(&all[i]) {
			n, first = n+1, i
		}
	}
	switch {
	case n >= maxOfOne:
		all = slices.Delete(all, first, first+1)
	case len(all) >= limit:
		all = slices.Delete(all, 0, 1)
	}
	return append(all, one)
}

// changeRows returns the changes, the newest first.
func (s *Store) changeRows() []Change {
	rows := slices.Clone(s.changes)
	slices.SortStableFunc(rows, func(a, b Change) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Key, b.Key)) })
	if rows == nil {
		rows = []Change{}
	}
	return rows
}

// Limits of the changes before a problem.
const (
	maxBefore    = 5
	beforeWithin = 6 * time.Hour
	// onsetTolerance is how much later than the onset a change may be seen that
	// came before it: metrics arrive at intervals.
	onsetTolerance = 30 * time.Second
)

// before returns the changes of a run, a service or hosts that came before a time,
// the newest first.
func (s *Store) before(since time.Time, service, run string, hosts map[string]bool) []Change {
	rows := []Change{}
	for _, c := range slices.Backward(s.changes) {
		if isMark(c.Kind) || c.Time.After(since.Add(onsetTolerance)) || since.Sub(c.Time) > beforeWithin {
			continue
		}
		if run != "" && c.Run == run || service != "" && c.Service == service && (c.RunID == "" || run == "") || c.Host != "" && c.Service == "" && hosts[c.Host] {
			rows = append(rows, c)
		}
	}
	slices.SortStableFunc(rows, func(a, b Change) int { return b.Time.Compare(a.Time) })
	return rows[:min(len(rows), maxBefore)]
}

// isMark reports whether the kind of a row of changes is that of a problem that is only
// a mark.
func isMark(kind string) bool {
	known, ok := mlattr.ProblemNamed(kind)
	return ok && known.Severity == mlattr.SeverityMark
}

// mark is a moment of a run that is shown on its curves.
type mark struct {
	Run string `json:"run"`
	Mark
}

// maxMarks limits the moments of all runs.
const maxMarks = 2000

func (s *Store) mark(m mark) {
	s.marks = appended(s.marks, m, maxMarks, func(other *mark) bool { return other.Run == m.Run })
}

// marksOf returns the moments of a run in their order: states, problems, changes
// and failures. That a run looks hung is one of them: its onset, not also when the
// state changed after the timeout.
func (s *Store) marksOf(r *run) []Mark {
	rows := []Mark{}
	for _, m := range s.marks {
		if m.Run == r.key {
			rows = append(rows, m.Mark)
		}
	}
	for _, c := range s.changes {
		if c.Run == r.key || c.RunID == "" && c.Service == r.service || c.Service == "" && r.hosts[c.Host] {
			kind := "change"
			if isMark(c.Kind) {
				kind = c.Kind
			}
			rows = append(rows, Mark{Time: c.Time, Kind: kind, Text: c.Text})
		}
	}
	for _, f := range s.failures.all {
		if f.Run == r.key && f.LastSeen != nil {
			rows = append(rows, Mark{Time: *f.LastSeen, Kind: "failure", Text: strings.TrimSpace(f.Class + " " + f.Operation)})
		}
	}
	slices.SortStableFunc(rows, func(a, b Mark) int { return a.Time.Compare(b.Time) })
	onset := false
	return slices.DeleteFunc(rows, func(m Mark) bool {
		onset = onset || m.Kind == LooksHung
		return onset && m.Kind == "state" && strings.HasPrefix(m.Text, stateWord(mlattr.RunStalled))
	})
}
