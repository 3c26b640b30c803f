package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// systems are the scenarios, one for each system.
var systems = []string{"fx", "snakepit", "taskweaver", "torchtel", "tuft"}

func ofScenario(spans []*sentlog.Span, scenario string) []*sentlog.Span {
	return slices.DeleteFunc(slices.Clone(spans), func(span *sentlog.Span) bool { return span.Scenario != scenario })
}

// testTraces looks at the spans of every system in Jaeger.
func testTraces(t *testing.T, j *job) {
	for _, system := range systems {
		t.Run(system, func(t *testing.T) {
			spans := ofScenario(j.sent.Spans, system)
			require.NotEmpty(t, spans, "the scenario has sent no span")
			checkCanonical(t, spans, j.stored)
		})
	}

	t.Run("the ranks of a job share its run", func(t *testing.T) {
		ids := runIDs(j.sent.Spans, j.stored, func(span *sentlog.Span) bool { return span.Scenario == "torchtel" })
		assert.Len(t, ids, 1)
	})

	t.Run("spans without a common trace are grouped into runs", func(t *testing.T) {
		processes := map[string]bool{}
		runs := map[string]bool{}
		for _, service := range []string{"fx-forecasting", "unknown_service:python"} {
			ids := runIDs(j.sent.Spans, j.stored, func(span *sentlog.Span) bool {
				return span.Scenario == "fx" && span.Resource["service.name"] == service
			})
			assert.Len(t, ids, 1, "runs of the process that calls itself %s", service)
			processes[service] = true
			for _, id := range ids {
				runs[id] = true
			}
		}
		assert.Len(t, runs, len(processes), "two processes are two runs")
	})

	t.Run("fine-tuning runs keep their own ids", func(t *testing.T) {
		ids := runIDs(j.sent.Spans, j.stored, func(span *sentlog.Span) bool {
			_, ok := canonicalFacts(span)["ml.training_run.id"]
			return span.Scenario == "tuft" && ok
		})
		assert.Equal(t, slices.Sorted(maps.Keys(j.sent.Summary.Scenarios["tuft"].Truth.Runs)), ids)
	})

	t.Run("share keys find every activity", func(t *testing.T) { testSearch(t, j) })

	t.Run("services have their names", func(t *testing.T) {
		services, err := j.jaeger.Services(t.Context())
		require.NoError(t, err)
		for _, service := range []string{"torchtel", "tuft", "snakepit", "snakepit.python.bridge", "fx-forecasting", "taskweaver.otlp.tracer"} {
			assert.Contains(t, services, service)
		}
	})
}

// testSearch does what a person does with a share key: it searches Jaeger for
// each session, training run, sampling session and request of TuFT. It has to
// find every trace in which that key was sent, and no trace that has nothing to
// do with it.
func testSearch(t *testing.T, j *job) {
	spans := ofScenario(j.sent.Spans, "tuft")
	related := relatedTraces(spans)
	for _, canonical := range searchKeys {
		t.Run(canonical, func(t *testing.T) {
			wanted := tracesByKey(spans, canonical)
			require.NotEmpty(t, wanted)
			for value, traces := range wanted {
				found, err := j.jaeger.Search(t.Context(), "tuft", map[string]string{canonical: value}, 1000)
				require.NoError(t, err)
				for trace := range traces {
					assert.Contains(t, found, trace, "%s=%s", canonical, value)
				}
				for _, trace := range found {
					assert.True(t, traces[trace] || related[trace][value], "trace %s has nothing to do with %s=%s", trace, canonical, value)
				}
			}
		})
	}
}

// searchKeys are the canonical share keys of TuFT.
var searchKeys = []string{"ml.session.id", "ml.training_run.id", "ml.sampling_session.id", "ml.request.id"}

// tracesByKey returns in which traces each value of a key was sent.
func tracesByKey(spans []*sentlog.Span, canonical string) map[string]map[string]bool {
	traces := map[string]map[string]bool{}
	for _, span := range spans {
		if value, ok := canonicalFacts(span)[canonical]; ok {
			value := fmt.Sprint(value)
			if traces[value] == nil {
				traces[value] = map[string]bool{}
			}
			traces[value][span.TraceID] = true
		}
	}
	return traces
}

// relatedTraces returns, for each trace, the values of share keys that some
// trace about the same training run or sampling session names: a trace that
// unloads a model belongs to the session that trained it, though it does not
// say so.
func relatedTraces(spans []*sentlog.Span) map[string]map[string]bool {
	values := map[string]map[string]bool{}
	for _, canonical := range searchKeys {
		for value, traces := range tracesByKey(spans, canonical) {
			for trace := range traces {
				if values[trace] == nil {
					values[trace] = map[string]bool{}
				}
				values[trace][value] = true
			}
		}
	}
	related := map[string]map[string]bool{}
	for _, canonical := range []string{"ml.training_run.id", "ml.sampling_session.id"} {
		for _, traces := range tracesByKey(spans, canonical) {
			for trace := range traces {
				if related[trace] == nil {
					related[trace] = map[string]bool{}
				}
				for other := range traces {
					maps.Copy(related[trace], values[other])
				}
			}
		}
	}
	return related
}
