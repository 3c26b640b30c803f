package mlenrichprocessor

import "slices"

// node is a span in terms of its keys, which are symbols. It refers to
// nothing outside its resolution.
type node struct {
	trace      [16]byte
	id, parent [8]byte

	// own are the keys that the span itself states. What an ml_enrich before
	// this one let it inherit is not among them.
	own symbolSet
	// keys are the keys that the span inherits, and from says where each
	// came from.
	keys symbolSet
	from origins
	// present marks the keys whose attribute the span has, own or not.
	present [keyCount]bool

	// resourceInferred is true where nobody sent resourceRun.
	resourceInferred bool
	// resourceRun is the run of the span's resource. The span itself needs
	// none then, unless somebody names another one for it: see admits. Others
	// may learn of it.
	resourceRun symbol
	// phase is the span's own phase.
	phase symbol
	// inheritedPhase is the phase of the nearest ancestor that has one, for
	// a span without.
	inheritedPhase symbol
	// conflict is the key about which span and ancestor disagree, plus one,
	// or zero.
	conflict uint8

	// down is what descendants inherit, by its place in resolution.sets.
	down int32
	// traceAt is the span's trace by its place in resolution.traces, or
	// nowhere.
	traceAt int32
	// before is the node of the same trace that came before, or nowhere.
	before int32
	// above is the parent by its place in the batch, or nowhere.
	above int32
	// earlier is the parent by its place in resolution.earlier, for one that
	// is not in the batch, or nowhere.
	earlier int32
	state   uint8

	// service is that of the span's resource, as store.hashOf has it.
	service uint64
	// uses is true where the span says that tokens were used, and covered
	// where a span of the same service below it does.
	uses, covered bool
	// server is true where the span is the answer to another, and client
	// where it is above the first such span that used tokens too.
	server, client bool
	// asked is true where findClients has passed.
	asked bool
	// answer is the id of the answer that the span reports the tokens of, and
	// repeated is true where another span did so first.
	answer   symbol
	repeated bool
}

// nowhere is the place of nothing.
const nowhere int32 = -1

const (
	unresolved uint8 = iota
	resolving
	resolved
)

// needs says whether nobody has stated a key for the node, itself or by its
// resource.
func (n *node) needs(key int) bool {
	return n.own[key] == 0 && (key != keyRun || n.resourceRun == 0 || n.resourceInferred)
}

// admits says whether the node can inherit a key of some keys. A run that was
// inferred for its resource gives way to one that somebody named, and to none
// that was inferred for others.
func (n *node) admits(key int, from *symbolSet) bool {
	return from[key] != 0 && n.needs(key) && (key != keyRun || from[keyInferred] == 0 || n.resourceRun == 0)
}

// admitsAbove does the same for what an ancestor hands down. What it states is
// about this work, and comes before what the resource says about all of it: a
// service in one Slurm job works for many runs, and a run has runs within.
func (n *node) admitsAbove(key int, above *symbolSet) bool {
	if key == keyRun && above[key] != 0 && above[keyInferred] == 0 {
		return n.own[key] == 0
	}
	return n.admits(key, above)
}

// spanKey identifies a span.
type spanKey struct {
	trace [16]byte
	span  [8]byte
}

// joinKey is an id by which spans of different traces find each other, as
// store.hashOf has it.
type joinKey struct {
	key int
	id  uint64
}

// index is what a resolution needs of earlier batches. Each call takes its
// lock once. What it hands out may be read afterwards and does not change.
type index interface {
	// join takes what the spans of each id say in, and replaces it by what
	// all spans of that id ever said.
	join(groups []joinGroup, texts *symbols)
	// joinTraces does the same by trace, and says of what else it knows
	// something.
	joinTraces(traces []traceState, texts *symbols)
	// ancestors finds what earlier spans hand down.
	ancestors(wanted []ancestor)
	// linked finds what is known of the linked spans that are not in the batch.
	linked(links []link, texts *symbols)
	// remember keeps what the spans of each trace hand down.
	remember(traces []traceState, spans []handedDown)
	// watched marks the spans that are above an earlier one that used tokens
	// and adds them to the users, and those above an earlier server to asked.
	watched(r *resolution)
	// watch remembers spans for watched.
	watch(spans []covering)
	// claim marks the claims of answers that another span claimed first. They
	// are sorted by answer and service.
	claim(claims []claim, nodes []node, texts *symbols)
}

// traceState is a trace within one batch.
type traceState struct {
	id [16]byte
	symbolAgreement
	// agreed are the values that any span of the trace may inherit.
	agreed symbolSet
	// last is the newest node of the trace, and spans how many it has.
	last, spans int32
	// keyed is true where a span of the batch has or was given a key.
	keyed bool
	// phased and unphased say whether spans with and without a phase occur.
	phased, unphased bool
	// used is true where tokens were used below a span of the batch, and linked
	// where one of them has links.
	used, linked bool
	// handsDown is true where earlier spans hand something down, and watched
	// where earlier ones used tokens.
	handsDown, watched bool
	// firstHanded and endHanded are the places in resolution.handed of what
	// the trace's spans hand down.
	firstHanded, endHanded int32
	// active says whether anything can be inherited in the trace, or has to
	// be told to ancestors. Most traces of a training loop are not: all
	// their spans have a phase, and no key.
	active bool
}

// joinGroup is the spans of a batch that state the same id.
type joinGroup struct {
	key int
	id  symbol
	symbolAgreement
	agreed symbolSet
}

// shares says whether the spans state more than the id itself.
func (g *joinGroup) shares() bool {
	for k, value := range g.values {
		if value != 0 && k != g.key {
			return true
		}
	}
	return false
}

// ancestor is a span that is a parent of one in the batch and is not in it.
type ancestor struct {
	span  spanKey
	found *keySet
	down  int32
}

// resolution is the working memory of resolving a batch.
type resolution struct {
	nodes   []node
	texts   symbols
	traces  []traceState
	groups  []joinGroup
	earlier []ancestor
	handed  []handedDown
	chain   []int32
	// users are the spans from which coverUsage goes up, and covering what it
	// and findClients find beyond the batch.
	users    []int32
	covering []covering
	// asked are the spans above servers of earlier batches.
	asked  []asking
	claims []claim

	linkers []linker
	links   []link

	// sets are the distinct sets of keys that are handed down; the first is
	// the empty one. kept are those that the store has, by the same place, and
	// keySets has those of them that the store is given.
	sets    []symbolSet
	kept    []*keySet
	keySets []keySet

	traceAt map[[16]byte]int32
	// groupAt has for each of joins the place in groups, plus one, of each
	// symbol.
	groupAt [len(joins)][]int32
	// spanAt finds spans of traces too large to be searched.
	spanAt map[spanKey]int32
}

// reset forgets the batch and keeps the memory.
func (r *resolution) reset() {
	r.texts.reset()
	clear(r.earlier)
	clear(r.handed)
	clear(r.kept)
	clear(r.keySets)
	clear(r.traceAt)
	clear(r.spanAt)
	r.nodes, r.traces, r.groups = r.nodes[:0], r.traces[:0], r.groups[:0]
	r.users, r.covering = r.users[:0], r.covering[:0]
	r.asked, r.claims = r.asked[:0], r.claims[:0]
	r.linkers, r.links = r.linkers[:0], r.links[:0]
	r.earlier, r.handed, r.sets, r.kept = r.earlier[:0], r.handed[:0], r.sets[:0], r.kept[:0]
	r.keySets = r.keySets[:0]
}

// huge is how many spans a batch may have for its memory to be kept.
const huge = 1 << 15

// resolve gives every node the keys that it inherits: own before parent
// before trace before link. The order of the nodes does not matter.
func (r *resolution) resolve(ix index) {
	r.join(ix)
	r.gather()
	if len(r.traces) == 0 {
		return
	}
	ix.joinTraces(r.traces, &r.texts)
	r.findUsage(ix)
	r.noteLinks()
	active := false
	for i := range r.traces {
		t := &r.traces[i]
		t.active = t.keyed || t.used || t.linked || t.handsDown || t.values != (symbolSet{}) || t.phased && t.unphased
		t.agreed = t.symbolAgreement.agreed()
		active = active || t.active
	}
	if !active {
		return
	}
	r.inheritDown(ix)
	r.followLinks(ix)
	r.coverUsage(ix)
	r.countAnswers(ix)
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.traceAt == nowhere || !r.traces[n.traceAt].active {
			continue
		}
		n.take(&r.traces[n.traceAt].agreed, fromTrace)
	}
	if r.handDown(); len(r.handed) > 0 {
		ix.remember(r.traces, r.handed)
	}
}

// handDown lists by trace what the spans hand down, in the order of the batch.
func (r *resolution) handDown() {
	for i := range r.traces {
		t := &r.traces[i]
		t.firstHanded = int32(len(r.handed))
		if t.active {
			for at := t.last; at != nowhere; at = r.nodes[at].before {
				if n := &r.nodes[at]; n.down != 0 {
					r.handed = append(r.handed, handedDown{n.id, r.keep(n.down)})
				}
			}
		}
		t.endHanded = int32(len(r.handed))
		slices.Reverse(r.handed[t.firstHanded:])
	}
}

// take lets the node have the keys that it still needs.
func (n *node) take(keys *symbolSet, from origin) {
	for k := range keyInferred {
		if n.keys[k] == 0 && n.admits(k, keys) {
			n.inheritKey(k, keys, from)
		}
	}
}

// inheritKey lets the node have one of the keys. That a run was inferred comes
// with it.
func (n *node) inheritKey(key int, keys *symbolSet, from origin) {
	n.keys[key], n.from[key] = keys[key], from
	if key == keyRun {
		n.keys[keyInferred] = keys[keyInferred]
	}
}

// keep returns a set in the store's terms. Those who hand the same down share
// it.
func (r *resolution) keep(set int32) *keySet {
	if r.kept[set] == nil {
		var keys keySet
		for k, value := range r.sets[set] {
			keys[k] = r.texts.text(value)
		}
		r.keySets = append(r.keySets, keys)
		r.kept[set] = &r.keySets[len(r.keySets)-1]
	}
	return r.kept[set]
}

// joins are the ids that tie traces together, and what comes with each. A
// request shares everything: Snakepit's Python side has nothing else in
// common with its callers. A training run or sampling session is of one
// session; a fine-tuning service names both on some of its spans only. A
// session is of one run, but for the training runs of such a service.
var joins = [...]struct {
	key    int
	from   origin
	shares sharing
}{
	{keyRequest, fromRequest, sharesAll},
	{keyTrainingRun, fromTrainingRun, sharesSession},
	{keySamplingSession, fromSamplingSession, sharesSession},
	{keySession, fromSession, sharesRun},
}

// sharing is what comes with an id.
type sharing uint8

const (
	sharesAll sharing = iota
	sharesSession
	sharesRun
)

// join lets spans of different traces that state the same id share keys.
func (r *resolution) join(ix index) {
	if len(r.texts.texts) == 0 {
		return // no span states anything
	}
	for j := range r.groupAt {
		r.groupAt[j] = slices.Grow(r.groupAt[j][:0], len(r.texts.texts))[:len(r.texts.texts)]
		clear(r.groupAt[j])
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		for j, by := range joins {
			id := n.own[by.key]
			if id == 0 || by.shares == sharesRun && !n.needs(keyRun) && n.namedRun() == 0 {
				continue
			}
			if r.groupAt[j][id] == 0 {
				r.groups = append(r.groups, joinGroup{key: by.key, id: id})
				r.groupAt[j][id] = int32(len(r.groups))
			}
			var keys symbolSet
			switch by.shares {
			case sharesAll:
				keys = r.requestKeys(n)
			case sharesSession:
				keys[keySession] = n.own[keySession]
			case sharesRun:
				keys[keyRun] = n.namedRun()
			}
			r.groups[r.groupAt[j][id]-1].observe(&keys)
		}
	}
	if len(r.groups) == 0 {
		return
	}
	ix.join(r.groups, &r.texts)
	for i := range r.groups {
		r.groups[i].agreed = r.groups[i].symbolAgreement.agreed()
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		for j, by := range joins {
			if id := n.own[by.key]; id != 0 && r.groupAt[j][id] != 0 {
				n.take(&r.groups[r.groupAt[j][id]-1].agreed, by.from)
			}
		}
	}
}

// requestKeys are what a span contributes to its request: its own keys, and
// the run of its resource.
func (r *resolution) requestKeys(n *node) symbolSet {
	keys := n.own
	if keys[keyRun] == 0 && n.resourceRun != 0 {
		keys[keyRun] = n.resourceRun
		if n.resourceInferred {
			keys[keyInferred] = r.texts.of(keyInferred, textTrue)
		}
	}
	return keys
}

// namedRun is the run that a span contributes to its session: one that somebody
// named, and that is not one of several that the session trains.
func (n *node) namedRun() symbol {
	switch {
	case n.own[keyTrainingRun] != 0:
		return 0
	case n.own[keyRun] != 0:
		return n.own[keyRun]
	case n.resourceInferred:
		return 0
	default:
		return n.resourceRun
	}
}

// otherRun says whether the ancestor's run, which is not that of the node's
// resource, contradicts one that somebody named. A training run within a run
// does not.
func (n *node) otherRun(above *symbolSet) bool {
	return n.resourceRun != 0 && !n.resourceInferred && above[keyTrainingRun] != above[keyRun]
}

// traceKeys are what the span contributes to its trace: its own keys and
// those that a join gave it. A run that was inferred for a resource says
// nothing about the other services of the trace.
func (n *node) traceKeys() symbolSet {
	keys := n.own
	if keys[keyRun] == 0 && !n.resourceInferred {
		keys[keyRun] = n.resourceRun
	}
	for k := range keys {
		if downOnly(k) {
			keys[k] = 0
		} else if keys[k] == 0 {
			keys[k] = n.keys[k]
		}
	}
	return keys
}

// gather collects the traces of a batch. Spans without a trace id, which only
// broken clients send, have none: they would all be one.
func (r *resolution) gather() {
	if r.traceAt == nil {
		r.traceAt = make(map[[16]byte]int32)
	}
	at := nowhere
	for i := range r.nodes {
		n := &r.nodes[i]
		n.traceAt = nowhere
		if n.trace == ([16]byte{}) {
			continue
		}
		if at == nowhere || n.trace != r.traces[at].id {
			known, ok := r.traceAt[n.trace]
			if !ok {
				known = int32(len(r.traces))
				r.traces = append(r.traces, traceState{id: n.trace, last: nowhere})
				r.traceAt[n.trace] = known
			}
			at = known
		}
		t := &r.traces[at]
		n.traceAt, n.before = at, t.last
		t.last = int32(i)
		t.spans++
		t.phased = t.phased || n.phase != 0
		t.unphased = t.unphased || n.phase == 0
		if keyed := n.own != (symbolSet{}) || n.keys != (symbolSet{}); keyed || n.resourceRun != 0 && !n.resourceInferred {
			keys := n.traceKeys()
			t.observe(&keys)
			t.keyed = t.keyed || keyed
		}
	}
}

// searchable is how many spans of a trace are searched one by one.
const searchable = 16

// inheritDown lets the keys and phases of ancestors come down to the spans of
// active traces, from the batch or from earlier ones.
func (r *resolution) inheritDown(ix index) {
	r.sets, r.kept = append(r.sets, symbolSet{}), append(r.kept, nil)
	r.findParents()
	if len(r.earlier) > 0 {
		ix.ancestors(r.earlier)
		for i := range r.earlier {
			r.earlier[i].down = r.setOf(r.earlier[i].found)
		}
	}
	r.inheritAll()
}

// inheritAll lets the nodes that are not resolved inherit from their parents.
func (r *resolution) inheritAll() {
	for i := range r.nodes {
		// Up to the first ancestor that is done, then down again. The state
		// resolving ends a cycle, which only bad data has.
		r.chain = r.chain[:0]
		for at := int32(i); at != nowhere && r.nodes[at].state == unresolved; at = r.nodes[at].above {
			r.nodes[at].state = resolving
			r.chain = append(r.chain, at)
		}
		for _, at := range slices.Backward(r.chain) {
			n := &r.nodes[at]
			var set int32
			var phase symbol
			switch {
			case n.earlier != nowhere:
				set = r.earlier[n.earlier].down
			case n.above != nowhere && r.nodes[n.above].state == resolved:
				parent := &r.nodes[n.above]
				set = parent.down
				if phase = parent.phase; phase == 0 {
					phase = parent.inheritedPhase
				}
			}
			r.inherit(n, set, phase)
			n.state = resolved
		}
	}
}

// findParents finds the parents of the spans of active traces, and lists
// those that are not in the batch.
func (r *resolution) findParents() {
	if r.spanAt == nil {
		r.spanAt = make(map[spanKey]int32)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		n.above, n.earlier = nowhere, nowhere
		if n.traceAt == nowhere || !r.traces[n.traceAt].active {
			n.state = resolved
		} else if r.traces[n.traceAt].spans > searchable {
			r.spanAt[spanKey{n.trace, n.id}] = int32(i)
		}
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.state == resolved || n.parent == ([8]byte{}) {
			continue
		}
		if n.above = r.findSpan(&r.traces[n.traceAt], spanKey{n.trace, n.parent}); n.above != nowhere {
			continue
		}
		if !r.traces[n.traceAt].handsDown {
			continue
		}
		parent := spanKey{n.trace, n.parent}
		if last := len(r.earlier) - 1; last < 0 || r.earlier[last].span != parent {
			r.earlier = append(r.earlier, ancestor{span: parent})
		}
		n.earlier = int32(len(r.earlier) - 1)
	}
}

// findSpan finds a span of an active trace in the batch. Of several with the
// same id it is the last.
func (r *resolution) findSpan(t *traceState, span spanKey) int32 {
	if t.spans > searchable {
		if at, ok := r.spanAt[span]; ok {
			return at
		}
		return nowhere
	}
	at := t.last
	for at != nowhere && r.nodes[at].id != span.span {
		at = r.nodes[at].before
	}
	return at
}

// setOf returns the place of a set that the store had, and that of the empty
// one for nil.
func (r *resolution) setOf(found *keySet) int32 {
	if found == nil {
		return 0
	}
	var set symbolSet
	for k, value := range found {
		set[k] = r.texts.of(k, value)
	}
	at := r.addSet(&set)
	r.kept[at] = found
	return at
}

// addSet returns the place of a set of keys, which the one before often is.
func (r *resolution) addSet(set *symbolSet) int32 {
	if *set == (symbolSet{}) {
		return 0
	}
	if last := len(r.sets) - 1; r.sets[last] == *set {
		return int32(last)
	}
	r.sets, r.kept = append(r.sets, *set), append(r.kept, nil)
	return int32(len(r.sets) - 1)
}

// inherit computes what a node has and hands down from what its parent hands
// down, which is the empty set where that is unknown.
func (r *resolution) inherit(n *node, set int32, phase symbol) {
	if n.phase == 0 {
		n.inheritedPhase = phase
	}
	above := r.sets[set]
	var down symbolSet
	for k := range down {
		switch parent := above[k]; {
		case n.own[k] != 0:
			down[k] = n.own[k]
			if parent != 0 && parent != n.own[k] && exclusive(k) && n.conflict == 0 {
				n.conflict = uint8(k + 1)
			}
		case k != keyInferred && n.admitsAbove(k, &above):
			down[k] = parent
			if k == keyRun && parent == n.resourceRun {
				continue // the resource says so already
			}
			n.inheritKey(k, &above, fromParent)
			if k == keyRun && n.conflict == 0 && n.otherRun(&above) {
				n.conflict = keyRun + 1
			}
		default:
			// A run that was inferred for those above stays above where the
			// resource has one.
			down[k] = n.keys[k]
		}
	}
	if down == above {
		n.down = set
		return
	}
	n.down = r.addSet(&down)
}
