package correlate

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// Two instrumentations of one process may report a request in two traces: a
// framework's callbacks do not make their span the current one, so that of the
// client below is no child of it. The two have different scopes, and either the
// same response id and times that overlap, or the same model and the same usage, or
// both failed, and one lasts within the other. Two that count differently are a pair if
// one leaves out what caches gave, or the input, or all, or counts one more output. An id
// alone says nothing: a mock, a
// cache and some servers state one id for many requests. Of a pair the span that
// comes second is marked. A span is in one pair with each other scope, so equal
// requests are never fewer than their spans of one scope.

// request is a span of the batch that may be one of such a pair.
type request struct {
	at int32
	// provider is that of the model, as a hash. whole is true if the input with the tokens
	// of caches is known.
	provider uint64
	whole    bool
	sighting
}

// twinKey is what both of a pair share, as hashes: the process and the usage, or the
// service and the response id.
type twinKey struct{ of, what uint64 }

// maxAlike is how many of the latest requests with the same key are remembered:
// those that run at the same time.
const maxAlike = 8

// maxApart is how far apart the beginnings and the ends of a pair may be together,
// in nanoseconds, or a tenth of the longer span: what a framework does before and
// after a request. The longer, the more often two requests are taken for one.
const maxApart = pcommon.Timestamp(250e6)

// maxReport is longer than the report of a request takes, in nanoseconds, and shorter
// than any request.
const maxReport = pcommon.Timestamp(1e6)

// alike are requests with the same key, the newest last.
type alike struct {
	n    int
	list [maxAlike]sighting
}

// sighting is a request that counts, or one of which a twin is searched. Its texts and ids
// are hashes, or 0.
type sighting struct {
	span, scope, process, answer uint64
	// above is the span above, as a hash.
	above      uint64
	models     [2]uint64 // requested and answered
	start, end pcommon.Timestamp
	// input and output are its tokens, and cached those that were read from caches and
	// written to them.
	input, output, cached int64
	// uses is true if the span reports used tokens. first is true if the span is the
	// first of the process with its model: the client may have been made within it.
	uses, failed, first bool
	// part is true if the span is not the request itself but reports its usage at
	// the end of it. Then the times overlap, and neither contains the other. report is
	// true if the span takes no time and says nothing but its usage: it is the report of a
	// request beside it. Neither is remembered.
	part, report bool
	// twins are the spans of other scopes that repeat it.
	twins [2]twin
}

type twin struct{ span, scope uint64 }

// readRequest adds a span to those of which a twin is searched.
func (b *Batch) readRequest(f *vocabulary.Facts, s ptrace.Span, u spanUsage, part, silent bool) {
	n := &b.spans[len(b.spans)-1]
	r := request{at: int32(len(b.spans) - 1), sighting: sighting{
		span: maphash.Comparable(cache.Seed, n.spanKey), above: maphash.Comparable(cache.Seed, spanKey{n.trace, n.parent}),
		scope: b.scope, start: s.StartTimestamp(), end: s.EndTimestamp(),
		failed: u.failed, uses: u.uses, part: part, report: silent && s.EndTimestamp()-s.StartTimestamp() < maxReport,
		models: [2]uint64{cache.Hash(f.TextAt(vocabulary.SlotGenAIRequestModel)), cache.Hash(f.TextAt(vocabulary.SlotGenAIResponseModel))}, answer: cache.Hash(f.TextAt(vocabulary.SlotGenAIResponseID)),
	}}
	if !r.named() && r.answer == 0 || r.end < r.start {
		return
	}
	r.provider, r.whole = cache.Hash(f.TextAt(vocabulary.SlotGenAIProviderName)), f.At(vocabulary.SlotUsageInputTokens) != nil
	r.input, _ = f.IntAt(vocabulary.SlotGenAIInputTokens)
	r.output, _ = f.IntAt(vocabulary.SlotGenAIOutputTokens)
	read, _ := f.IntAt(vocabulary.SlotGenAICacheReadTokens)
	written, _ := f.IntAt(vocabulary.SlotGenAICacheCreationTokens)
	r.cached = min(read, mlattr.MaxCount) + min(written, mlattr.MaxCount)
	if seconds, ok := f.DoubleAt(vocabulary.SlotDecodeTime); ok && part && seconds < float64(r.end)/1e9 {
		r.start = r.end - pcommon.Timestamp(seconds*1e9)
	}
	b.usage.requests = append(b.usage.requests, r)
}

// ends is when the span ends, and of a report when that of its request has.
func (s *sighting) ends() pcommon.Timestamp {
	if s.report {
		return s.end + maxReport
	}
	return s.end
}

// named reports whether the span names a model.
func (s *sighting) named() bool { return s.models != [2]uint64{} }

// order orders the requests of which a twin is searched, so that the order of the
// batch does not matter: of a pair the span within the other comes first.
func (u *usageSearch) order(b *branches, processOf func(resource int) string) {
	kept := u.requests[:0]
	for i := range u.requests {
		r := &u.requests[i]
		n := &b.spans[r.at]
		if n.covered || n.asked && n.failedBelow || n.traceAt == none || n.id.IsEmpty() {
			continue
		}
		r.process = b.processHash(n.resource, processOf)
		kept = append(kept, *r)
	}
	u.requests = kept
	slices.SortFunc(kept, func(x, y request) int {
		p, q := &b.spans[x.at], &b.spans[y.at]
		return cmp.Or(cmp.Compare(x.ends(), y.ends()), cmp.Compare(y.start, x.start),
			bytes.Compare(p.trace[:], q.trace[:]), bytes.Compare(p.id[:], q.id[:]))
	})
}

// processHash returns the hash of what identifies the process of a resource, or 0
// if nothing does.
func (b *branches) processHash(resource int32, processOf func(resource int) string) uint64 {
	r := &b.resources[resource]
	if !r.asked {
		r.asked, r.process = true, cache.Hash(processOf(int(resource)))
	}
	return r.process
}

// findTwins marks the requests that repeat an earlier one and remembers the
// others.
func (s *Store) findTwins(requests []request, spans []span, now time.Time) {
	for i := range requests {
		r := &requests[i]
		n := &spans[r.at]
		s.settleCaches(r, n, now)
		var of *sighting
		if r.uses && r.answer != 0 {
			of = twinOf(s.answers, &r.sighting, (*sighting).sharesAnswer, &n.joined, now, twinKey{n.service, r.answer})
			n.repeated = of != nil
		}
		if r.process == 0 || !r.named() {
			continue
		}
		begun := s.begun.Ensure(twinKey{r.process, cmp.Or(r.models[0], r.models[1])}, now)
		if *begun == 0 || r.start < *begun {
			*begun, r.first = r.start, true
		}
		if of == nil {
			of = twinOf(s.requests, &r.sighting, (*sighting).matches, &n.joined, now, twinKey{r.process, r.usage()})
			n.repeated = of != nil
			n.twin = n.repeated
		}
		if of != nil {
			if known := s.latest.Find(beginning(of.process, of.start), now); known != nil {
				known.pair(of.span, &r.sighting)
			}
			continue
		}
		at := beginning(r.process, r.start)
		of = twinOf(s.latest, &r.sighting, (*sighting).resembles, &n.joined, now, at, twinKey{at.of, at.what - 1}, twinKey{at.of, at.what + 1})
		if of != nil {
			// Where the other one states no usage, that of this one counts.
			n.twin = true
			n.askedOnce = r.uses && !of.uses
			n.repeated = !n.askedOnce
		}
	}
}

// settleCaches completes the input of a request by the tokens of caches, where another one of
// the same instrumentation, provider and model had more of them than input.
func (s *Store) settleCaches(r *request, n *span, now time.Time) {
	if r.cached == 0 || r.input == 0 {
		return
	}
	of := twinKey{cmp.Or(r.process, n.service), maphash.Comparable(cache.Seed, [...]uint64{r.scope, r.provider, cmp.Or(r.models[0], r.models[1])})}
	if r.cached > r.input {
		s.apart.Ensure(of, now)
	} else if !r.whole && s.apart.Find(of, now) != nil {
		n.wholeInput = mlattr.WholeInput(0, r.input, r.cached)
	}
}

// beginning is the key of the requests of a process that began at about a time.
func beginning(process uint64, start pcommon.Timestamp) twinKey {
	return twinKey{process, uint64(start / maxApart)}
}

// twinOf returns the request that a span repeats, of those that match it under some keys,
// or nil. It sets joined where the span was not known to repeat one, and else remembers it
// under the first key: but for what is no request, so that no request may be taken for it.
func twinOf(in *cache.LRU[twinKey, alike], seen *sighting, match func(known, seen *sighting) bool, joined *bool, now time.Time, keys ...twinKey) *sighting {
	for _, key := range keys {
		known := in.Find(key, now)
		if known == nil {
			continue
		}
		of, again := known.find(seen, match)
		if of != nil && !again {
			of.addTwin(seen)
			*joined = true
		}
		if of != nil || again {
			return of
		}
	}
	if !seen.part && !seen.report {
		in.Ensure(keys[0], now).add(seen)
	}
	return nil
}

// usage is what both of a pair used, as one number.
func (s *sighting) usage() uint64 {
	const prime = 1099511628211 // of FNV-1a
	mixed := (uint64(s.input)*prime ^ uint64(s.output)) * prime
	if s.failed {
		mixed++
	}
	return mixed
}

// find returns the request that a span repeats, of those that match it, or nil: of several
// the one whose times are the closest. again reports whether the span was seen before.
func (a *alike) find(seen *sighting, match func(known, seen *sighting) bool) (of *sighting, again bool) {
	for i := range a.list[:a.n] {
		known := &a.list[i]
		if known.span == seen.span {
			return nil, true
		}
		if slices.ContainsFunc(known.twins[:], func(t twin) bool { return t.span == seen.span }) {
			return known, true
		}
		if (seen.report || known.unpaired(seen.scope)) && match(known, seen) && (of == nil || known.distance(seen) < of.distance(seen)) {
			of = known
		}
	}
	return of, false
}

// add remembers a request, instead of the oldest one where there is no room.
func (a *alike) add(seen *sighting) {
	if a.n == maxAlike {
		copy(a.list[:], a.list[1:])
		a.n--
	}
	a.list[a.n] = *seen
	a.n++
}

// pair remembers that a span repeats the request of another one.
func (a *alike) pair(of uint64, seen *sighting) {
	if known := mlattr.Find(a.list[:a.n], func(known *sighting) bool { return known.span == of }); known != nil {
		known.addTwin(seen)
	}
}

func (s *sighting) addTwin(seen *sighting) {
	if j := slices.IndexFunc(s.twins[:], func(t twin) bool { return t.scope == 0 }); j >= 0 {
		s.twins[j] = twin{seen.span, seen.scope}
	}
}

// unpaired reports whether the request may be in a pair with a span of a scope.
func (s *sighting) unpaired(scope uint64) bool {
	paired := slices.ContainsFunc(s.twins[:], func(t twin) bool { return t.scope == scope })
	return !paired && s.scope != scope && s.twins[len(s.twins)-1].scope == 0
}

// sharesAnswer reports whether another span with the same response id may be the same
// request.
func (s *sighting) sharesAnswer(other *sighting) bool {
	return (s.process == 0 || other.process == 0 || s.process == other.process) && s.overlaps(other)
}

// matches reports whether another span of the same process with the same usage may be
// the same request.
func (s *sighting) matches(other *sighting) bool {
	switch {
	case !s.agrees(other):
		return false
	case other.report:
		return s.above == other.above && other.start+maxReport >= s.end && other.start-min(s.end, other.start) <= maxApart
	case other.part:
		return s.overlaps(other) && apart(s.end, other.end) <= maxApart
	}
	return s.coincides(other)
}

// resembles reports whether another span of the same process may be the same request
// though it counts other tokens: without caches, without input, or with one more output.
func (s *sighting) resembles(other *sighting) bool {
	if other.part || other.report || s.failed != other.failed || !s.agrees(other) {
		return false
	}
	if s.uses && other.uses {
		missing := max(s.input, other.input) - min(s.input, other.input)
		if missing != 0 && missing != max(s.cached, other.cached) && s.input != 0 && other.input != 0 || max(s.output, other.output)-min(s.output, other.output) > 1 {
			return false
		}
	}
	return s.coincides(other)
}

// agrees reports whether both name a model and not different answers: an instrumentation
// may know only the requested or only the exact one that answered.
func (s *sighting) agrees(other *sighting) bool {
	if s.answer != 0 && other.answer != 0 && s.answer != other.answer {
		return false
	}
	return slices.ContainsFunc(s.models[:], func(model uint64) bool { return model != 0 && slices.Contains(other.models[:], model) })
}

// coincides reports whether one lasts within the other and their times are close. The first
// request may have begun long before its client did.
func (s *sighting) coincides(other *sighting) bool {
	limit, outer := max(maxApart, max(s.end-s.start, other.end-other.start)/10), s
	if other.contains(s) {
		outer = other
	} else if !s.contains(other) {
		return false
	}
	return s.distance(other) <= limit || outer.first && apart(s.end, other.end) <= maxApart
}

func (s *sighting) overlaps(other *sighting) bool {
	return s.start <= other.end && other.start <= s.end
}

func (s *sighting) contains(other *sighting) bool {
	return s.start <= other.start && other.end <= s.end
}

// distance is how far apart the times of two spans are, in nanoseconds.
func (s *sighting) distance(other *sighting) pcommon.Timestamp {
	return apart(s.start, other.start) + apart(s.end, other.end)
}

func apart(x, y pcommon.Timestamp) pcommon.Timestamp { return max(x, y) - min(x, y) }
