package vocabulary_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// sessions returns a request of some spans with an ml.session.id each.
func sessions(spans int) ptrace.Traces {
	td := ptrace.NewTraces()
	to := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range spans {
		to.AppendEmpty().Attributes().PutStr(mlattr.SessionID, strconv.Itoa(i))
	}
	return td
}

// passOver reads a request, of which instead may replace spans, and returns the facts with
// their places in memory.
func passOver(ctx context.Context, p *vocabulary.Pass, td ptrace.Traces, known vocabulary.System, instead map[int]ptrace.Span) (texts []string, facts []*vocabulary.Facts) {
	p.Begin(ctx, vocabulary.Default(), td)
	defer p.End()
	for i, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		read, replaced := instead[i]
		if !replaced {
			read = span
		}
		f := p.Next(known, span, read)
		texts, facts = append(texts, f.Text(mlattr.SessionID)), append(facts, f)
	}
	return texts, facts
}

func TestSpansAreReadOnce(t *testing.T) {
	want := []string{"0", "1", "2"}
	td := sessions(3)
	td.MarkReadOnly()
	ctx, end := vocabulary.WithEnriched(t.Context())
	var first, second vocabulary.Pass
	texts, facts := passOver(ctx, &first, td, 0, nil)
	assert.Equal(t, want, texts)
	again, same := passOver(ctx, &second, td, 0, nil)
	assert.Equal(t, want, again)
	for i := range facts {
		assert.Same(t, facts[i], same[i], "a span was read twice")
	}

	// One component may replace a span for itself: the other one reads the span that it got.
	other := ptrace.NewSpan()
	other.Attributes().PutStr(mlattr.SessionID, "_OTHER")
	texts, _ = passOver(ctx, &first, td, 0, map[int]ptrace.Span{1: other})
	assert.Equal(t, []string{"0", "_OTHER", "2"}, texts)
	texts, _ = passOver(ctx, &second, td, 0, nil)
	assert.Equal(t, want, texts)

	// Another resource, another client.
	_, others := passOver(ctx, &second, td, systemTuFT, nil)
	assert.NotSame(t, facts[0], others[0])

	// The end is the end, also for those who kept the context.
	end()
	texts, facts = passOver(ctx, &first, td, 0, nil)
	assert.Equal(t, want, texts)
	assert.Same(t, facts[0], facts[1], "its memory is that of a later request")
}

// What can have changed is read again: requests that may be changed, and others with the
// same context.
func TestWhatMayHaveChangedIsReadAgain(t *testing.T) {
	ctx, end := vocabulary.WithEnriched(t.Context())
	defer end()
	var p vocabulary.Pass
	td := sessions(2)
	_, facts := passOver(ctx, &p, td, 0, nil)
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutStr(mlattr.SessionID, "new")
	texts, again := passOver(ctx, &p, td, 0, nil)
	assert.Equal(t, []string{"new", "1"}, texts)
	assert.Same(t, facts[0], again[1])

	for n := range 3 {
		next := sessions(n + 1)
		next.MarkReadOnly()
		texts, _ = passOver(ctx, &p, next, 0, nil)
		assert.Equal(t, []string{"0", "1", "2"}[:n+1], texts)
	}
	large := sessions(3000)
	large.MarkReadOnly()
	unused, unusedEnd := vocabulary.WithEnriched(t.Context())
	defer unusedEnd()
	texts, _ = passOver(unused, &p, large, 0, nil)
	assert.Equal(t, "2999", texts[2999])
}

// Components that read at the same time, and some after the call.
func TestPassesAtTheSameTime(t *testing.T) {
	var all sync.WaitGroup
	for range 50 {
		td := sessions(20)
		td.MarkReadOnly()
		ctx, end := vocabulary.WithEnriched(t.Context())
		for range 4 {
			all.Go(func() {
				var p vocabulary.Pass
				for range 5 {
					texts, _ := passOver(ctx, &p, td, 0, nil)
					assert.Len(t, texts, 20)
					for i, text := range texts {
						assert.Equal(t, strconv.Itoa(i), text)
					}
				}
			})
		}
		all.Go(end)
	}
	all.Wait()
}
