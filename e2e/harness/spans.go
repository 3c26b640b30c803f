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

// ServiceSpans returns all spans that Jaeger has of a service.
func (j *Jaeger) ServiceSpans(ctx context.Context, service string) ([]StoredSpan, error) {
	ids, err := j.Search(ctx, service, map[string]string{}, maxTraces)
	if err != nil {
		return nil, err
	}
	var all []StoredSpan
	for _, id := range ids {
		traces, err := j.Trace(ctx, id)
		if errors.Is(err, ErrNoTrace) {
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
			found, err := j.ServiceSpans(tb.Context(), service)
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
