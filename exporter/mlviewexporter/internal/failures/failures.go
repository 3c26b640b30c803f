// Package failures groups the failures that spans and repro_gen report.
package failures

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Groups are the groups of failures, by key: the fingerprint of their
// reproduction, else service, class and operation.
type Groups struct {
	*input.Bounds
	all map[string]*group
	// found are the groups of repro_gen's directory.
	found   map[string]api.Failure
	leaving kept.Leaving[*group]
}

// group is a group, and when its failures came.
type group struct {
	api.Failure
	origin share.Origin
	// again reports whether its run is one that did not come only once.
	again bool
	came  occurrences
	// marked is when repro_gen first gave a failure the fingerprint, zero if it has
	// not. unmarked reports whether a failure came without one.
	marked   time.Time
	unmarked bool
}

// New returns no groups.
func New(of *input.Bounds) *Groups {
	return &Groups{Bounds: of, all: make(map[string]*group), found: make(map[string]api.Failure)}
}

// Run is the run of a failure: its key, its id, and whether it is one that did not
// come only once.
type Run struct {
	Key, ID string
	Again   bool
}

// Span adds the failure of a span, of a run unless the key of that is empty.
func (f *Groups) Span(in *input.Span, r Run, from share.Origin, now time.Time) {
	key := in.Fingerprint
	class, operation := f.Texts.Of(cmp.Or(in.Class, mlattr.Other)), f.Texts.Of(cmp.Or(in.Fact.Operation, in.Fact.Function, in.Name))
	if key == "" {
		key = api.Key("failure", f.Texts.Of(in.Source.Namespace), f.Texts.Of(in.Source.Service), class, operation)
	}
	one := f.group(key, from, now)
	if one.unmarked = in.Fingerprint == ""; !one.unmarked && one.marked.IsZero() {
		one.marked = now
	}
	at := time.Unix(0, min(in.End, now.UnixNano())).UTC()
	one.Class, one.Operation = class, operation
	one.Service = f.Texts.Of(in.Source.Service)
	if in.Message != "" && !strings.HasPrefix(in.Message, one.Message) || one.Message == "" {
		one.Message = f.Texts.Message(in.Message)
	}
	f.Texts.Set(&one.Version, in.Source.Version)
	if r.Key != "" {
		one.Run, one.RunID = r.Key, r.ID
		one.again = one.again || r.Again
	}
	if in.Held || one.TraceID == "" { // what is listed can be opened, if possible
		one.TraceID = api.HexID(in.Trace[:])
	}
	one.Count++
	one.came.add(now)
	seen(&one.Failure, at)
}

// seen extends the time in which failures of a group occurred.
func seen(f *api.Failure, at time.Time) {
	f.FirstSeen, f.LastSeen = api.Earlier(f.FirstSeen, api.TimeOf(at)), api.Later(f.LastSeen, api.TimeOf(at))
}

// Record adds a reproduction of another collector.
func (f *Groups) Record(in *api.Failure, now time.Time) {
	if in.Key == "" {
		return
	}
	one := f.group(in.Key, share.OriginOf(0, in.Service), now)
	one.Kind = f.Texts.Of(in.Kind)
	one.Class = cmp.Or(one.Class, f.Texts.Of(in.Class))
	one.Service = cmp.Or(one.Service, f.Texts.Of(in.Service))
	one.TraceID = cmp.Or(one.TraceID, in.TraceID)
	if in.LastSeen != nil {
		seen(&one.Failure, kept.Earlier(*in.LastSeen, now))
	}
	if in.Command != "" && len(in.Command) <= maxCommand {
		// They may share the memory of a whole report.
		one.Command, one.Replays, one.Why = strings.Clone(in.Command), in.Replays, strings.Clone(kept.Cut(in.Why, kept.MaxMessage))
		one.Requires, one.Fill = kept.Clones(in.Requires, maxWords, kept.MaxMessage), kept.Clones(in.Fill, maxWords, kept.MaxMessage)
	}
	// Spans count each failure, records only those that were written.
	if one.Variants++; one.Count < int64(one.Variants) {
		one.Count = int64(one.Variants)
		one.came.add(now)
	}
}

const (
	// maxCommand limits the command of a record, in bytes. A longer one would be cut.
	maxCommand = 1000
	// maxWords limits what a command needs.
	maxWords = 64
)

// group returns the group with a key, which it adds for an origin.
func (f *Groups) group(key string, from share.Origin, now time.Time) *group {
	key = kept.Cut(key, kept.MaxLabel)
	if one := f.all[key]; one != nil {
		return one
	}
	if len(f.all) >= MaxFailures {
		f.forget(now)
	}
	one := &group{Failure: api.Failure{Key: strings.Clone(key)}, origin: from}
	f.all[one.Key] = one
	return one
}

// forget makes room for a group: of senders and services with more than their share,
// first those of runs that came only once, and then the one that occurred longest ago.
func (f *Groups) forget(now time.Time) {
	may := func(one *group) bool { return f.all[one.Key] == one }
	next, ok := f.leaving.Next(now, may, func() []*group {
		all := slices.SortedFunc(maps.Values(f.all), func(a, b *group) int {
			return cmp.Or(api.TrueFirst(a.again, b.again), api.Value(b.LastSeen).Compare(api.Value(a.LastSeen)), cmp.Compare(a.Key, b.Key))
		})
		return kept.First(f.Limits, all, func(one *group) (share.Origin, int) { return one.origin, 1 })
	})
	if ok {
		f.Limits.Refuse("failures", next.Key, now)
		delete(f.all, next.Key)
	}
}

// Set replaces the groups that repro_gen's directory has.
func (f *Groups) Set(found []api.Failure, now time.Time) {
	clear(f.found)
	for _, one := range found[:min(len(found), 2*MaxFailures)] {
		// Anybody who can write to the directory has written the times.
		last := kept.Earlier(api.Value(one.LastSeen), now)
		if last.Before(now.AddDate(-10, 0, 0)) {
			one.FirstSeen, one.LastSeen = nil, nil
		} else if one.LastSeen = api.TimeOf(last); one.FirstSeen != nil {
			one.FirstSeen = api.TimeOf(kept.Plausible(*one.FirstSeen, last))
		}
		one.Message = f.Texts.Message(one.Message)
		f.found[one.Key] = one
	}
}

// merged returns a group with what the directory says of it.
func (f *Groups) merged(key string) api.Failure {
	one, known := f.all[key]
	found, isFound := f.found[key]
	switch {
	case !isFound:
		return one.Failure
	case !known:
		return found
	}
	found.Class, found.Message = cmp.Or(found.Class, one.Class), cmp.Or(found.Message, one.Message)
	found.Service, found.Operation = cmp.Or(found.Service, one.Service), cmp.Or(found.Operation, one.Operation)
	found.Run, found.RunID = cmp.Or(one.Run, found.Run), cmp.Or(one.RunID, found.RunID)
	found.Version, found.TraceID = cmp.Or(one.Version, found.Version), cmp.Or(one.TraceID, found.TraceID)
	found.Count = max(found.Count, one.Count)
	found.FirstSeen, found.LastSeen = api.Earlier(found.FirstSeen, one.FirstSeen), api.Later(found.LastSeen, one.LastSeen)
	return found
}

// writtenWithin is how soon after a failure its reproduction is there: repro_gen
// waits for the other spans of the trace, and the directory is read at intervals.
const writtenWithin = time.Minute

// whyNone says why a group has no command, "" if that is not known.
func (f *Groups) whyNone(one *group, now time.Time) string {
	switch {
	case one == nil:
		return ""
	case f.Fleet && !f.Reproductions:
		return "not sent; set emit_log of repro_gen where the failure occurred"
	case f.Withheld:
		return "not shown, because everybody can read this page; give it auth, or set insecure_reproductions of ml_view"
	case !f.Reproductions:
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

// Rows returns the failures of a run, or all of them if run is empty, those that occurred
// last first. keyOfRun returns the key of the run of a service with an id, "" if there is
// none; simulated has the services whose data is simulated.
func (f *Groups) Rows(run string, keyOfRun func(id, service string) string, simulated map[string]bool, now time.Time) []api.Failure {
	rows := make([]api.Failure, 0, len(f.all)+len(f.found))
	keys := slices.Sorted(maps.Keys(f.all))
	keys = append(keys, mlattr.Where(maps.Keys(f.found), func(key string) bool { return f.all[key] == nil })...)
	for _, key := range keys {
		row := f.merged(key)
		if row.Command == "" {
			row.Why = f.whyNone(f.all[key], now)
		}
		if row.Run == "" && row.RunID != "" {
			row.Run = keyOfRun(row.RunID, row.Service)
		}
		row.TraceURL, row.Simulated = api.TraceURL(f.JaegerURL, row.TraceID), simulated[row.Service]
		if run == "" || row.Run == run {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b api.Failure) int {
		return cmp.Or(api.Value(b.LastSeen).Compare(api.Value(a.LastSeen)), cmp.Compare(a.Key, b.Key))
	})
	return rows
}

// Since returns how many failures of a row came since a time. Of a group that only
// the directory has, the first and the last time are known.
func (f *Groups) Since(row *api.Failure, at time.Time) int64 {
	switch one := f.all[row.Key]; {
	case one != nil && one.came.n > 0:
		return one.came.since(at)
	case api.Value(row.LastSeen).Before(at):
		return 0
	case row.FirstSeen == nil || row.FirstSeen.Before(at):
		return 1
	default:
		return row.Count
	}
}

// Marks returns the last failure of each group of a run.
func (f *Groups) Marks(run string) (rows []api.Mark) {
	for _, one := range f.all {
		if one.Run == run && one.LastSeen != nil {
			rows = append(rows, api.Mark{Time: *one.LastSeen, Kind: "failure", Text: strings.TrimSpace(one.Class + " " + one.Operation)})
		}
	}
	return rows
}

// Prune removes the groups that occurred long ago.
func (f *Groups) Prune(now time.Time) {
	maps.DeleteFunc(f.all, func(_ string, one *group) bool { return now.Sub(api.Value(one.LastSeen)) > kept.Week })
}

// Saved returns the groups without what the directory says of them.
func (f *Groups) Saved() (all []api.Failure) {
	for _, group := range f.all {
		one := group.Failure
		one.Command, one.Requires, one.Fill, one.Why = "", nil, nil, ""
		all = append(all, one)
	}
	return all
}

// Restore adds the groups that saved has returned, as far as they are recent.
func (f *Groups) Restore(all []api.Failure, recent func(time.Time) bool) {
	for i := range all {
		if in := &all[i]; recent(api.Value(in.LastSeen)) && len(f.all) < MaxFailures && f.all[in.Key] == nil {
			f.all[in.Key] = &group{Failure: f.imported(in), origin: share.OriginOf(0, in.Service), again: true}
		}
	}
}

// imported returns what Export writes of a failure, as it is held now. Its commands
// and reports are those of the directory only.
func (f *Groups) imported(in *api.Failure) api.Failure {
	text := f.Texts.Of
	out := api.Failure{
		Key: text(in.Key), Kind: text(in.Kind), Class: text(in.Class), Message: f.Texts.Message(in.Message), Service: text(in.Service),
		Run: text(in.Run), RunID: text(in.RunID), Version: text(in.Version), Operation: text(in.Operation),
		Count: max(0, in.Count), Variants: max(0, in.Variants),
	}
	// An address has it.
	if id, err := hex.DecodeString(in.TraceID); err == nil && len(id) == 16 {
		out.TraceID = api.HexID(id)
	}
	seen(&out, *in.LastSeen)
	if in.FirstSeen != nil {
		seen(&out, kept.Plausible(*in.FirstSeen, *in.LastSeen))
	}
	return out
}

// MaxFailures limits the groups.
const MaxFailures = 500

// maxOccurrences limits the times that are held.
const maxOccurrences = 64

// occurrences count what came, and say how many came since a time. Times are held
// the more densely the newer they are.
type occurrences struct {
	n    int64
	held []occurrence
}

// occurrence is when the n-th one came.
type occurrence struct {
	at time.Time
	n  int64
}

// add counts one that came now.
func (o *occurrences) add(now time.Time) {
	if len(o.held) == maxOccurrences {
		older := o.held[:maxOccurrences/2]
		for i := range maxOccurrences / 4 {
			older[i] = older[2*i+1]
		}
		o.held = append(older[:maxOccurrences/4], o.held[maxOccurrences/2:]...)
	}
	o.n++
	o.held = append(o.held, occurrence{now, o.n})
}

// since returns how many came at a time or later. It is exact for the newest, and
// otherwise too large by a fraction at most.
func (o *occurrences) since(at time.Time) int64 {
	before := int64(0)
	for _, one := range o.held {
		if !one.at.Before(at) {
			break
		}
		before = one.n
	}
	return o.n - before
}
