package problem

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxOpen limits the open problems of all kinds together, maxUnpaged those that
	// are no pages, and maxOfKind those of one kind, so that many idle GPUs do not
	// hide a run that hangs.
	maxOpen, maxUnpaged, maxOfKind = 4096, 2048, 1024
	// maxOfOne limits those of one run, or of one program without a run, so that
	// the failed GPUs of one do not hide the problems of others.
	maxOfOne = 64
	// maxPhrases limits the phrases of evidence, and the exclusions.
	maxPhrases = 16
	// flapTime is how long a problem must be gone to end, if it came back so soon
	// after its last end: one that comes and goes has few records.
	flapTime = 10 * time.Minute
	// StaleAfter is after how long without new evidence a problem is stale, unless
	// StaleIntervals is longer.
	StaleAfter = 2 * time.Minute
	// StaleIntervals is the same in the usual intervals of its evidence.
	StaleIntervals = 3
)

// key identifies an open problem.
type key struct {
	kind    string
	subject Subject
}

// Board collects the problems of one emission, and keeps them over emissions. It
// is not safe for concurrent use.
type Board struct {
	reported map[key]*Problem
	open     map[key]*Entry
	// ended has when problems ended within the last flapTime, at most maxOpen of them.
	ended map[key]time.Time
	// of counts the open problems of a run or program.
	of map[Subject]int
	// ofKind counts those of a kind, unpaged those that are no pages.
	ofKind  map[string]int
	unpaged int
	left    int64
}

// NewBoard returns a Board without problems.
func NewBoard() *Board {
	return &Board{
		reported: make(map[key]*Problem),
		open:     make(map[key]*Entry), ended: make(map[key]time.Time), of: make(map[Subject]int), ofKind: make(map[string]int),
	}
}

// Report adds a problem to the emission. Of two with the same kind and subject, the
// one with the earlier onset stays. A kind that is not in mlattr.Problems is
// ignored.
func (b *Board) Report(p Problem) {
	if _, known := mlattr.ProblemNamed(p.Kind); !known {
		return
	}
	id := key{p.Kind, p.Subject}
	if other := b.reported[id]; other == nil || p.Onset.Before(other.Onset) {
		b.reported[id] = &p
	}
}

// Open reports whether a subject has a problem of a kind.
func (b *Board) Open(kind string, of Subject) bool { return b.open[key{kind, of}] != nil }

// Left returns how many problems were left out since the last call, because
// others are open.
func (b *Board) Left() (left int64) {
	left, b.left = b.left, 0
	return left
}

// Settle ends the emission. What was not reported since the last call has ended if
// newer data than its evidence has arrived: news returns when the newest data did
// that could show that a problem is over. Some kinds, and a problem that came back
// within 10 minutes, must be gone for a while. If problems that are concluded from silence
// are withheld, none of them begins. Without newer data a problem lasts, and
// is stale after a while, until its kind's EndsAfter. before returns the changes of a
// subject before a time, the newest first.
//
// began has the new problems, those whose cause or earlier changes are known only now, and those that
// became stale or are no longer; ended those that have ended, as they were last
// reported; open all others, those that are Updated among them, and those that began. A moment is in began and ended at
// once. All are in order of their onset.
func (b *Board) Settle(now time.Time, withheld bool, before func(Subject, time.Time) []change.Change, news func(*Entry) time.Time) (began, ended, open []Entry) {
	maps.DeleteFunc(b.ended, func(_ key, at time.Time) bool { return now.Sub(at) >= flapTime })
	b.sift(now, withheld)
	changed := make(map[*Entry]bool)
	for id, p := range b.reported {
		entry := b.open[id]
		if entry == nil {
			if entry = b.begin(id, p, now); entry == nil {
				continue
			}
			entry.Before = before(entry.Subject, entry.Onset)
		} else {
			entry.update(p)
			entry.Restored = false
			if now.Sub(entry.Onset) <= change.OnsetTolerance {
				if late := before(entry.Subject, entry.Onset); len(late) > len(entry.Before) {
					entry.Before, changed[entry] = late, true
				}
			}
		}
	}
	for id, entry := range b.open {
		stale := entry.Stale
		b.finish(id, entry, now, news)
		if entry.said.at.IsZero() || entry.Stale != stale && entry.Ended.IsZero() {
			changed[entry] = true // nothing was said of what is new or restored
		}
	}
	causes := b.causes()
	for _, entry := range b.open {
		if cause := causes.of(entry); cause != "" && entry.Cause != cause && entry.Ended.IsZero() {
			entry.Cause = cause
			if !entry.Detected.Equal(now) {
				changed[entry] = true
			}
		}
	}
	b.update(changed, now)
	for entry := range changed {
		entry.said = entry.say(now)
		as := *entry
		as.Ended = time.Time{}
		began = append(began, as)
	}
	for id, entry := range b.open {
		if entry.Ended.IsZero() {
			open = append(open, *entry)
			continue
		}
		ended = append(ended, *entry)
		if delete(b.open, id); b.reported[id] == nil && len(b.ended) < maxOpen {
			b.ended[id] = now
		}
		b.count(entry, -1)
	}
	clear(b.reported)
	for _, all := range [][]Entry{began, ended, open} {
		slices.SortFunc(all, inOrder)
	}
	return began, ended, open
}

// sift prepares what was reported: evidence that is too old is none, and a GPU is that
// of those who had it at the onset if the run is none by now, or its program another.
func (b *Board) sift(now time.Time, withheld bool) {
	atOnset := make(map[key][]key)
	for id, entry := range b.open {
		entry.Evident = earlier(entry.Evident, now)
		if s := id.subject; s.GPU != "" {
			of := key{id.kind, Subject{Run: s.Run, Host: s.Host, GPU: s.GPU}}
			atOnset[of] = append(atOnset[of], id)
			if of.subject.Run = ""; s.Run != "" {
				atOnset[of] = append(atOnset[of], id)
			}
		}
	}
	for id, p := range b.reported {
		p.Evident = earlier(cmp.Or(p.Evident, now), now)
		kind, _ := mlattr.ProblemNamed(id.kind)
		var entries []key
		if s := id.subject; b.open[id] == nil {
			entries = atOnset[key{id.kind, Subject{Run: s.Run, Host: s.Host, GPU: s.GPU}}]
		}
		early := withheld && kind.FromSilence && b.open[id] == nil
		if len(entries) > 0 || early || !kind.Moment && now.Sub(p.Evident) >= kind.EndsAfter() {
			delete(b.reported, id)
		}
		for _, of := range entries {
			if b.reported[of] == nil {
				b.reported[of] = p
			}
		}
	}
}

// earlier returns a time, or one right before now if the clock was set back.
func earlier(at, now time.Time) time.Time {
	if at.After(now) {
		return now.Add(-1)
	}
	return at
}

// finish sets when a problem ended, and whether it is stale.
func (b *Board) finish(id key, entry *Entry, now time.Time, news func(*Entry) time.Time) {
	kind, _ := mlattr.ProblemNamed(id.kind)
	calm := kind.Calm
	if entry.back {
		calm = max(calm, flapTime)
	}
	switch {
	case kind.Moment:
		entry.Ended = now
	case b.reported[id] != nil:
		entry.Found = now
	case now.Sub(entry.Evident) >= kind.EndsAfter():
		entry.Ended, entry.EndReason = now, mlattr.ProblemNoEvidence
	case !news(entry).After(entry.Evident):
		// Nothing has arrived that could show that it is over.
	case calm == 0:
		entry.Ended = now
	case now.Sub(entry.Found) >= calm:
		entry.Ended = entry.Found
	}
	switch {
	case entry.Ended.IsZero():
	case entry.Restored:
		entry.EndReason = mlattr.ProblemNoEvidence
	default:
		entry.EndReason = cmp.Or(entry.EndReason, mlattr.ProblemOver)
	}
	entry.Stale = entry.Ended.IsZero() && now.Sub(entry.Evident) >= max(StaleAfter, StaleIntervals*entry.Interval)
}

// inOrder compares problems by their onset.
func inOrder(x, y Entry) int {
	return cmp.Or(x.Onset.Compare(y.Onset), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.ID, y.ID))
}

// begin opens a problem, or returns nil beyond a limit.
func (b *Board) begin(id key, p *Problem, now time.Time) *Entry {
	kind, _ := mlattr.ProblemNamed(id.kind)
	if len(b.open) >= maxOpen || b.of[ownerOf(id.subject)] >= maxOfOne || b.ofKind[id.kind] >= maxOfKind || kind.Severity != mlattr.SeverityPage && b.unpaged >= maxUnpaged {
		b.left++
		return nil
	}
	id.subject = id.subject.Clone()
	entry := &Entry{
		ID: idOf(id, p.Onset), Severity: kind.Severity, Detected: now,
		Problem: Problem{Subject: id.subject, Onset: p.Onset},
	}
	entry.update(p)
	_, entry.back = b.ended[id]
	delete(b.ended, id)
	b.open[id] = entry
	b.count(entry, 1)
	return entry
}

// count counts a problem that begins, or no longer one that ends.
func (b *Board) count(e *Entry, n int) {
	owner := ownerOf(e.Subject)
	if b.of[owner] += n; b.of[owner] == 0 {
		delete(b.of, owner)
	}
	b.ofKind[e.Kind] += n
	if e.Severity != mlattr.SeverityPage {
		b.unpaged += n
	}
}

// ownerOf returns the run of a subject, else its program.
func ownerOf(s Subject) Subject {
	if s.Run != "" || s.Resource.Service != "" {
		return Subject{Resource: s.Resource, Run: s.Run}
	}
	return s
}

// update takes over what was reported, except for the subject, the onset and the
// holder then.
func (e *Entry) update(p *Problem) {
	was := e.Problem
	e.Problem = *p
	e.Subject, e.Onset = was.Subject, was.Onset
	if was.Holder != (gpus.Owner{}) || was.HolderRun != "" {
		e.Holder, e.HolderRun = was.Holder, was.HolderRun
	}
	if len(e.Held) == 0 {
		e.Held = was.Held
	}
	e.Evident = shared.Later(e.Evident, was.Evident)
	e.Evidence = slices.Clone(p.Evidence[:min(len(p.Evidence), maxPhrases)])
	e.Excluded = slices.Clone(p.Excluded[:min(len(p.Excluded), maxPhrases)])
	e.Rank, e.Host, e.GPU = strings.Clone(p.Rank), strings.Clone(p.Host), strings.Clone(p.GPU)
}

// idOf returns the same identifier for the same problem.
func idOf(id key, onset time.Time) string {
	of := &id.subject
	return mlattr.Digest(8, id.kind, of.Resource.Namespace, of.Resource.Service, of.Run, of.Host, of.GPU, strconv.FormatInt(onset.UnixNano(), 10))
}

// maxGPUs limits the GPUs of a problem that is restored.
const maxGPUs = 1e6

// Plausible returns those of the problems that may have been open before a restart.
func Plausible(all []Entry) []Entry {
	return slices.DeleteFunc(all[:min(len(all), maxOpen)], func(e Entry) bool {
		kind, known := mlattr.ProblemNamed(e.Kind)
		return !known || kind.Moment || !e.plausible()
	})
}

// plausible reports whether a Board may have had the problem.
func (e *Entry) plausible() bool {
	return max(len(e.Evidence), len(e.Excluded), len(e.Before)) <= maxPhrases && len(e.Held) <= MaxHeld &&
		e.Onset.Unix() > 0 && !e.Evident.Before(e.Onset) && e.Interval >= 0 && e.Interval <= 24*time.Hour && e.GPUs >= 0 && e.GPUs <= maxGPUs
}

// Restore opens the problems that were open before a restart, and that are not open
// now. Their detectors have forgotten what they knew: until one reports it again, a
// problem ends only when it has been gone for 10 minutes, and without a verdict.
func (b *Board) Restore(open []Entry, now time.Time) {
	for i := range open {
		was := &open[i]
		id := key{was.Kind, was.Subject}
		if was.Onset.After(now) || b.open[id] != nil {
			continue
		}
		if entry := b.begin(id, &was.Problem, now); entry != nil {
			entry.Detected, entry.Found, entry.Before = earlier(was.Detected, now), earlier(was.Evident, now), was.Before
			entry.back, entry.Restored = true, true
		}
	}
}

const (
	// updateAfter is the least time between two records of a problem whose evidence
	// changes, maxUpdates limits those of one emission.
	updateAfter, maxUpdates = time.Minute, 256
	// otherValue is the change of a value that is worth a record, as a fraction of it.
	otherValue = 0.2
)

// saying is what a record says of a problem.
type saying struct {
	at    time.Time
	value float64
	// words is a hash of the words, without their figures, and of where the problem is and
	// what to look at.
	words uint64
}

var wordsSeed = maphash.MakeSeed()

// say returns what a record says of the problem now.
func (e *Entry) say(now time.Time) saying {
	where := fmt.Sprintf("%q %q %q %d %d %d ", e.Rank, e.Host, e.GPU, e.PID, e.Recovery, len(e.Held))
	words := strings.Map(withoutFigures, fmt.Sprintf("%q %q %q", e.Evidence, e.Excluded, e.Next))
	return saying{now, e.Value, maphash.String(wordsSeed, where+words)}
}

// withoutFigures drops the characters of numbers.
func withoutFigures(c rune) rune {
	if c >= '0' && c <= '9' || c == '.' {
		return -1
	}
	return c
}

// update marks the problems that last and whose evidence has changed since it was last
// sent, those that wait for longest first. changed are sent anyway.
func (b *Board) update(changed map[*Entry]bool, now time.Time) {
	var entries []*Entry
	for id, entry := range b.open {
		said := entry.said
		entry.Updated = false
		if changed[entry] || b.reported[id] == nil || entry.Stale || !entry.Ended.IsZero() || now.Sub(said.at) < updateAfter {
			continue
		}
		if is := entry.say(now); is.words != said.words || math.Abs(is.value-said.value) > otherValue*math.Abs(said.value) {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(x, y *Entry) int { return cmp.Or(x.said.at.Compare(y.said.at), inOrder(*x, *y)) })
	for _, entry := range entries[:min(len(entries), maxUpdates)] {
		entry.Updated, entry.said = true, entry.say(now)
	}
}

// causeTolerance is how much later than the problem a cause may begin: GPUs are
// read, and telemetry arrives, at intervals.
const causeTolerance = 10 * time.Minute

// placesOf returns what problems of a kind may have in common with one, the most specific
// first: its run, the GPU of a host, a host, or a program. Such problems are related.
func placesOf(kind string, p *Problem) (places []key) {
	host, gpu := p.Place()
	add := func(known bool, of Subject) {
		if known {
			places = append(places, key{kind, of})
		}
	}
	add(p.Subject.Run != "", Subject{Run: p.Subject.Run})
	add(gpu != "", Subject{Host: host, GPU: gpu})
	add(host != "", Subject{Host: host})
	add(p.Subject.Run == "" && p.Subject.Resource.Service != "", Subject{Resource: p.Subject.Resource})
	return places
}

// causes finds open problems by their places.
type causes map[key][]*Entry

// maxAtOne limits the problems of one kind and place that may be causes.
const maxAtOne = 16

// causes returns an index of the open problems.
func (b *Board) causes() causes {
	index := make(causes)
	for id, entry := range b.open {
		for _, at := range placesOf(id.kind, &entry.Problem) {
			if len(index[at]) < maxAtOne {
				index[at] = append(index[at], entry)
			}
		}
	}
	return index
}

// of returns the ID of the problem that one follows from, or "".
func (c causes) of(e *Entry) string {
	of, _ := mlattr.ProblemNamed(e.Kind)
	for _, kind := range of.Follows {
		for _, at := range placesOf(kind, &e.Problem) {
			possible := mlattr.Where(slices.Values(c[at]), func(cause *Entry) bool { return cause.mayCause(e) })
			if len(possible) > 0 {
				return slices.MinFunc(possible, func(x, y *Entry) int { return inOrder(*x, *y) }).ID
			}
		}
	}
	return ""
}

// mayCause reports whether a problem with a place in common is of the same run,
// if both are of one, and began early enough.
func (e *Entry) mayCause(other *Entry) bool {
	a, b := e.Subject.Run, other.Subject.Run
	return (a == "" || b == "" || a == b) && !e.Onset.After(other.Onset.Add(causeTolerance))
}
