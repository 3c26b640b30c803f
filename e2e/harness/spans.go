package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// maxTraces is how many traces of a service are read. A client each span of
// which is a trace of its own has some hundreds.
const maxTraces = 5000

// StoredSpan is a span as a back end gives it back.
type StoredSpan struct {
	// Resource and Attributes are plain Go values: string, bool, int64,
	// float64, []byte, []any and map[string]any.
	Resource   sentlog.Attributes
	Attributes sentlog.Attributes
	// Scope is the name of the instrumentation scope.
	Scope string
	// Span is all the rest.
	Span ptrace.Span
}

// Attribute returns a value of the span's own or else of its resource.
func (s StoredSpan) Attribute(key string) (any, bool) {
	if value, ok := s.Attributes[key]; ok {
		return value, true
	}
	value, ok := s.Resource[key]
	return value, ok
}

// SpansByID returns the spans of a trace by their ids, or an error if one is
// stored twice.
func SpansByID(traces ptrace.Traces) (map[string]StoredSpan, error) {
	spans := map[string]StoredSpan{}
	for _, resource := range traces.ResourceSpans().All() {
		attributes := sentlog.FromMap(resource.Resource().Attributes())
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				id := span.SpanID().String()
				if _, twice := spans[id]; twice {
					return nil, fmt.Errorf("span %s of trace %s is stored twice", id, span.TraceID())
				}
				spans[id] = StoredSpan{
					Resource:   attributes,
					Attributes: sentlog.FromMap(span.Attributes()),
					Scope:      scope.Scope().Name(),
					Span:       span,
				}
			}
		}
	}
	return spans, nil
}

// serviceSpans returns all spans that Jaeger has of a service.
func (j *Jaeger) serviceSpans(ctx context.Context, service string) ([]StoredSpan, error) {
	ids, err := j.Search(ctx, service, map[string]string{}, maxTraces)
	if err != nil {
		return nil, err
	}
	var all []StoredSpan
	for _, id := range ids {
		traces, err := j.Trace(ctx, id)
		if errors.Is(err, errNoTrace) {
			continue
		}
		if err != nil {
			return nil, err
		}
		spans, err := SpansByID(traces)
		if err != nil {
			return nil, err
		}
		for _, span := range spans {
			if span.Resource["service.name"] == service {
				all = append(all, span)
			}
		}
	}
	return all, nil
}

// AwaitSpanCounts waits until Jaeger has, of the services together, exactly the
// wanted number of spans of each name, and returns the spans.
func (j *Jaeger) AwaitSpanCounts(tb testing.TB, services []string, wanted map[string]int) []StoredSpan {
	tb.Helper()
	require.NotEmpty(tb, wanted, "nothing to expect of %q", services)
	var spans []StoredSpan
	require.EventuallyWithT(tb, func(c *assert.CollectT) {
		spans = nil
		got := map[string]int{}
		for _, service := range services {
			found, err := j.serviceSpans(tb.Context(), service)
			if !assert.NoError(c, err) {
				return
			}
			for _, span := range found {
				got[span.Span.Name()]++
			}
			spans = append(spans, found...)
		}
		assert.Equal(c, wanted, got, "spans by name of %q", services)
	}, ArrivalTimeout, ArrivalPoll)
	return spans
}

// Store is what Jaeger has of some traces, by trace id and span id.
type Store map[string]map[string]StoredSpan

// ByTrace groups spans that were sent by their trace, in the order of sending.
func ByTrace(spans []*sentlog.Span) map[string][]*sentlog.Span {
	traces := map[string][]*sentlog.Span{}
	for _, span := range spans {
		traces[span.TraceID] = append(traces[span.TraceID], span)
	}
	return traces
}

// AwaitSpans waits until Jaeger has every span that was sent, and returns all
// of them. It asks again only for traces that are not complete yet.
func (j *Jaeger) AwaitSpans(tb testing.TB, spans []*sentlog.Span) Store {
	tb.Helper()
	waiting := ByTrace(spans)
	stored := Store{}
	require.EventuallyWithT(tb, func(c *assert.CollectT) {
		for id, sent := range waiting {
			trace, err := j.readTrace(tb.Context(), id)
			if !assert.NoError(c, err) {
				return
			}
			stored[id] = trace
			if missing := missingSpans(sent, trace); len(missing) > 0 {
				assert.Fail(c, "spans are missing", "%d of %d spans of trace %s, first %s %q of %s",
					len(missing), len(sent), id, missing[0].SpanID, missing[0].Name, missing[0].Scenario)
				return
			}
			delete(waiting, id)
		}
	}, ArrivalTimeout, ArrivalPoll)
	return stored
}

func (j *Jaeger) readTrace(ctx context.Context, id string) (map[string]StoredSpan, error) {
	traces, err := j.Trace(ctx, id)
	if errors.Is(err, errNoTrace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return SpansByID(traces)
}

func missingSpans(sent []*sentlog.Span, trace map[string]StoredSpan) []*sentlog.Span {
	var missing []*sentlog.Span
	for _, span := range sent {
		if _, ok := trace[span.SpanID]; !ok {
			missing = append(missing, span)
		}
	}
	return missing
}
