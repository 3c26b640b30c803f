package spanfact_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func read(t *testing.T, attrs map[string]any) (v spanfact.Fact, f *vocabulary.Facts) {
	t.Helper()
	s := ptrace.NewSpan()
	require.NoError(t, s.Attributes().FromRaw(attrs))
	_, f = vocabulary.Classify(pcommon.NewMap(), "", s)
	v.Read(f)
	return v, f
}

func TestRead(t *testing.T) {
	v, _ := read(t, map[string]any{
		mlattr.Phase: mlattr.PhaseSample, mlattr.ErrorType: "E", mlattr.Operation: "o", mlattr.GenAIOperationName: "chat",
		mlattr.Role: "r", mlattr.Side: mlattr.SideClient, mlattr.GenAIRequestModel: "asked", mlattr.GenAIResponseModel: "answered",
		mlattr.Library: "l", mlattr.Function: "f", mlattr.GenAIInputTokens: 1, mlattr.GenAIOutputTokens: 2,
		mlattr.TokensPerSecond: 3.5, mlattr.ThroughputBasis: mlattr.BasisSpan, mlattr.BatchSize: 4,
		mlattr.UsageCounted: true, mlattr.RequestCounted: true, mlattr.ErrorCounted: false,
	})
	assert.Equal(t, spanfact.Fact{
		End:       spanfact.End{Phase: mlattr.PhaseSample, ErrorType: "E"},
		Operation: "o", GenAIOperation: "chat", Role: "r", Side: mlattr.SideClient, Requested: "asked", Answered: "answered",
		Library: "l", Function: "f", Input: 1, HasInput: true, Output: 2, HasOutput: true,
		Rate: 3.5, HasRate: true, Basis: mlattr.BasisSpan, BatchSize: 4, Asked: true, ErrorElsewhere: true,
	}, v)
	assert.Equal(t, "asked", v.Model())

	v.Read(new(vocabulary.Facts))
	assert.Equal(t, spanfact.Fact{Basis: mlattr.BasisReported}, v, "nothing is left")

	v, _ = read(t, map[string]any{mlattr.GenAIResponseModel: "answered", mlattr.UsageInputTokens: 9, mlattr.GenAIInputTokens: 1})
	assert.Equal(t, "answered", v.Model())
	assert.EqualValues(t, 9, v.Input, "with caches")
	v, _ = read(t, map[string]any{mlattr.GenAIInputTokens: -1, mlattr.TokensPerSecond: math.NaN(), mlattr.UsageCounted: "no"})
	assert.Equal(t, spanfact.Fact{Basis: mlattr.BasisReported}, v, "nothing that is wrong")
}

// TestRequests says which spans are requests to a model, and which report tokens of one.
func TestRequests(t *testing.T) {
	tokens := func(attrs map[string]any) map[string]any { attrs[mlattr.GenAIOutputTokens] = 1; return attrs }
	for name, tt := range map[string]struct {
		attrs          map[string]any
		event          table.EventKind
		request, usage bool
	}{
		"nothing":                  {},
		"a sample":                 {map[string]any{mlattr.Phase: mlattr.PhaseSample}, table.NoEvent, true, false},
		"below a sample":           {map[string]any{mlattr.Phase: mlattr.PhaseSample, mlattr.CorrelationSource: mlattr.InheritedPhase}, table.NoEvent, false, false},
		"an inference":             {nil, table.EventInference, true, false},
		"a step":                   {nil, table.EventTrainStep, false, false},
		"a chat":                   {map[string]any{mlattr.GenAIOperationName: "chat"}, table.NoEvent, true, false},
		"an agent":                 {map[string]any{mlattr.GenAIOperationName: "invoke_agent"}, table.NoEvent, false, false},
		"an agent's tokens":        {tokens(map[string]any{mlattr.GenAIOperationName: "invoke_agent"}), table.NoEvent, false, true},
		"reported by another":      {tokens(map[string]any{mlattr.GenAIOperationName: "chat", mlattr.UsageCounted: false}), table.NoEvent, false, false},
		"a part":                   {tokens(map[string]any{mlattr.GenAIOperationName: "chat", mlattr.RequestCounted: false}), table.NoEvent, false, false},
		"a failure without a word": {map[string]any{mlattr.RequestCounted: true}, table.NoEvent, true, false},
		"an operation":             {map[string]any{mlattr.Operation: "reply"}, table.NoEvent, false, false},
		"tokens":                   {tokens(map[string]any{}), table.NoEvent, false, true},
	} {
		v, _ := read(t, tt.attrs)
		assert.Equal(t, tt.request, v.Request(tt.event), name)
		assert.Equal(t, tt.usage, v.Usage(), name)
	}
}

func TestOfModel(t *testing.T) {
	for _, key := range []string{mlattr.Phase, mlattr.Operation, mlattr.GenAIOperationName, mlattr.Role, mlattr.Library, mlattr.Function} {
		v, _ := read(t, map[string]any{key: "x"})
		assert.True(t, v.OfModel(), key)
	}
	v, _ := read(t, map[string]any{mlattr.RequestCounted: true})
	assert.True(t, v.OfModel())
	v, _ = read(t, map[string]any{mlattr.RequestCounted: false, mlattr.GenAIRequestModel: "m", "http.request.method": "GET"})
	assert.False(t, v.OfModel())
}

func TestRankAndStep(t *testing.T) {
	_, f := read(t, map[string]any{mlattr.RankGlobal: 3, mlattr.Step: 7})
	assert.Equal(t, "3", spanfact.Rank(f))
	assert.EqualValues(t, 7, spanfact.Step(f))
	_, f = read(t, map[string]any{mlattr.Step: -7})
	assert.Empty(t, spanfact.Rank(f))
	assert.Zero(t, spanfact.Step(f))
	var each vocabulary.System
	for _, client := range vocabulary.Tables() {
		if client.System.Has(table.StepsPerEpoch) {
			each = client.System
		}
	}
	assert.NotZero(t, each)
	assert.Zero(t, spanfact.StepOf(each, 7), "numbered anew in each epoch")
}

// TestNamedRun: the canonical attributes and the vocabulary name one run.
func TestNamedRun(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs    map[string]any
		want     string
		inferred bool
	}{
		"nothing":                 {},
		"a run":                   {map[string]any{mlattr.RunID: "r", mlattr.TrainingRunID: "t"}, "r", false},
		"a number":                {map[string]any{mlattr.RunID: 7}, "7", false},
		"of a service":            {map[string]any{mlattr.TrainingRunID: "t"}, "t", false},
		"an inferred one":         {map[string]any{mlattr.RunID: "r", mlattr.RunInferred: true}, "r", true},
		"of a service, before it": {map[string]any{mlattr.RunID: "r", mlattr.RunInferred: true, mlattr.TrainingRunID: "t"}, "t", false},
		"a word for none":         {map[string]any{mlattr.RunID: "none", mlattr.TrainingRunID: "t"}, "t", false},
		"no id":                   {map[string]any{mlattr.RunID: "white space"}, "", false},
	} {
		_, f := read(t, tt.attrs)
		var ids spanfact.RunIDs
		for key, value := range tt.attrs {
			m := pcommon.NewMap()
			require.NoError(t, m.FromRaw(map[string]any{key: value}), name)
			attr, _ := m.Get(key)
			assert.True(t, ids.ReadAttribute(key, attr), name)
		}
		for how, named := range map[string]func() (string, bool){"facts": f.NamedRun, "attributes": ids.Named} {
			id, inferred := named()
			assert.Equal(t, tt.want, id, "%s by %s", name, how)
			assert.Equal(t, tt.inferred, inferred, "%s by %s", name, how)
		}
	}
	var ids spanfact.RunIDs
	assert.False(t, ids.ReadAttribute(mlattr.JobID, pcommon.NewValueStr("815")))
}
