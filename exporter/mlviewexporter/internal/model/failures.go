package model

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// rememberedSpans is how many spans above failures, or above requests, are
// remembered at the most; half as many are at least.
const rememberedSpans = 16_384

// spanSet has spans that were seen recently.
type spanSet = lastused.Map[spanRef, bool]

// failureGroups are the groups of failures, by key: the fingerprint of their
// reproduction, else service, class and operation.
type failureGroups struct {
	settings Settings
	texts    *texts
	limits   *limits

	all map[string]*failureGroup
	// found are the groups of repro_gen's directory.
	found map[string]Failure
	// lookup has the keys of groups without a fingerprint.
	lookup map[causeID]string
	// parents are the spans above failures.
	parents *spanSet
	// leaving are the next groups to make room, unless a failure came since.
	leaving []leavingFailures
}

// leavingFailures is a group, and when its last failure was seen.
type leavingFailures struct {
	*failureGroup
	seen time.Time
}

// failureGroup is a group, and when its failures came.
type failureGroup struct {
	Failure
	origin share.Origin
	// again reports whether its run is one that did not come only once.
	again bool
	came  occurrences
	// marked is when repro_gen first gave a failure the fingerprint, zero if it has
	// not. unmarked reports whether a failure came without one.
	marked   time.Time
	unmarked bool
}

// causeID identifies a group without a fingerprint.
type causeID struct{ namespace, service, class, operation string }

func newFailureGroups(settings Settings, texts *texts, limits *limits) *failureGroups {
	return &failureGroups{
		settings: settings, texts: texts, limits: limits,
		all: make(map[string]*failureGroup), found: make(map[string]Failure), lookup: make(map[causeID]string),
		parents: lastused.NewMap[spanRef, bool](rememberedSpans),
	}
}

// noteParents remembers the spans above failures: a failure counts where it
// occurred, and not again at the spans above.
func (f *failureGroups) noteParents(spans []SpanInput) {
	for i := range spans {
		if in := &spans[i]; in.Failed && in.Parent != ([8]byte{}) {
			f.parents.Put(spanRef{in.Trace, in.Parent}, true)
		}
	}
}

// covered reports whether a span below reports the same failure.
func (f *failureGroups) covered(in *SpanInput) bool {
	below, _ := f.parents.Get(spanRef{in.Trace, in.ID})
	return in.Fingerprint == "" && below
}

// failedRun is the run of a failure: its key, its id, and whether it is one that did not
// come only once.
type failedRun struct {
	key, id string
	again   bool
}

// span adds the failure of a span, of a run unless the key of that is empty.
func (f *failureGroups) span(in *SpanInput, r failedRun, from share.Origin, now time.Time) {
	key := in.Fingerprint
	class, operation := f.texts.of(cmp.Or(in.Class, otherError)), f.texts.of(cmp.Or(in.Operation, in.Function, in.Name))
	if key == "" {
		cause := causeID{f.texts.of(in.Source.Namespace), f.texts.of(in.Source.Service), class, operation}
		if key = f.lookup[cause]; key == "" {
			key = keyOf("failure", cause.namespace, cause.service, class, operation)
			if len(f.lookup) < 2*maxFailures {
				f.lookup[cause] = key
			}
		}
	}
	one := f.group(key, from, now)
	if one.unmarked = in.Fingerprint == ""; !one.unmarked && one.marked.IsZero() {
		one.marked = now
	}
	at := time.Unix(0, min(in.End, now.UnixNano())).UTC()
	one.Class, one.Operation = class, operation
	one.Service = f.texts.of(in.Source.Service)
	if in.Message != "" && !strings.HasPrefix(in.Message, one.Message) || one.Message == "" {
		one.Message = f.texts.message(in.Message)
	}
	if in.Source.Version != "" {
		one.Version = f.texts.of(in.Source.Version)
	}
	if r.key != "" {
		one.Run, one.RunID = r.key, r.id
		one.again = one.again || r.again
	}
	one.TraceID = hexID(in.Trace[:])
	one.Count++
	one.came.add(now)
	one.seen(at)
}

// seen extends the time in which failures of a group occurred.
func (f *Failure) seen(at time.Time) {
	if f.FirstSeen == nil || at.Before(*f.FirstSeen) {
		f.FirstSeen = timePointer(at)
	}
	if f.LastSeen == nil || at.After(*f.LastSeen) {
		f.LastSeen = timePointer(at)
	}
}

// record adds a reproduction of another collector.
func (f *failureGroups) record(in *Failure, now time.Time) {
	if in.Key == "" {
		return
	}
	one := f.group(in.Key, share.OriginOf(0, in.Service), now)
	one.Kind = f.texts.of(in.Kind)
	one.Class = cmp.Or(one.Class, f.texts.of(in.Class))
	one.Service = cmp.Or(one.Service, f.texts.of(in.Service))
	one.TraceID = cmp.Or(one.TraceID, in.TraceID)
	if in.LastSeen != nil {
		one.seen(earlier(*in.LastSeen, now))
	}
	if in.Command != "" && len(in.Command) <= maxCommand {
		// They may share the memory of a whole report.
		one.Command, one.Replays, one.Why = strings.Clone(in.Command), in.Replays, strings.Clone(cut(in.Why, maxMessage))
		one.Requires, one.Fill = clones(in.Requires), clones(in.Fill)
	}
	// Spans count each failure, records only those that were written.
	if one.Variants++; one.Count < int64(one.Variants) {
		one.Count = int64(one.Variants)
		one.came.add(now)
	}
}

// maxCommand limits the command of a record, in bytes. A longer one would be cut.
const maxCommand = 1000

// clones returns copies that share no memory with texts, of bounded length.
func clones(texts []string) []string {
	out := make([]string, len(texts))
	for i := range texts {
		out[i] = strings.Clone(cut(texts[i], maxMessage))
	}
	return out
}

// group returns the group with a key, which it adds for an origin.
func (f *failureGroups) group(key string, from share.Origin, now time.Time) *failureGroup {
	if one := f.all[key]; one != nil {
		return one
	}
	if len(f.all) >= maxFailures {
		f.forget(now)
	}
	key = strings.Clone(cut(key, maxLabel))
	one := f.all[key]
	if one == nil {
		one = &failureGroup{Failure: Failure{Key: key}, origin: from}
		f.all[key] = one
	}
	return one
}

// forget makes room for a group: of senders and services with more than their share,
// first those of runs that came only once, and then the one that occurred longest ago.
func (f *failureGroups) forget(now time.Time) {
	for {
		if len(f.leaving) == 0 {
			f.orderLeaving()
		}
		next := f.leaving[0]
		f.leaving = f.leaving[1:]
		if f.all[next.Key] == next.failureGroup && lastSeen(&next.Failure).Equal(next.seen) {
			f.limits.refuse("failures", next.Key, now)
			f.remove(next.Key)
			return
		}
	}
}

func (f *failureGroups) orderLeaving() {
	all := make([]leavingFailures, 0, len(f.all))
	for _, one := range f.all {
		all = append(all, leavingFailures{one, lastSeen(&one.Failure)})
	}
	slices.SortFunc(all, func(a, b leavingFailures) int {
		if a.again != b.again {
			return map[bool]int{true: -1, false: 1}[a.again]
		}
		return cmp.Or(b.seen.Compare(a.seen), cmp.Compare(a.Key, b.Key))
	})
	f.leaving = nil
	for _, i := range f.limits.leave(len(all), func(i int) (share.Origin, int) { return all[i].origin, 1 }) {
		f.leaving = append(f.leaving, all[i])
	}
}

func (f *failureGroups) remove(key string) {
	delete(f.all, key)
	for cause, of := range f.lookup {
		if of == key {
			delete(f.lookup, cause)
		}
	}
}

// set replaces the groups that repro_gen's directory has.
func (f *failureGroups) set(found []Failure, now time.Time) {
	clear(f.found)
	for _, one := range found[:min(len(found), 2*maxFailures)] {
		// Anybody who can write to the directory has written the times.
		last := earlier(lastSeen(&one), now)
		if last.Before(now.AddDate(-10, 0, 0)) {
			one.FirstSeen, one.LastSeen = nil, nil
		} else if one.LastSeen = timePointer(last); one.FirstSeen != nil {
			one.FirstSeen = timePointer(plausible(*one.FirstSeen, last))
		}
		one.Message = f.texts.message(one.Message)
		f.found[one.Key] = one
	}
}

// merged returns a group with what the directory says of it.
func (f *failureGroups) merged(key string) Failure {
	one, known := f.all[key]
	found, isFound := f.found[key]
	switch {
	case !isFound:
		return one.Failure
	case !known:
		return found
	}
	row := found
	row.Class, row.Message = cmp.Or(found.Class, one.Class), cmp.Or(found.Message, one.Message)
	row.Service, row.Operation = cmp.Or(found.Service, one.Service), cmp.Or(found.Operation, one.Operation)
	row.Run, row.RunID = cmp.Or(one.Run, found.Run), cmp.Or(one.RunID, found.RunID)
	row.Version, row.TraceID = cmp.Or(one.Version, found.Version), cmp.Or(one.TraceID, found.TraceID)
	row.Count = max(found.Count, one.Count)
	for _, at := range []*time.Time{one.FirstSeen, one.LastSeen} {
		if at != nil {
			row.seen(*at)
		}
	}
	return row
}

// writtenWithin is how soon after a failure its reproduction is there: repro_gen
// waits for the other spans of the trace, and the directory is read at intervals.
const writtenWithin = time.Minute

// whyNone says why a group has no command, "" if that is not known.
func (f *failureGroups) whyNone(one *failureGroup, now time.Time) string {
	switch {
	case one == nil:
		return ""
	case f.settings.Fleet && !f.settings.Reproductions:
		return "not sent; set emit_log of repro_gen where the failure occurred"
	case f.settings.Withheld:
		return "not shown, because everybody can read this page; give it auth, or set insecure_reproductions of ml_view"
	case !f.settings.Reproductions:
		return "not shown; set reproductions of ml_view to the directory of repro_gen"
	case !one.marked.IsZero() && now.Sub(one.marked) < writtenWithin:
		return "not yet written; repro_gen writes it some seconds after the failure"
	case !one.marked.IsZero() || one.Kind != "":
		return "not in the page's directory; it was not written, or has been removed"
	case one.unmarked:
		return "none; repro_gen chose another span of the trace, or does not process these spans"
	}
	return ""
}

// rows returns the failures of a run, or all of them if run is empty, those that occurred
// last first. keyOfRun returns the key of the run of a service with an id, "" if there is
// none; simulated has the services whose data is simulated.
func (f *failureGroups) rows(run string, keyOfRun func(id, service string) string, simulated map[string]bool, now time.Time) []Failure {
	rows := make([]Failure, 0, len(f.all)+len(f.found))
	add := func(key string) {
		row := f.merged(key)
		if row.Command == "" {
			row.Why = f.whyNone(f.all[key], now)
		}
		if row.Run == "" && row.RunID != "" {
			row.Run = keyOfRun(row.RunID, row.Service)
		}
		row.TraceURL, row.Simulated = traceURL(f.settings.JaegerURL, row.TraceID), simulated[row.Service]
		if run == "" || row.Run == run {
			rows = append(rows, row)
		}
	}
	for key := range f.all {
		add(key)
	}
	for key := range f.found {
		if f.all[key] == nil {
			add(key)
		}
	}
	slices.SortFunc(rows, func(a, b Failure) int {
		return cmp.Or(lastSeen(&b).Compare(lastSeen(&a)), cmp.Compare(a.Key, b.Key))
	})
	return rows
}

// since returns how many failures of a row came since a time. Of a group that only
// the directory has, the first and the last time are known.
func (f *failureGroups) since(row *Failure, at time.Time) int64 {
	switch one := f.all[row.Key]; {
	case one != nil && one.came.n > 0:
		return one.came.since(at)
	case lastSeen(row).Before(at):
		return 0
	case row.FirstSeen == nil || row.FirstSeen.Before(at):
		return 1
	default:
		return row.Count
	}
}

func lastSeen(f *Failure) time.Time {
	if f.LastSeen == nil {
		return time.Time{}
	}
	return *f.LastSeen
}

// marks returns the last failure of each group of a run.
func (f *failureGroups) marks(run string) (rows []Mark) {
	for _, one := range f.all {
		if one.Run == run && one.LastSeen != nil {
			rows = append(rows, Mark{Time: *one.LastSeen, Kind: "failure", Text: strings.TrimSpace(one.Class + " " + one.Operation)})
		}
	}
	return rows
}

// prune removes the groups that occurred long ago.
func (f *failureGroups) prune(now time.Time) {
	for key, one := range f.all {
		if now.Sub(lastSeen(&one.Failure)) > importedFor {
			f.remove(key)
		}
	}
}

// saved returns the groups without what the directory says of them.
func (f *failureGroups) saved() (all []Failure) {
	for _, group := range f.all {
		one := group.Failure
		one.Command, one.Requires, one.Fill, one.Why = "", nil, nil, ""
		all = append(all, one)
	}
	return all
}

// restore adds the groups that saved has returned, as far as they are recent.
func (f *failureGroups) restore(all []Failure, recent func(time.Time) bool) {
	for i := range all {
		if in := &all[i]; recent(lastSeen(in)) && len(f.all) < maxFailures && f.all[in.Key] == nil {
			f.all[in.Key] = &failureGroup{Failure: f.imported(in), origin: share.OriginOf(0, in.Service), again: true}
		}
	}
}

// imported returns what Export writes of a failure, as it is held now. Its commands
// and reports are those of the directory only.
func (f *failureGroups) imported(in *Failure) Failure {
	text := f.texts.of
	out := Failure{
		Key: text(in.Key), Kind: text(in.Kind), Class: text(in.Class), Message: f.texts.message(in.Message), Service: text(in.Service),
		Run: text(in.Run), RunID: text(in.RunID), Version: text(in.Version), Operation: text(in.Operation),
		Count: max(0, in.Count), LastSeen: in.LastSeen, Variants: max(0, in.Variants),
	}
	// An address has it.
	if id, err := hex.DecodeString(in.TraceID); err == nil && len(id) == 16 {
		out.TraceID = hexID(id)
	}
	out.seen(*in.LastSeen)
	if in.FirstSeen != nil {
		out.seen(plausible(*in.FirstSeen, *in.LastSeen))
	}
	return out
}
