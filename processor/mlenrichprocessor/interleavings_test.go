package mlenrichprocessor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// What is required of the order in which the spans of traces arrive:
//
//   - in one batch it says nothing: every span gets the same;
//   - parents before their children, however cut into batches and by however many
//     goroutines: what comes down the ancestors is the same on every span, and
//     what comes after all of them gets the same as after one batch;
//   - in any order at all: what comes after all of them gets the same from its
//     trace, and from its ancestors the same or, of those that came before their
//     own parents, nothing; never anything else.

// sentSpan is a span with the service that sends it.
type sentSpan struct {
	service string
	linkedSpan
}

// services are the resources of a story.
var services = map[string]map[string]any{
	"gateway": {"service.name": "gateway"},
	"trainer": {"service.name": "trainer", "TORCHELASTIC_RUN_ID": "run"},
	"torchtel": {
		"service.name": "torchtel", "job_id": 0, "job_name": "local", "host": "n1",
		"local_rank": 0, "global_rank": 0, "world_size": 1,
	},
}

// tracesOf is one request with the spans in their order.
func tracesOf(spans []sentSpan) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := 0; i < len(spans); {
		j := i
		var same []linkedSpan
		for ; j < len(spans) && spans[j].service == spans[i].service; j++ {
			same = append(same, spans[j].linkedSpan)
		}
		rs := batchWithLinks(spans[i].service, same...).ResourceSpans().At(0)
		if err := rs.Resource().Attributes().FromRaw(services[spans[i].service]); err != nil {
			panic(err)
		}
		rs.MoveTo(td.ResourceSpans().AppendEmpty())
		i = j
	}
	return td
}

// story makes up a few traces. Those in split have two sessions or runs. Parents
// come before their children.
func story(r *rand.Rand, links bool) (spans []sentSpan, split map[byte]bool) {
	split = make(map[byte]bool)
	for trace := byte(1); trace <= 3; trace++ {
		n := 3 + r.IntN(9)
		first := len(spans)
		for id := 1; id <= n; id++ {
			parent := byte(0)
			if id > 1 {
				parent = byte(1 + r.IntN(id-1))
			}
			s := sentSpan{service: []string{"gateway", "gateway", "trainer", "torchtel"}[r.IntN(4)]}
			s.testSpan = testSpan{trace, byte(id), parent, fmt.Sprintf("span %d of %d", id, trace), map[string]any{}}
			if r.IntN(5) == 0 {
				s.attrs["ml.request.id"] = fmt.Sprintf("r%d-%d", trace, id)
			}
			if r.IntN(5) == 0 {
				s.attrs["ml.phase"] = []string{"forward", "backward"}[r.IntN(2)]
			}
			if r.IntN(4) == 0 {
				s.attrs["gen_ai.usage.output_tokens"] = 7
			}
			spans = append(spans, s)
		}
		one := func() map[string]any { return spans[first+r.IntN(n)].attrs }
		at := one()
		at["ml.session.id"] = fmt.Sprintf("s%d", trace)
		if r.IntN(2) == 0 {
			at["gen_ai.conversation.id"] = fmt.Sprintf("conversation-%d", trace)
		}
		if r.IntN(2) == 0 {
			one()["ml.training_run.id"] = fmt.Sprintf("t%d", trace)
		}
		if r.IntN(2) == 0 {
			one()["ml.sampling_session.id"] = fmt.Sprintf("sampling-%d", trace)
		}
		if other := one(); r.IntN(3) == 0 && other["ml.session.id"] == nil {
			other["ml.session.id"] = fmt.Sprintf("o%d", trace)
		}
		split[trace] = splits(spans[first:])
	}
	if links {
		// Of a trace that says something itself it would matter whether it has
		// said so before its links arrive, and of a linked span whose resource
		// has a run whether it is in the same batch.
		var ends []to
		for _, s := range spans {
			if s.service == "gateway" {
				ends = append(ends, to{s.trace, s.id})
			}
		}
		for id := byte(1); id <= 6; id++ {
			s := sentSpan{service: "gateway"}
			s.testSpan = testSpan{4, id, id / 2, fmt.Sprintf("span %d of 4", id), nil}
			for range r.IntN(3) {
				s.links = append(s.links, ends[r.IntN(len(ends))])
			}
			spans = append(spans, s)
		}
	}
	return spans, split
}

// splits says whether two sessions or runs meet in a trace.
func splits(spans []sentSpan) bool {
	sessions, runs := make(map[any]bool), make(map[any]bool)
	for _, s := range spans {
		if session := s.attrs["ml.session.id"]; session != nil {
			sessions[session] = true
		}
		switch training := s.attrs["ml.training_run.id"]; {
		case training != nil:
			runs[training] = true
		case s.service == "trainer":
			runs["run"] = true
		}
	}
	return len(sessions) > 1 || len(runs) > 1
}

// given is what things of a name have been given, by attribute.
type given map[string]map[string]any

func (g given) traces(all ...ptrace.Traces) given {
	for _, td := range all {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					g[span.Name()] = span.Attributes().AsRaw()
				}
			}
		}
	}
	return g
}

// probe sends what comes after all the spans, to each of them: a log record
// and a child; and to each trace the same of no span that is known.
func (p *pipelines) probe(t *testing.T, spans []sentSpan) given {
	t.Helper()
	got := make(given)
	ids := make(map[sentSpanID]bool)
	for _, s := range spans {
		ids[sentSpanID{pcommon.TraceID{0: 0xa0, 15: s.trace}, pcommon.SpanID{0: 0xb0, 7: s.id}}] = true
		ids[sentSpanID{trace: pcommon.TraceID{0: 0xa0, 15: s.trace}}] = true
	}
	late := ptrace.NewTraces()
	for id := range ids {
		name := fmt.Sprintf(" of %d/%d", id.trace[15], id.span[7])
		ld := plog.NewLogs()
		record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetTraceID(id.trace)
		record.SetSpanID(id.span)
		got["log"+name] = firstRecord(p.sendLogs(t, ld)).Attributes().AsRaw()

		child := testSpan{id.trace[15], 100 + id.span[7], id.span[7], "child" + name, nil}
		if child.parent == 0 {
			child.parent = 99 // nobody
		}
		batchOf("late", child).ResourceSpans().MoveAndAppendTo(late.ResourceSpans())
	}
	return got.traces(p.sendTraces(t, late))
}

// cut cuts spans into batches of random lengths.
func cut(r *rand.Rand, spans []sentSpan) [][]sentSpan {
	var batches [][]sentSpan
	for len(spans) > 0 {
		n := 1 + r.IntN(min(len(spans), 4))
		batches = append(batches, spans[:n])
		spans = spans[n:]
	}
	return batches
}

// sendAtOnce sends each batch by a goroutine of its own.
func (p *pipelines) sendAtOnce(t *testing.T, batches [][]sentSpan) {
	t.Helper()
	var wg sync.WaitGroup
	for _, batch := range batches {
		wg.Go(func() { assert.NoError(t, p.traces.ConsumeTraces(t.Context(), tracesOf(batch))) })
	}
	wg.Wait()
}

// parentsFirst sends spans in waves of random batches. A span is in a wave only
// where its parent and all of the traces that it links to have arrived.
func (p *pipelines) parentsFirst(t *testing.T, r *rand.Rand, spans []sentSpan) {
	t.Helper()
	left := slices.Clone(spans)
	arrived := func(trace, id byte) bool {
		return !slices.ContainsFunc(left, func(s sentSpan) bool { return s.trace == trace && (id == 0 || s.id == id) })
	}
	for len(left) > 0 {
		var wave []sentSpan
		for _, s := range left {
			ready := s.parent == 0 || arrived(s.trace, s.parent)
			for _, link := range s.links {
				ready = ready && arrived(link.trace, 0)
			}
			if ready && (len(wave) == 0 || r.IntN(3) > 0) {
				wave = append(wave, s)
			}
		}
		left = slices.DeleteFunc(left, func(s sentSpan) bool {
			return slices.ContainsFunc(wave, func(w sentSpan) bool { return w.trace == s.trace && w.id == s.id })
		})
		p.sendAtOnce(t, cut(r, shuffled(r.Uint64(), wave)))
	}
}

// fromAncestors keeps of a span's attributes the keys that came down its
// ancestors, or concern them. A phase comes down within a batch alone.
func fromAncestors(attrs map[string]any) map[string]any {
	kept := make(map[string]any)
	source, _ := attrs[mlattr.CorrelationSource].(string)
	for _, name := range fromParents(source) {
		if attrs[name] != nil {
			kept[name] = attrs[name]
		}
	}
	if conflict := attrs[mlattr.CorrelationConflict]; conflict != nil {
		kept[mlattr.CorrelationConflict] = conflict
	}
	return kept
}

const stories, tellings = 15, 3

func TestOneBatchInAnyOrder(t *testing.T) {
	for seed := range uint64(stories) {
		r := rand.New(rand.NewPCG(seed, 1))
		spans, _ := story(r, true)
		want := make(given).traces(startDefault(t).sendTraces(t, tracesOf(spans)))
		for range tellings {
			p := startDefault(t)
			got := make(given).traces(p.sendTraces(t, tracesOf(shuffled(r.Uint64(), spans))))
			for _, s := range spans {
				require.Equal(t, want[s.name], got[s.name], "seed %d, %s", seed, s.name)
			}
		}
	}
}

func TestParentsFirstInManyBatches(t *testing.T) {
	inherited := 0
	for seed := range uint64(stories) {
		r := rand.New(rand.NewPCG(seed, 2))
		spans, _ := story(r, true)
		p := startDefault(t)
		want := make(given).traces(p.sendTraces(t, tracesOf(spans)))
		wantLate := p.probe(t, spans)
		for range tellings {
			p := startDefault(t)
			p.parentsFirst(t, r, spans)
			got := make(given).traces(p.tracesOut.AllTraces()...)
			for name, attrs := range want {
				require.Equal(t, fromAncestors(attrs), fromAncestors(got[name]), "seed %d, %s", seed, name)
				inherited += len(fromAncestors(attrs))
			}
			for name, attrs := range p.probe(t, spans) {
				require.Equal(t, wantLate[name], attrs, "seed %d, %s", seed, name)
			}
		}
	}
	require.Greater(t, inherited, 300, "the stories have something to inherit")
}

func TestAnyOrderInManyBatches(t *testing.T) {
	whole := 0
	for seed := range uint64(stories) {
		r := rand.New(rand.NewPCG(seed, 3))
		spans, split := story(r, false)
		p := startDefault(t)
		want := make(given).traces(p.sendTraces(t, tracesOf(spans)))
		wantLate := p.probe(t, spans)
		for range tellings {
			p := startDefault(t)
			p.sendAtOnce(t, cut(r, shuffled(r.Uint64(), spans)))
			got := make(given).traces(p.tracesOut.AllTraces()...)
			for _, s := range spans {
				if !split[s.trace] {
					noneOther(t, want[s.name], got[s.name], "seed %d, %s", seed, s.name)
				}
			}
			for name, attrs := range p.probe(t, spans) {
				var trace, span byte
				_, err := fmt.Sscanf(name[strings.Index(name, " of "):], " of %d/%d", &trace, &span)
				require.NoError(t, err)
				if span == 0 {
					require.Equal(t, wantLate[name], attrs, "seed %d, %s", seed, name)
				} else {
					noneOther(t, wantLate[name], attrs, "seed %d, %s", seed, name)
				}
				if !split[trace] {
					whole++
					for _, key := range []string{mlattr.SessionID, mlattr.RunID, mlattr.TrainingRunID, mlattr.SamplingSessionID} {
						require.Equal(t, wantLate[name][key], attrs[key], "seed %d, %s, %s", seed, name, key)
					}
				}
			}
		}
	}
	require.Greater(t, whole, 300, "there are traces of one session and one run")
}

// noneOther asserts that the keys and the phase are as wanted, or absent.
func noneOther(t *testing.T, want, got map[string]any, message string, args ...any) {
	t.Helper()
	for _, name := range append(slices.Collect(maps.Values(keyNames)), mlattr.RunInferred, mlattr.Phase) {
		if got[name] != nil {
			require.Equal(t, want[name], got[name], fmt.Sprintf(message, args...)+": "+name)
		}
	}
}

// TestIDsThatTracesShareInAnyOrder has traces that share a request, a training
// run, a sampling session or a session, in batches of any order and at once. A
// span that comes after them and states the id gets what it would after one
// batch.
func TestIDsThatTracesShareInAnyOrder(t *testing.T) {
	states := []string{"ml.request.id", "ml.training_run.id", "ml.sampling_session.id", "ml.session.id"}
	shared := 0
	for seed := range uint64(2 * stories) {
		r := rand.New(rand.NewPCG(seed, 4))
		id := states[r.IntN(len(states))]
		var spans []sentSpan
		for trace := byte(1); trace <= 6; trace++ {
			s := sentSpan{service: []string{"gateway", "trainer", "torchtel"}[r.IntN(3)]}
			s.testSpan = testSpan{trace, 1, 0, fmt.Sprint("span ", trace), map[string]any{id: "shared"}}
			if id != "ml.session.id" && r.IntN(2) == 0 {
				s.attrs["ml.session.id"] = "session-" + string(rune('a'+r.IntN(8)/7))
			}
			if id == "ml.request.id" && r.IntN(3) == 0 {
				s.attrs["ml.sampling_session.id"] = "sampling"
			}
			spans = append(spans, s)
		}
		probe := func(p *pipelines) map[string]any {
			return make(given).traces(p.sendTraces(t, batchOf("late", testSpan{9, 1, 0, "late", map[string]any{id: "shared"}})))["late"]
		}
		p := startDefault(t)
		first := make(given).traces(p.sendTraces(t, tracesOf(spans)))
		want := probe(p)
		shared += len(want) - 1
		for range tellings {
			order := shuffled(r.Uint64(), spans)
			require.Equal(t, first, make(given).traces(startDefault(t).sendTraces(t, tracesOf(order))), "seed %d, in one batch", seed)
			p := startDefault(t)
			p.sendAtOnce(t, cut(r, order))
			require.Equal(t, want, probe(p), "seed %d, by %s", seed, id)
		}
	}
	require.Greater(t, shared, 30, "there is something to share")
}

// TestEpochsOfManyBatches has the epochs of a process arrive in any order and at
// once. Batches that come after them are bound as in one request.
func TestEpochsOfManyBatches(t *testing.T) {
	for seed := range uint64(stories) {
		r := rand.New(rand.NewPCG(seed, 5))
		var epochs, batches []fxSpan
		for n, at := int64(0), 0.0; n < 6; n++ {
			length := float64(2 + r.IntN(3))
			start := at
			if r.IntN(5) == 0 {
				start -= 0.5 // it overlaps with the one before
			}
			epochs = append(epochs, fxEpoch(n, start, at+length))
			for b := range 3 {
				from := at + float64(b)*length/3
				batches = append(batches, fxBatch(fmt.Sprintf("batch_%d", 3*n+int64(b)), from, from+length/3))
			}
			at += length
		}
		bound := func(p *pipelines) map[string]string {
			return keysByName(p.sendTraces(t, fxProcess(fxResource, batches...)), "ml.epoch")
		}
		p := startDefault(t)
		p.sendTraces(t, fxProcess(fxResource, epochs...))
		want := bound(p)
		require.Equal(t, want, keysByBatch(startDefault(t).sendTraces(t, fxProcess(fxResource, shuffled(seed, append(slices.Clone(epochs), batches...))...))))
		for range tellings {
			p := startDefault(t)
			var wg sync.WaitGroup
			for _, epoch := range shuffled(r.Uint64(), epochs) {
				wg.Go(func() { assert.NoError(t, p.traces.ConsumeTraces(t.Context(), fxProcess(fxResource, epoch))) })
			}
			wg.Wait()
			require.Equal(t, want, bound(p), "seed %d", seed)
		}
	}
}

// keysByBatch are the epochs of batches.
func keysByBatch(td ptrace.Traces) map[string]string {
	epochs := keysByName(td, "ml.epoch")
	for name := range epochs {
		if !strings.HasPrefix(name, "batch_") {
			delete(epochs, name)
		}
	}
	return epochs
}

// TestOneOfEachPairCountsAnAnswer has two instrumentations report requests with the same
// answers at once: of each pair exactly one span counts.
func TestOneOfEachPairCountsAnAnswer(t *testing.T) {
	const many, answers = 64, 8
	p := startDefault(t)
	var wg sync.WaitGroup
	for i := range many {
		id := fmt.Sprint("answer-", i%answers)
		wg.Go(func() {
			assert.NoError(t, p.traces.ConsumeTraces(t.Context(), scoped(fmt.Sprint("scope-", i/answers%2), batchOf("assistant",
				testSpan{byte(i), 1, 0, id, answered(id)}))))
		})
	}
	wg.Wait()
	counted := make(map[string]int)
	for _, td := range p.tracesOut.AllTraces() {
		for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			if _, marked := span.Attributes().Get("ml.usage.counted"); !marked {
				counted[span.Name()]++
			}
		}
	}
	require.Len(t, counted, answers)
	for id, n := range counted {
		assert.Equal(t, many/answers/2, n, id)
	}
}
