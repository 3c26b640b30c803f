package mlenrichprocessor

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// The keys that spans of a trace share.
const (
	keySession = iota
	keyConversation
	keyRun
	keyTrainingRun
	keySamplingSession
	keyRequest
	keyInferred // "true" where keyRun was inferred
	keyCount
)

// keyNames are the attributes of the keys.
var keyNames = [keyCount]string{
	keySession:         mlattr.SessionID,
	keyConversation:    mlattr.GenAIConversationID,
	keyRun:             mlattr.RunID,
	keyTrainingRun:     mlattr.TrainingRunID,
	keySamplingSession: mlattr.SamplingSessionID,
	keyRequest:         mlattr.RequestID,
	keyInferred:        mlattr.RunInferred,
}

// downOnly says which keys a span gives to its descendants and to nobody
// else: a trace may hold many requests.
func downOnly(key int) bool { return key == keyRequest }

// exclusive says which keys, when two of them meet in a trace, split it: what
// is left is the chain of ancestors, for these and for the keys that depend
// on them. Two sessions in a trace make its one conversation doubtful too.
func exclusive(key int) bool {
	return key == keySession || key == keyRun || key == keyTrainingRun
}

// keySet is a value of each key; empty is none.
type keySet [keyCount]string

func (s *keySet) empty() bool { return *s == keySet{} }

// agreement is what several spans say about the keys: the values, and which
// keys they disagree about.
type agreement struct {
	values   keySet
	disagree [keyCount]bool
}

// observe takes one span's keys in. Strings are cloned when they are kept,
// because an agreement outlives the batch that they came with.
func (a *agreement) observe(keys *keySet) {
	for k, value := range keys {
		switch {
		case value == "" || a.values[k] == value:
		case a.values[k] == "":
			a.values[k] = strings.Clone(value)
		default:
			a.disagree[k] = true
		}
	}
}

// merge takes another agreement in.
func (a *agreement) merge(other *agreement) {
	a.observe(&other.values)
	for k, differs := range other.disagree {
		a.disagree[k] = a.disagree[k] || differs
	}
}

// split says whether two sessions or runs meet.
func (a *agreement) split() bool {
	for k, differs := range a.disagree {
		if differs && exclusive(k) {
			return true
		}
	}
	return false
}

// agreed is the value that everybody may inherit, or "".
func (a *agreement) agreed(key int) string {
	if a.disagree[key] || a.split() {
		return ""
	}
	return a.values[key]
}

func (a *agreement) empty() bool { return a.values.empty() }

// node is a span in terms of its keys.
type node struct {
	trace      [16]byte
	id, parent [8]byte

	// own are the keys that the span itself states. What an ml_enrich before
	// this one let it inherit is not among them.
	own keySet
	// present marks the keys whose attribute the span has, own or not.
	present [keyCount]bool
	// resourceRun is the run of the span's resource. The span itself needs
	// none then, but others may learn of it.
	resourceRun string
	// resourceInferred is true where nobody sent resourceRun.
	resourceInferred bool
	// phase is the span's own phase.
	phase string

	// keys are the keys that the span inherits, and from says where each
	// came from.
	keys keySet
	from origins
	// down is what descendants inherit.
	down keySet
	// inheritedPhase is the phase of the nearest ancestor that has one, for
	// a span without.
	inheritedPhase string
	// conflict is the key about which span and ancestor disagree, or "".
	conflict string

	parentNode int // index in the batch, or -1
	state      uint8
}

const (
	unresolved uint8 = iota
	resolving
	resolved
)

// needs says whether the node can inherit a key.
func (n *node) needs(key int) bool {
	return n.own[key] == "" && (key != keyRun && key != keyInferred || n.resourceRun == "")
}

// requestKeys are what the span contributes to its request: its own keys, and
// the run of its resource.
func (n *node) requestKeys() keySet {
	keys := n.own
	if keys[keyRun] == "" && n.resourceRun != "" {
		keys[keyRun] = n.resourceRun
		if n.resourceInferred {
			keys[keyInferred] = "true"
		}
	}
	return keys
}

// traceKeys are what the span contributes to its trace: its own keys and
// those that a join gave it. A run that was inferred for a resource says
// nothing about the other services of the trace.
func (n *node) traceKeys() keySet {
	keys := n.own
	if keys[keyRun] == "" && !n.resourceInferred {
		keys[keyRun] = n.resourceRun
	}
	for k := range keys {
		if downOnly(k) {
			keys[k] = ""
		} else if keys[k] == "" {
			keys[k] = n.keys[k]
		}
	}
	return keys
}

// spanKey identifies a span.
type spanKey struct {
	trace [16]byte
	span  [8]byte
}

// index is what a resolution needs of earlier batches. Each call takes its
// lock once and returns copies.
type index interface {
	// join takes the keys of spans that state an id in, and returns what all
	// spans of each id agree about.
	join(agreements map[joinKey]*agreement)
	// joinTraces does the same by trace.
	joinTraces(traces map[[16]byte]*traceState)
	// ancestors fills in what earlier spans hand down, for the spans in
	// wanted.
	ancestors(wanted map[spanKey]*keySet)
	// remember keeps what spans hand down.
	remember(spans map[spanKey]keySet)
}

// traceState is a trace within one batch.
type traceState struct {
	agreement
	// keyed is true where a span of the batch has or was given a key.
	keyed bool
	// phased and unphased say whether spans with and without a phase occur.
	phased, unphased bool
}

// active says whether anything can be inherited in the trace. Most traces of
// a training loop are not: all their spans have a phase, and no key.
func (t *traceState) active() bool {
	return t.keyed || !t.empty() || t.phased && t.unphased
}

// resolve gives every node the keys that it inherits: own before parent
// before trace. The order of the nodes does not matter.
func resolve(nodes []node, ix index) {
	join(nodes, ix)
	traces := gather(nodes)
	if len(traces) == 0 {
		return
	}
	ix.joinTraces(traces)
	if !slices.ContainsFunc(nodes, func(n node) bool { return isActive(traces, n.trace) }) {
		return
	}
	inheritDown(nodes, traces, ix)
	handed := make(map[spanKey]keySet)
	for i := range nodes {
		n := &nodes[i]
		t := traces[n.trace]
		if t == nil || !t.active() {
			continue
		}
		for k := range keyCount {
			if n.needs(k) && n.keys[k] == "" {
				if value := t.agreed(k); value != "" {
					n.keys[k], n.from[k] = value, fromTrace
				}
			}
		}
		if !n.down.empty() {
			handed[spanKey{n.trace, n.id}] = n.down
		}
	}
	if len(handed) > 0 {
		ix.remember(handed)
	}
}

func isActive(traces map[[16]byte]*traceState, trace [16]byte) bool {
	t := traces[trace]
	return t != nil && t.active()
}

// joinKey is an id by which spans of different traces find each other.
type joinKey struct {
	key int
	id  string
}

// joins are the ids that tie traces together, and what comes with each. A
// request shares everything: Snakepit's Python side has nothing else in
// common with its callers. A training run or sampling session is of one
// session; a fine-tuning service names both on some of its spans only.
var joins = [...]struct {
	key  int
	from origin
	all  bool
}{
	{keyRequest, fromRequest, true},
	{keyTrainingRun, fromTrainingRun, false},
	{keySamplingSession, fromSamplingSession, false},
}

// join lets spans of different traces that state the same id share keys.
func join(nodes []node, ix index) {
	var agreements map[joinKey]*agreement
	for i := range nodes {
		n := &nodes[i]
		for _, j := range joins {
			id := joinKey{j.key, n.own[j.key]}
			if id.id == "" {
				continue
			}
			if agreements == nil {
				agreements = make(map[joinKey]*agreement)
			}
			a := agreements[id]
			if a == nil {
				a = new(agreement)
				agreements[id] = a
			}
			keys := keySet{keySession: n.own[keySession]}
			if j.all {
				keys = n.requestKeys()
			}
			a.observe(&keys)
		}
	}
	if agreements == nil {
		return
	}
	ix.join(agreements)
	for i := range nodes {
		n := &nodes[i]
		for _, j := range joins {
			a := agreements[joinKey{j.key, n.own[j.key]}]
			if a == nil {
				continue
			}
			for k := range keyCount {
				if n.needs(k) && n.keys[k] == "" {
					if value := a.agreed(k); value != "" {
						n.keys[k], n.from[k] = value, j.from
					}
				}
			}
		}
	}
}

// gather collects the traces of a batch. Spans without a trace id, which only
// broken clients send, have none: they would all be one.
func gather(nodes []node) map[[16]byte]*traceState {
	traces := make(map[[16]byte]*traceState)
	var last *traceState
	var lastID [16]byte
	for i := range nodes {
		n := &nodes[i]
		if n.trace == ([16]byte{}) {
			continue
		}
		if last == nil || n.trace != lastID {
			lastID = n.trace
			if last = traces[lastID]; last == nil {
				last = new(traceState)
				traces[lastID] = last
			}
		}
		keys := n.traceKeys()
		last.observe(&keys)
		last.keyed = last.keyed || !n.own.empty() || !n.keys.empty()
		last.phased = last.phased || n.phase != ""
		last.unphased = last.unphased || n.phase == ""
	}
	return traces
}

// inheritDown lets the keys and phases of ancestors come down to the spans of
// active traces, from the batch or from earlier ones.
func inheritDown(nodes []node, traces map[[16]byte]*traceState, ix index) {
	here := make(map[spanKey]int, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		n.parentNode = -1
		if isActive(traces, n.trace) {
			here[spanKey{n.trace, n.id}] = i
		} else {
			n.state = resolved
		}
	}
	earlier := make(map[spanKey]*keySet)
	for i := range nodes {
		n := &nodes[i]
		if n.state == resolved || n.parent == ([8]byte{}) {
			continue
		}
		parent := spanKey{n.trace, n.parent}
		if at, ok := here[parent]; ok {
			n.parentNode = at
		} else {
			earlier[parent] = nil
		}
	}
	if len(earlier) > 0 {
		ix.ancestors(earlier)
	}
	var chain []int
	for i := range nodes {
		// Up to the first ancestor that is done, then down again. The state
		// resolving ends a cycle, which only bad data has.
		chain = chain[:0]
		for at := i; at >= 0 && nodes[at].state == unresolved; at = nodes[at].parentNode {
			nodes[at].state = resolving
			chain = append(chain, at)
		}
		for _, at := range slices.Backward(chain) {
			n := &nodes[at]
			var above *keySet
			var phase string
			switch p := n.parentNode; {
			case p < 0:
				above = earlier[spanKey{n.trace, n.parent}]
			case nodes[p].state == resolved:
				above = &nodes[p].down
				if phase = nodes[p].phase; phase == "" {
					phase = nodes[p].inheritedPhase
				}
			}
			n.inherit(above, phase)
			n.state = resolved
		}
	}
}

// inherit computes what a node has and hands down from what its parent hands
// down; above is nil where that is unknown.
func (n *node) inherit(above *keySet, phase string) {
	if n.phase == "" {
		n.inheritedPhase = phase
	}
	for k := range keyCount {
		parent := ""
		if above != nil {
			parent = above[k]
		}
		switch {
		case n.own[k] != "":
			n.down[k] = n.own[k]
			if parent != "" && parent != n.own[k] && exclusive(k) && n.conflict == "" {
				n.conflict = keyNames[k]
			}
		case parent != "" && n.needs(k):
			n.down[k] = parent
			n.keys[k], n.from[k] = parent, fromParent
		case parent != "":
			// The resource's run is the span's, and what is above it stays
			// above.
		default:
			n.down[k] = n.keys[k]
		}
	}
}
