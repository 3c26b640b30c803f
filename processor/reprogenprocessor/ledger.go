package reprogenprocessor

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// maxSeen is the number of hashes by which failures are remembered. The least
// recently seen makes room. A failure is remembered in up to four ways.
const maxSeen = 40_000

// occurrence is what the ledger needs to know about a failure.
type occurrence struct {
	fingerprint   string
	service       string
	origin        fairness.Origin
	version, rank string
	span, parent  spanKey
	// correlation is an id that the spans of one call have in common, or "".
	correlation string
	errorType   string
	message     string
	hasCall     bool
	request     bool // it is an HTTP request or the call of a model
	variant     failure.Variant
	// incident is the id that an artefact of it would have.
	incident uint64
	// counted asks for no artefact: another rank of the job has one.
	counted bool
	// consequence says that a span below it had failed before.
	consequence bool
	// anew says that it is wanted though it was seen before, because it can be
	// replayed and what was seen could not.
	anew bool
}

// verdict is what the ledger says about an occurrence.
type verdict int

const (
	// verdictRepeated means that another span of the trace told of it.
	verdictRepeated verdict = iota
	// verdictPassed means that it is the consequence of a failure further
	// down in the trace.
	verdictPassed
	// verdictCounted means that its group has all its exemplars, or one of
	// the same variant.
	verdictCounted
	// verdictLimited means that the rate limit is used up.
	verdictLimited
	// verdictWanted means that an artefact should be written.
	verdictWanted
)

// ruling is what the ledger decides about an occurrence.
type ruling struct {
	verdict verdict
	// fingerprint is the group that the occurrence belongs to: where another
	// span of the trace told of it, that span's group.
	fingerprint string
	// folder says that the group has an artefact, or that one is on its way.
	folder bool
	// incident is the id of the one that told of it first.
	incident uint64
	// better says that the occurrence can be replayed, and what was seen first
	// could not.
	better bool
	// variant is the occurrence's.
	variant failure.Variant
}

// ledger counts failures by group and decides which of them get an artefact.
// It is safe for concurrent use; its lock is held for a few map operations.
type ledger struct {
	mu        sync.Mutex
	groups    *simplelru.LRU[string, *entry]
	seen      *simplelru.LRU[uint64, told]
	budget    *fairness.Budget
	hash      maphash.Seed
	standings *fairness.Standings
	maxGroups int
	redact    func(string) string
	dirty     map[string]*entry // groups with a folder, to be written
	// counted says that what is on disk of groups without a folder is old.
	counted bool
}

// entry is a group in memory.
type entry struct {
	store.Group
	// origin is who sent it last, but one that is established stays.
	origin fairness.Origin
	// pending has the variants of the failures that are on their way to the
	// disk.
	pending []string
	// merged says that what the directory knew is in the counts.
	merged bool
	// clean has the lists of the summary without secrets, as far as they have
	// been looked at. What comes first in a list stays.
	clean lists
}

// lists are the texts of a group that come from telemetry.
type lists struct{ services, versions, ranks, variants []string }

// told is what was made of a failure when a span first told of it. The zero
// value stands for a span below which one failed.
type told struct {
	fingerprint string
	incident    uint64
	hasCall     bool
	// request says of what failed below a span that it was its HTTP request, or
	// the call of a model, and nothing else.
	request bool
}

func newLedger(limit RateLimitConfig, maxGroups int, standings *fairness.Standings) (*ledger, error) {
	l := &ledger{
		hash: maphash.MakeSeed(), redact: redact.Text, dirty: make(map[string]*entry),
		budget: fairness.NewBudget(limit.Burst, limit.PerMinute), standings: standings, maxGroups: maxGroups,
	}
	var err error
	if l.groups, err = simplelru.NewLRU[string, *entry](maxGroups, nil); err != nil {
		return nil, err
	}
	l.seen, err = simplelru.NewLRU[uint64, told](maxSeen, nil)
	return l, err
}

// load takes over what the directory knew at start.
func (l *ledger) load(groups []store.Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range groups {
		l.groups.Add(g.Fingerprint, &entry{Group: g, origin: g.Origin(), merged: true})
	}
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.groups.Len()
}

// ways returns under which hashes an occurrence is remembered: what a trace
// tells of, where, and what a call tells of that has spans in several traces.
func (l *ledger) ways(o occurrence) []uint64 {
	ways := make([]uint64, 0, 3)
	if !o.span.trace.IsEmpty() {
		ways = append(ways, maphash.Comparable(l.hash, struct {
			trace           pcommon.TraceID
			errorType, what string
		}{o.span.trace, o.errorType, o.message}))
		if !o.span.span.IsEmpty() {
			ways = append(ways, maphash.Comparable(l.hash, o.span))
		}
	}
	if o.correlation != "" {
		ways = append(ways, maphash.Comparable(l.hash, [3]string{o.correlation, o.errorType, o.message}))
	}
	return ways
}

// below is the hash under which it is remembered that a span has a failed
// child.
func (l *ledger) below(parent spanKey) uint64 {
	return maphash.Comparable(l.hash, struct {
		below bool
		spanKey
	}{true, parent})
}

// isConsequence reports whether a span is known to have a failed child, and
// whether only HTTP requests and calls of models are.
func (l *ledger) isConsequence(span, parent spanKey) (failed, ofRequest bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	below, ok := l.seen.Peek(l.below(span))
	return ok && span != parent, below.request
}

// failedBelow notes that a span has a failed child.
func (l *ledger) failedBelow(parent spanKey, request bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteParent(parent, request)
}

func (l *ledger) noteParent(parent spanKey, request bool) {
	if parent.span.IsEmpty() || parent.trace.IsEmpty() {
		return
	}
	before, ok := l.seen.Peek(l.below(parent))
	l.seen.Add(l.below(parent), told{request: request && (!ok || before.request)})
}

// admit counts an occurrence and decides what becomes of it.
func (l *ledger) admit(o occurrence, now time.Time) ruling {
	ways := l.ways(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.parent != o.span {
		l.noteParent(o.parent, o.request)
	}
	if !o.anew {
		// One trace tells of an error once, but a span that can be replayed is
		// better than the one that came first and cannot.
		for _, way := range ways {
			if first, ok := l.seen.Get(way); ok {
				g, known := l.groups.Peek(first.fingerprint)
				return ruling{
					verdict: verdictRepeated, fingerprint: first.fingerprint, folder: known && g.hasFolder(),
					incident: first.incident, better: o.hasCall && !first.hasCall, variant: o.variant,
				}
			}
		}
		if o.consequence {
			return ruling{verdict: verdictPassed}
		}
	}
	for _, way := range ways {
		l.seen.Add(way, told{fingerprint: o.fingerprint, incident: o.incident, hasCall: o.hasCall})
	}
	claim := l.standings.Claim(o.origin)
	g := l.group(o.fingerprint, now)
	g.sentBy(o.origin, claim.Path)
	g.Count++
	g.LastSeen = now
	g.AddService(o.service)
	g.AddVersion(o.version)
	g.AddRank(o.rank)
	variant := g.Variant(o.variant.ID, o.variant.Text)
	if variant != nil {
		variant.Count++
	}
	l.changed(g)
	d := ruling{verdict: verdictCounted, fingerprint: o.fingerprint, folder: g.hasFolder(), incident: o.incident, variant: o.variant}
	if o.counted || variant == nil || variant.Exemplar != "" ||
		len(g.Exemplars)+len(g.pending) >= store.MaxExemplars || slices.Contains(g.pending, o.variant.ID) {
		return d
	}
	if !l.budget.Take(claim, !d.folder, now) {
		g.Suppressed++
		d.verdict = verdictLimited
		return d
	}
	g.pending = append(g.pending, o.variant.ID)
	d.verdict = verdictWanted
	return d
}

// group returns a group that may be new.
func (l *ledger) group(fingerprint string, now time.Time) *entry {
	g, ok := l.groups.Get(fingerprint)
	if ok {
		return g
	}
	// It may have left the cache with counts that are not on disk yet.
	if g, ok = l.dirty[fingerprint]; !ok {
		g = &entry{Group: store.Group{Fingerprint: fingerprint, FirstSeen: now}}
	}
	l.makeRoom()
	l.groups.Add(fingerprint, g)
	return g
}

// sentBy notes who sent a group's failure. Who uses the names of a service that
// is established does not take its place.
func (e *entry) sentBy(o fairness.Origin, path fairness.Path) {
	established := path == fairness.EstablishedPath(o)
	if established || !e.Established {
		e.origin, e.Established = o, established
	}
}

// path is where the group stands among all. One of a service that was
// established before the collector started stays with those that are.
func (l *ledger) path(e *entry) fairness.Path {
	if e.Established {
		return fairness.EstablishedPath(e.origin)
	}
	return l.standings.Path(e.origin)
}

// makeRoom gives up a sixteenth of the groups where there is no room for another
// one. The caller holds mu.
func (l *ledger) makeRoom() {
	if l.groups.Len() < l.maxGroups {
		return
	}
	groups := l.newestFirst(func(*entry) bool { return true })
	for i, kept := range l.keep(groups, l.maxGroups-max(1, l.maxGroups/16)) {
		if !kept {
			l.groups.Remove(groups[i].Fingerprint)
		}
	}
}

// newestFirst returns groups, the one seen last first.
func (l *ledger) newestFirst(wanted func(*entry) bool) []*entry {
	groups := slices.DeleteFunc(l.groups.Values(), func(g *entry) bool { return !wanted(g) })
	slices.Reverse(groups)
	return groups
}

// keep reports which of the groups may stay where there is room for limit.
func (l *ledger) keep(groups []*entry, limit int) []bool {
	items := make([]fairness.Item, len(groups))
	for i, g := range groups {
		items[i] = fairness.Item{Path: l.path(g), Weight: 1}
	}
	return fairness.Keep(items, int64(limit))
}

// nowHasCall notes that a failure that was seen without a call has one now.
func (l *ledger) nowHasCall(o occurrence) {
	ways := l.ways(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, way := range ways {
		if first, ok := l.seen.Peek(way); ok {
			first.hasCall = true
			l.seen.Add(way, first)
		}
	}
}

// hasFolder reports whether the group has an artefact or will have one, as
// far as the ledger can know: the disk may still refuse it.
func (e *entry) hasFolder() bool { return len(e.Exemplars)+len(e.pending) > 0 }

// changed notes that a group's summary on disk is old. A group stays noted
// when it leaves the cache, so that its counts are not lost; there are at most
// as many as there are folders.
func (l *ledger) changed(g *entry) {
	if len(g.Exemplars) > 0 {
		l.dirty[g.Fingerprint] = g
	} else {
		l.counted = true
	}
}

// settle ends the pending state of a failure. The group may have left the
// cache meanwhile.
func (l *ledger) settle(fingerprint, variant string) *entry {
	g, ok := l.groups.Get(fingerprint)
	if !ok {
		return nil
	}
	if i := slices.Index(g.pending, variant); i >= 0 {
		g.pending = slices.Delete(g.pending, i, i+1)
	}
	return g
}

// gaveUp notes that an admitted failure got no artefact.
func (l *ledger) gaveUp(fingerprint, variant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.settle(fingerprint, variant); g != nil {
		g.Suppressed++
		l.changed(g)
	}
}

// withdrew notes that an admitted failure needs no artefact: it was on disk
// before, or another one has what there is to tell of it.
func (l *ledger) withdrew(fingerprint, variant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(fingerprint, variant)
}

// wrote notes an artefact and returns the group's summary. old is what the
// directory knew; it counts once.
func (l *ledger) wrote(f *failure.Failure, name string, old store.Group) store.Group {
	return l.summaries([]draft{l.noteArtifact(f, name, old)})[0]
}

func (l *ledger) noteArtifact(f *failure.Failure, name string, old store.Group) draft {
	// The names of services and errors come from telemetry, and what is
	// written is redacted.
	message := redact.Text(cut(cmp.Or(f.Error.Message, f.Error.Template), 1024))
	errorType := cmp.Or(redact.Text(f.Error.Type), otherError)
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.settle(f.Fingerprint, f.Variant.ID)
	if g == nil {
		g = &entry{Group: store.Group{Fingerprint: f.Fingerprint, Count: 1, FirstSeen: f.SeenAt, LastSeen: f.SeenAt}}
		g.AddService(f.Service)
		g.AddRank(f.Rank)
		g.sentBy(f.SentBy, l.standings.Path(f.SentBy))
		l.makeRoom()
		l.groups.Add(f.Fingerprint, g)
	}
	if !g.merged {
		g.Merge(old)
		g.merged = true
		g.Exemplars = slices.DeleteFunc(old.Exemplars, func(e string) bool { return e == name })
	}
	g.Kind, g.Type, g.Message = string(f.Kind), errorType, message
	if !slices.Contains(g.Exemplars, name) {
		g.Exemplars = append(g.Exemplars, name)
	}
	if v := g.Variant(f.Variant.ID, f.Variant.Text); v != nil {
		v.Exemplar = name
	}
	if len(g.Exemplars) == 1 {
		l.counted = true // it has a folder now
	}
	delete(l.dirty, f.Fingerprint)
	return draftOf(g)
}

// removed notes that retention took an artefact.
func (l *ledger) removed(fingerprint, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, ok := l.groups.Get(fingerprint)
	if !ok {
		return
	}
	g.Forget(name)
	if len(g.Exemplars) == 0 {
		delete(l.dirty, fingerprint)
		l.counted = true
	} else {
		l.dirty[fingerprint] = g
	}
}

// markDirty asks for a group to be written again.
func (l *ledger) markDirty(fingerprint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.groups.Peek(fingerprint); ok {
		l.changed(g)
	}
}

// takeDirty returns the summaries that must be written.
func (l *ledger) takeDirty() []store.Group {
	l.mu.Lock()
	drafts := make([]draft, 0, len(l.dirty))
	for _, g := range l.dirty {
		drafts = append(drafts, draftOf(g))
	}
	clear(l.dirty)
	l.mu.Unlock()
	return l.summaries(drafts)
}

// takeCounts returns the groups without a folder that there is room for, those
// seen last first, if there is something to be written.
func (l *ledger) takeCounts() ([]store.Group, bool) {
	drafts, changed := l.draftCounts()
	return l.summaries(drafts), changed
}

func (l *ledger) draftCounts() (drafts []draft, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.counted {
		return nil, false
	}
	l.counted = false
	groups := l.newestFirst(func(g *entry) bool { return len(g.Exemplars) == 0 && g.Count > 0 })
	for i, kept := range l.keep(groups, store.MaxCounted) {
		if kept {
			d := draftOf(groups[i])
			d.Path = l.path(groups[i])
			drafts = append(drafts, d)
		}
	}
	return drafts, true
}

// markCounts asks for the groups without a folder to be written again.
func (l *ledger) markCounts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted = true
}

// draft is a copy of a group that is not redacted yet.
type draft struct {
	store.Group
	of    *entry
	clean lists
}

func draftOf(g *entry) draft {
	d := draft{Group: g.Group, of: g, clean: g.clean}
	d.Services, d.Versions, d.Ranks = slices.Clone(g.Services), slices.Clone(g.Versions), slices.Clone(g.Ranks)
	d.Variants, d.Exemplars = slices.Clone(g.Variants), slices.Clone(g.Exemplars)
	return d
}

// summaries redacts drafts. It takes long, so nothing may be locked meanwhile
// that failures wait for; and each text is looked at once.
func (l *ledger) summaries(drafts []draft) []store.Group {
	out := make([]store.Group, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		texts := make([]string, len(d.Variants))
		for j, v := range d.Variants {
			texts[j] = v.Text
		}
		d.clean = lists{
			services: l.redacted(d.clean.services, d.Services), versions: l.redacted(d.clean.versions, d.Versions),
			ranks: l.redacted(d.clean.ranks, d.Ranks), variants: l.redacted(d.clean.variants, texts),
		}
		d.Services, d.Versions, d.Ranks = d.clean.services, d.clean.versions, d.clean.ranks
		for j := range d.Variants {
			d.Variants[j].Text = d.clean.variants[j]
		}
		out[i] = d.Group
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range drafts {
		drafts[i].of.clean = drafts[i].clean
	}
	return out
}

// redacted returns a list without secrets. known is its beginning, redacted.
func (l *ledger) redacted(known, list []string) []string {
	out := append(make([]string, 0, len(list)), known[:min(len(known), len(list))]...)
	for _, s := range list[len(out):] {
		out = append(out, l.redact(s))
	}
	return out
}
