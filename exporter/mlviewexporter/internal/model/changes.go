package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Kinds of a Change.
const (
	changeAttempt = "attempt"
	changeVersion = "version"
	changeHost    = "host"
	changeModel   = "model"
)

// settling is how long the models of a new service count as its first ones.
const settling = time.Minute

// serviceID identifies a service.
type serviceID struct{ namespace, name string }

// service is a program that sends telemetry.
type service struct {
	serviceID
	firstSeen time.Time
	// user is the one that its spans name.
	user string
	// version is the last one that was seen, versions and models when each was
	// first seen.
	version          string
	versions, models map[string]time.Time
	// failed counts the failures of spans by version.
	failed   map[string]float64
	streams  []*stream
	lastSeen time.Time
}

// maxPerService limits the versions and models of a service that are remembered.
const maxPerService = 32

// forgetOldest makes room for one more: it removes what was first seen longest ago,
// more than an hour, and returns it. ok is false if there is no room: as many are
// in use in turn, and none of them is a change.
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

func (s *Store) serviceOf(namespace, name string, now time.Time) *service {
	id := serviceID{namespace, name}
	one := s.services[id]
	if one == nil {
		if len(s.services) >= maxServices {
			s.dropped["services"]++
			return nil
		}
		id = serviceID{s.texts.of(namespace), s.texts.of(name)}
		if one = s.services[id]; one != nil {
			return one
		}
		one = &service{serviceID: id, firstSeen: now, versions: make(map[string]time.Time), models: make(map[string]time.Time), failed: make(map[string]float64)}
		s.services[id] = one
	}
	one.lastSeen = now
	return one
}

// seeVersion notes the version of a service, and a change if it is a new one of a
// service that had another.
func (s *Store) seeVersion(of *service, version string, r *run, now time.Time) {
	if version == "" || of == nil {
		return
	}
	if _, known := of.versions[version]; known {
		of.version = s.texts.of(version)
		return
	}
	version = s.texts.of(version)
	if _, known := of.versions[version]; known {
		return
	}
	forgotten, ok := forgetOldest(of.versions, now)
	if !ok {
		return
	}
	delete(of.failed, forgotten)
	of.versions[version] = now
	if was := of.version; was != "" {
		s.change(Change{Kind: changeVersion, Service: of.name, From: was, To: version, Text: "version " + version + " (was " + was + ")"}, r, now)
	}
	of.version = version
}

// seeModel notes a model of a service, and a change if it is a new one.
func (s *Store) seeModel(of *service, model string, now time.Time) {
	if model == "" || of == nil {
		return
	}
	if _, known := of.models[model]; known {
		return
	}
	model = s.texts.of(model)
	if _, known := of.models[model]; known {
		return
	}
	first := len(of.models) == 0
	if _, ok := forgetOldest(of.models, now); !ok {
		return
	}
	of.models[model] = now
	if !first && now.Sub(of.firstSeen) >= settling {
		s.change(Change{Kind: changeModel, Service: of.name, To: model, Text: "model " + model}, nil, now)
	}
}

// sameRestart is how far apart a new attempt and the hosts of it are seen.
const sameRestart = 2 * time.Minute

// noteAttempts notes a new attempt of a run, with the hosts that are new in it. A
// run that is first seen at its second attempt has not changed.
func (s *Store) noteAttempts(r *run, attempts float64, now time.Time) {
	was := r.attempts
	if attempts <= was || attempts > 1e9 {
		return
	}
	r.attempts = attempts
	if was < 1 {
		return
	}
	var added []string
	for host, at := range r.added {
		if now.Sub(at) <= sameRestart {
			added = append(added, host)
		}
	}
	clear(r.added)
	text := "attempt " + number(attempts)
	if len(added) > 0 {
		slices.Sort(added)
		text += ": new host " + list(added, maxNamedRanks)
		// The attempt says it.
		s.changes = slices.DeleteFunc(s.changes, func(c Change) bool {
			return c.Kind == changeHost && c.Run == r.key && slices.Contains(added, c.To)
		})
	}
	s.change(Change{Kind: changeAttempt, Service: r.service, From: number(was), To: number(attempts), Text: text}, r, now)
}

// moveRank notes on which host a rank is, and a change if it is one that the run
// did not use before.
func (s *Store) moveRank(r *run, one *rank, host string, now time.Time) {
	if host == "" || host == one.host && r.hosts[host] {
		return
	}
	host = s.texts.of(host)
	was := one.host
	one.host = host
	if r.hosts[host] || len(r.hosts) >= maxHosts {
		return
	}
	r.hosts[host] = true
	clear(s.withID)
	if was == "" || was == host || one.name == "" {
		return
	}
	r.added[host] = now
	s.change(Change{Kind: changeHost, Service: r.service, From: was, To: host, Text: "host " + host + " (was " + was + ")"}, r, now)
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

// change adds a change of a run, or of a service where there is none.
func (s *Store) change(c Change, r *run, now time.Time) {
	c.Time = now.UTC()
	if r != nil {
		c.Run, c.RunID = r.key, r.id
	}
	c.Key = keyOf("change", c.Kind, c.Service, c.Run, c.From, c.To, c.Time.Format(time.RFC3339Nano))
	s.changes = appended(s.changes, c, maxChanges, func(other *Change) bool { return other.Run == c.Run && other.Service == c.Service })
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

// before returns the changes of a run or service that came before a time, the
// newest first.
func (s *Store) before(since time.Time, service, run string) []Change {
	rows := []Change{}
	for _, c := range slices.Backward(s.changes) {
		if c.Time.After(since.Add(onsetTolerance)) || since.Sub(c.Time) > beforeWithin {
			continue
		}
		if run != "" && c.Run == run || c.Service == service && (c.Run == "" || run == "") {
			rows = append(rows, c)
		}
	}
	slices.SortStableFunc(rows, func(a, b Change) int { return b.Time.Compare(a.Time) })
	return rows[:min(len(rows), maxBefore)]
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
		if c.Run == r.key || c.Run == "" && c.Service == r.service {
			rows = append(rows, Mark{Time: c.Time, Kind: "change", Text: c.Text})
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
