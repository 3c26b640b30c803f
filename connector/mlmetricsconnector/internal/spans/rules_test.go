package spans

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/admission"
)

func TestClampEnd(t *testing.T) {
	const now = int64(1000)
	for end, want := range map[uint64]int64{0: 0, 999: 999, 1000: 1000, 1001: now, math.MaxUint64: now} {
		assert.Equal(t, want, clampEnd(end, now), "end %d", end)
	}
}

func TestLossScope(t *testing.T) {
	for _, tt := range []struct{ own, phase, want string }{
		{"epoch", mlattr.PhaseBatch, "epoch"},
		{"", mlattr.PhaseEpoch, "epoch"},
		{"", mlattr.PhaseValidation, "validation"},
		{"", mlattr.PhaseBatch, "batch"},
		{"", "", "batch"},
	} {
		assert.Equal(t, tt.want, lossScope(tt.own, tt.phase), "%+v", tt)
	}
}

func TestSamples(t *testing.T) {
	for _, tt := range []struct {
		phase string
		size  int64
		want  int64
	}{
		{mlattr.PhaseForwardBackward, 16, 16},
		{mlattr.PhaseBatch, 16, 16},
		{"", 16, 16},
		{mlattr.PhaseDataLoad, 50_000, 0},
		{mlattr.PhaseValidation, 16, 0},
		{mlattr.PhaseBatch, mlattr.MaxCount + 1, 0},
	} {
		assert.Equal(t, tt.want, samples(&spanfact.Fact{End: spanfact.End{Phase: tt.phase}, BatchSize: tt.size}), "%+v", tt)
	}
}

func TestModel(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs map[string]any
		want  string
	}{
		"the requested one":      {map[string]any{"gen_ai.response.model": "m-1", "gen_ai.request.model": "m"}, "m"},
		"the answering one only": {map[string]any{"llm.model_name": "m-1"}, "m-1"},
		"OpenInference's":        {map[string]any{"llm.model_name": "m-1", "llm.invocation_parameters": `{"model": "m"}`}, "m"},
		"without an answer":      {map[string]any{"gen_ai.request.model": "m"}, "m"},
		"nobody knows":           {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			require.NoError(t, span.Attributes().FromRaw(tt.attrs))
			_, facts := vocabulary.Classify(pcommon.NewMap(), "", span)
			v := readValues(facts)
			assert.Equal(t, tt.want, v.Model())
		})
	}
}

// TestSourcesOfAHiddenRun has those of a span whose attributes say that it is hidden.
func TestSourcesOfAHiddenRun(t *testing.T) {
	for name, attrs := range map[string]map[string]any{
		"a run":                       {"ml.run.id": "span"},
		"of a fine-tuning service":    {"tuft.training_run_id": "t", "ml.rank.global": 3},
		"on another host":             {"host.name": "other"},
		"computed for a single trace": {"ml.run.id": "hash", "ml.run.inferred": true, "ml.rank.global": 3},
	} {
		t.Run(name, func(t *testing.T) {
			sourcesOf := func(attrs map[string]any, hidden bool) streams.Source {
				span := ptrace.NewSpan()
				require.NoError(t, span.Attributes().FromRaw(attrs))
				if !hidden {
					admission.Hide(span.Attributes(), 7)
				}
				r := Reader{resourceFacts: resourceFacts{source: &streams.Source{Run: streams.Run{ID: "resource", Host: "h"}}, hostSource: new(streams.Source)}}
				r.hidden, r.identity, r.spanAttrs = hidden, 7, span.Attributes()
				r.ofSpan = new(vocabulary.Facts)
				vocabulary.Default().Span(0, span, r.ofSpan)
				var u unit
				r.addSources(&u)
				return *u.Source
			}
			assert.Equal(t, sourcesOf(attrs, false), sourcesOf(attrs, true))
			assert.Equal(t, int64(7), sourcesOf(attrs, true).Identity)
		})
	}
}

func TestSources(t *testing.T) {
	resource := streams.Run{ID: "resource", Rank: "1", Host: "h"}
	without := streams.Run{Rank: "1", Host: "h"}
	with := func(id string) streams.Run { return streams.Run{ID: id, Rank: "1", Host: "h"} }
	for name, tt := range map[string]struct {
		attrs          map[string]any
		every, request streams.Run
	}{
		"the resource's":              {map[string]any{}, resource, resource},
		"its own":                     {map[string]any{"ml.run.id": "span"}, with("span"), with("span")},
		"its own wins over training":  {map[string]any{"ml.run.id": "span", "ml.training_run.id": "t"}, with("span"), with("span")},
		"of a fine-tuning service":    {map[string]any{"tuft.training_run_id": "t"}, with("t"), with("t")},
		"a sentinel":                  {map[string]any{"ml.run.id": "0"}, resource, resource},
		"on another host":             {map[string]any{"host.name": "other"}, streams.Run{ID: "resource", Rank: "1", Host: "other"}, streams.Run{ID: "resource", Rank: "1", Host: "other"}},
		"computed for a single trace": {map[string]any{"ml.run.id": "hash", "ml.run.inferred": true}, with("_OTHER"), without},
		"computed, and a resource's":  {map[string]any{"ml.run.id": "live", "ml.run.inferred": true}, with("live"), without},
		"computed for the resource":   {map[string]any{"ml.run.id": "resource", "ml.run.inferred": true}, resource, without},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			require.NoError(t, span.Attributes().FromRaw(tt.attrs))
			r := Reader{resourceFacts: resourceFacts{source: &streams.Source{Run: resource}, hostSource: &streams.Source{Run: streams.Run{Host: "h"}}}}
			r.Live = func(key streams.RunKey) bool { return key.ID == "live" }
			r.ofSpan = new(vocabulary.Facts)
			vocabulary.Default().Span(0, span, r.ofSpan)
			var u unit
			r.addSources(&u)
			assert.Equal(t, tt.every, u.Source.Run)
			assert.Equal(t, tt.request, u.requestSource.Run)
			assert.Equal(t, streams.Run{Host: tt.every.Host}, u.hostSource.Run)
		})
	}
}
