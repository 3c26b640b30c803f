package e2e

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// store is everything that Jaeger has of the traces that were sent, by trace
// id and span id.
type store = harness.Store

// complaints collects what is wrong with many spans and reports each kind of
// complaint once, with an example and how often it was.
type complaints struct {
	count   map[string]int
	example map[string]string
}

func (c *complaints) add(kind, format string, arguments ...any) {
	if c.count == nil {
		c.count, c.example = map[string]int{}, map[string]string{}
	}
	if c.count[kind]++; c.count[kind] == 1 {
		c.example[kind] = fmt.Sprintf(format, arguments...)
	}
}

func (c *complaints) report(t *testing.T) {
	t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(c.count)) {
		t.Errorf("%s: %d spans, for example %s", kind, c.count[kind], c.example[kind])
	}
}

// checkProducersData expects every span to be stored as it was sent, whatever
// was added to it.
func checkProducersData(t *testing.T, spans []*sentlog.Span, stored store) {
	t.Helper()
	var wrong complaints
	for _, sent := range spans {
		got := stored[sent.TraceID][sent.SpanID]
		where := fmt.Sprintf("%q %s/%s of %s", sent.Name, sent.TraceID, sent.SpanID, sent.Scenario)
		for key, want := range sent.Resource {
			if have, ok := got.Resource[key]; !ok || !equal(have, want) {
				wrong.add("resource attribute "+key+" changed", "%s: %v became %v", where, want, have)
			}
		}
		for key, want := range sent.Attributes {
			if have, ok := got.Attributes[key]; !ok || !equal(have, want) {
				wrong.add("span attribute "+key+" changed", "%s: %v became %v", where, want, have)
			}
		}
		span := got.Span
		for what, pair := range map[string][2]any{
			"name":                     {sent.Name, span.Name()},
			"parent":                   {sent.ParentSpanID, span.ParentSpanID().String()},
			"kind":                     {sent.Kind, strings.ToLower(span.Kind().String())},
			"status":                   {sent.Status.Code, strings.ToLower(span.Status().Code().String())},
			"status message":           {sent.Status.Message, span.Status().Message()},
			"start":                    {sent.StartUnixNano, int64(span.StartTimestamp())},
			"end":                      {sent.EndUnixNano, int64(span.EndTimestamp())},
			"number of events":         {len(sent.Events), span.Events().Len()},
			"dropped attributes count": {sent.DroppedAttributes, span.DroppedAttributesCount()},
		} {
			if pair[0] != pair[1] {
				wrong.add(what+" changed", "%s: %v became %v", where, pair[0], pair[1])
			}
		}
	}
	wrong.report(t)
}

// checkCanonical expects every span to have its canonical attributes: its own
// facts, and what it shares with its trace.
func checkCanonical(t *testing.T, spans []*sentlog.Span, stored store) {
	t.Helper()
	var wrong complaints
	check := func(sent *sentlog.Span, why string, facts map[string]any) {
		got := stored[sent.TraceID][sent.SpanID]
		for key, want := range facts {
			have, ok := got.Attribute(key)
			where := fmt.Sprintf("%q %s/%s", sent.Name, sent.TraceID, sent.SpanID)
			switch {
			case !ok:
				wrong.add(fmt.Sprintf("%s attribute %s is missing", why, key), "%s, wanted %v", where, want)
			case want == present{}:
				if have == "" || have == nil {
					wrong.add(fmt.Sprintf("%s attribute %s is empty", why, key), "%s", where)
				}
			case !equal(have, want):
				wrong.add(fmt.Sprintf("%s attribute %s is wrong", why, key), "%s: %v, wanted %v", where, have, want)
			}
		}
	}
	for _, trace := range harness.ByTrace(spans) {
		inherited := inheritedFacts(trace)
		for _, sent := range trace {
			check(sent, "own", canonicalFacts(sent))
			check(sent, "inherited", inherited[sent])
		}
	}
	wrong.report(t)
}

// equal compares attribute values. A number may have become an integer or a
// double of the same value, or an id may have become text.
func equal(have, want any) bool {
	if reflect.DeepEqual(have, want) {
		return true
	}
	a, aIsNumber := number(have)
	b, bIsNumber := number(want)
	if aIsNumber && bIsNumber {
		return a == b
	}
	return false
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

// runIDs returns the run ids that the spans of one client process have; many
// where it has many runs.
func runIDs(spans []*sentlog.Span, stored store, of func(*sentlog.Span) bool) []string {
	ids := map[string]bool{}
	for _, sent := range spans {
		if !of(sent) {
			continue
		}
		if id, ok := stored[sent.TraceID][sent.SpanID].Attribute("ml.run.id"); ok {
			ids[fmt.Sprint(id)] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
