package correlate

import (
	"bytes"
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Two instrumentations of one process may report a request in two traces: a
// framework's callbacks do not make their span the current one, so that of the
// client below is no child of it. The two have different scopes, the same model
// and the same usage, or both failed, and one lasts within the other. Of such a
// pair the one that comes second is marked. A span is in one pair with each other
// scope, so equal requests are never fewer than their spans of one scope.

// request is a span of the batch that may be one of such a pair.
type request struct {
	at         int32
	scope      uint64 // a hash
	process    uint64 // a hash
	start, end pcommon.Timestamp
	input      int64
	output     int64
	failed     bool
	// part is true if the span is not the request itself but reports its usage at
	// the end of it. Then the times overlap, and neither contains the other.
	part bool
	// requested and answered are the models, and answer is the response id.
	requested, answered, answer string
}

// twinKey is what both of a pair share, as hashes.
type twinKey struct {
	process, usage uint64
}

// maxAlike is how many of the latest requests of one process with the same usage
// are remembered: those that run at the same time.
const maxAlike = 8

// maxApart is how far apart the beginnings and the ends of a pair may be together,
// in nanoseconds, or a tenth of the longer span: what a framework does before and
// after a request. The longer, the more often two requests are taken for one.
const maxApart = pcommon.Timestamp(250e6)

// alike are requests of one process with the same usage, the newest last.
type alike struct {
	n    int
	list [maxAlike]sighting
}

// sighting is a request that counts.
type sighting struct {
	spanKey
	scope, answer uint64
	models        [2]uint64 // requested and answered
	start, end    pcommon.Timestamp
	// part is set only while a pair is searched.
	part bool
	// twins are the spans of other scopes that repeat it.
	twins [2]twin
}

type twin struct {
	spanKey
	scope uint64
}

var (
	slotDecodeTime     = mlattr.SlotOf(mlattr.DecodeTime)
	slotRequested      = mlattr.SlotOf(mlattr.GenAIRequestModel)
	slotAnswered       = mlattr.SlotOf(mlattr.GenAIResponseModel)
	slotRequestCounted = mlattr.SlotOf(mlattr.RequestCounted)
	slotErrorCounted   = mlattr.SlotOf(mlattr.ErrorCounted)
)

// readRequest adds a span to those of which a twin is searched.
func (b *Batch) readRequest(f *mlattr.Facts, s ptrace.Span, part bool) {
	r := request{
		at: int32(len(b.spans) - 1), scope: b.scope, start: s.StartTimestamp(), end: s.EndTimestamp(),
		failed: s.Status().Code() == ptrace.StatusCodeError, part: part,
		requested: f.TextAt(slotRequested), answered: f.TextAt(slotAnswered), answer: f.TextAt(slotAnswer),
	}
	if r.requested == "" && r.answered == "" || r.end < r.start {
		return
	}
	r.input, _ = f.IntAt(slotInput)
	r.output, _ = f.IntAt(slotOutput)
	if seconds, ok := f.DoubleAt(slotDecodeTime); ok && part && seconds < float64(r.end)/1e9 {
		r.start = r.end - pcommon.Timestamp(seconds*1e9)
	}
	b.usage.requests = append(b.usage.requests, r)
}

// findTwins marks the spans that repeat a request of another scope. The order of
// the batch does not matter: of a pair the span within the other comes first.
func (b *Batch) findTwins(s *Store, processOf func(resource int) string) {
	kept := b.usage.requests[:0]
	for i := range b.usage.requests {
		r := &b.usage.requests[i]
		n := &b.spans[r.at]
		if n.covered || n.repeated || n.traceAt == none || n.id.IsEmpty() {
			continue
		}
		if r.process = b.processHash(s, n.resource, processOf); r.process != 0 {
			kept = append(kept, *r)
		}
	}
	b.usage.requests = kept
	if len(kept) == 0 {
		return
	}
	slices.SortFunc(kept, func(x, y request) int {
		p, q := &b.spans[x.at], &b.spans[y.at]
		return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(y.start, x.start),
			bytes.Compare(p.trace[:], q.trace[:]), bytes.Compare(p.id[:], q.id[:]))
	})
	s.findTwins(kept, b.spans)
}

// processHash returns the hash of what identifies the process of a resource, or 0
// if nothing does.
func (b *Batch) processHash(s *Store, resource int32, processOf func(resource int) string) uint64 {
	r := &b.resources[resource]
	if !r.asked {
		r.asked = true
		if process := processOf(int(resource)); process != "" {
			r.process = max(s.hash(process), 1)
		}
	}
	return r.process
}

// findTwins marks the requests that repeat an earlier one and remembers the
// others.
func (s *Store) findTwins(requests []request, spans []span) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range requests {
		r := &requests[i]
		n := &spans[r.at]
		known := s.requests.Ensure(twinKey{r.process, r.usage()}, now)
		seen := sighting{spanKey: n.spanKey, scope: r.scope, answer: s.hashOf(r.answer), start: r.start, end: r.end, part: r.part,
			models: [2]uint64{s.hashOf(r.requested), s.hashOf(r.answered)}}
		n.repeated = known.repeats(&seen)
		n.twin = n.repeated
	}
}

// hashOf is hash, and 0 for no text.
func (s *Store) hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return max(s.hash(text), 1)
}

// usage is what both of a pair used, as one number.
func (r *request) usage() uint64 {
	const prime = 1099511628211 // of FNV-1a
	mixed := (uint64(r.input)*prime ^ uint64(r.output)) * prime
	if r.failed {
		mixed++
	}
	return mixed
}

// repeats reports whether a span repeats one of the requests, and remembers it.
// Of several, it is the one whose times are the closest.
func (a *alike) repeats(seen *sighting) bool {
	var closest *sighting
	for i := range a.list[:a.n] {
		known := &a.list[i]
		if known.spanKey == seen.spanKey {
			return false // delivered again
		}
		for j := range known.twins {
			if known.twins[j].spanKey == seen.spanKey {
				return true // delivered again
			}
		}
		if known.matches(seen) && (closest == nil || known.distance(seen) < closest.distance(seen)) {
			closest = known
		}
	}
	if closest != nil {
		for j := range closest.twins {
			if closest.twins[j].scope == 0 {
				closest.twins[j] = twin{seen.spanKey, seen.scope}
				break
			}
		}
		return true
	}
	if seen.part {
		// It is no request, so that no request may be taken for it.
		return false
	}
	if a.n == maxAlike {
		copy(a.list[:], a.list[1:])
		a.n--
	}
	a.list[a.n] = *seen
	a.n++
	return false
}

// matches reports whether another span may be the same request.
func (s *sighting) matches(other *sighting) bool {
	if s.scope == other.scope || s.twins[len(s.twins)-1].scope != 0 || s.answer != 0 && other.answer != 0 && s.answer != other.answer {
		return false
	}
	for i := range s.twins {
		if s.twins[i].scope == other.scope {
			return false
		}
	}
	if !s.sameModel(other) {
		return false
	}
	if other.part {
		return s.start <= other.end && other.start <= s.end && apart(s.end, other.end) <= maxApart
	}
	return (s.contains(other) || other.contains(s)) && s.distance(other) <= max(maxApart, max(s.end-s.start, other.end-other.start)/10)
}

func (s *sighting) contains(other *sighting) bool {
	return s.start <= other.start && other.end <= s.end
}

// sameModel reports whether both name a model: an instrumentation may know only
// the requested or only the exact one that answered.
func (s *sighting) sameModel(other *sighting) bool {
	for _, model := range s.models {
		if model != 0 && (model == other.models[0] || model == other.models[1]) {
			return true
		}
	}
	return false
}

// distance is how far apart the times of two spans are, in nanoseconds.
func (s *sighting) distance(other *sighting) pcommon.Timestamp {
	return apart(s.start, other.start) + apart(s.end, other.end)
}

func apart(x, y pcommon.Timestamp) pcommon.Timestamp { return max(x, y) - min(x, y) }
