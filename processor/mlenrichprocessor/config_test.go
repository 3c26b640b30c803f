package mlenrichprocessor

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestDefaultConfig(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, vocabulary.SystemNames(), cfg.Vocabularies)
	assert.Empty(t, cfg.HashKey)
	assert.False(t, cfg.RouteByRun)
}

func TestConfigErrors(t *testing.T) {
	many := make([]any, maxResourceLabels+1)
	for i := range many {
		many[i] = "label" + strconv.Itoa(i)
	}
	tests := []struct {
		name string
		conf map[string]any
		want []string
	}{
		{"unknown vocabulary", map[string]any{"vocabularies": []any{"torchtel", "pytorch"}},
			[]string{`"vocabularies": unknown vocabulary "pytorch", must be one of "torchtel", "tuft"`}},
		{"unknown canonical name", map[string]any{"aliases": map[string]any{"my.session": "session"}},
			[]string{`"aliases": "my.session" means "session", must be one of`, `"ml.session.id"`}},
		{"derived name", map[string]any{"aliases": map[string]any{"x": "ml.gpu.join"}}, []string{`"x" means "ml.gpu.join"`}},
		{"alias of itself", map[string]any{"aliases": map[string]any{"ml.loss": "ml.loss"}}, []string{`"ml.loss" means itself`}},
		{"empty alias", map[string]any{"aliases": map[string]any{"": "ml.loss"}}, []string{`"aliases": the key for "ml.loss" is empty`}},
		{"empty label", map[string]any{"resource_labels": []any{" "}}, []string{`"resource_labels": " " is empty`}},
		{"label twice", map[string]any{"resource_labels": []any{"team", "team"}}, []string{`"resource_labels": "team" is listed twice`}},
		{"many labels", map[string]any{"resource_labels": many}, []string{`"resource_labels": has 33 entries, must have at most 32`}},
		{"training of nobody", map[string]any{"training": []any{map[string]any{"tokens_per_step": 1}}},
			[]string{`training::0: "service" is "", must be a service's name`}},
		{"training of nothing", map[string]any{"training": []any{map[string]any{"service": "a"}, map[string]any{"service": "b", "tokens_per_step": 1}}},
			[]string{`training::0: must have one of "tokens_per_step", "samples_per_step", "flops_per_token"`}},
		{"training below nothing", map[string]any{"training": []any{map[string]any{"service": "a", "tokens_per_step": -1, "flops_per_token": math.NaN()}}},
			[]string{`"tokens_per_step" is -1, must be a number from 0`, `"flops_per_token" is NaN, must be`}},
		{"training of a host", map[string]any{"training": []any{map[string]any{"service": "a", "samples_per_step": 1, "per": "host"}}},
			[]string{`"per" is "host", must be one of "rank", "job"`}},
		{"much training", map[string]any{"training": slices.Repeat([]any{map[string]any{"service": "a", "tokens_per_step": 1}}, 257)},
			[]string{`"training": has 257 entries, must have at most 256`}},
		{"metric about nothing", map[string]any{"metrics": map[string]any{"acme.tokens": map[string]any{"unit": "s"}}},
			[]string{`"metrics": "acme.tokens": "as" is "", must be one of`, `"ml.tokens"`}},
		{"metric's unit", map[string]any{"metrics": map[string]any{"acme.tokens": map[string]any{"as": "ml.tokens", "unit": "s"}}},
			[]string{`"metrics": "acme.tokens": "unit" is "s", must be one of "1"`, `"{token}"`}},
		{"metric's tokens", map[string]any{"metrics": map[string]any{"acme.tokens": map[string]any{"as": "ml.tokens", "token_type": "both"}}},
			[]string{`"metrics": "acme.tokens": "token_type" is "both", must be one of "input", "output"`}},
		{"metric of punctuation", map[string]any{"metrics": map[string]any{"..": map[string]any{"as": "ml.tokens"}}},
			[]string{`"metrics": the key ".." is no metric's name`}},
		{"all at once", map[string]any{"vocabularies": []any{"x"}, "resource_labels": []any{""}}, []string{`"vocabularies"`, `"resource_labels"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(tt.conf).Unmarshal(cfg))
			err := confmap.Validate(cfg)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			for _, key := range []string{"rates"} {
				require.NotContains(t, err.Error(), key+":", "users have no such key")
			}
		})
	}
}

func TestUnknownKeyIsAnError(t *testing.T) {
	err := confmap.NewFromStringMap(map[string]any{"vocabulary": []any{"tuft"}}).Unmarshal(createDefaultConfig().(*Config))
	require.ErrorContains(t, err, "vocabulary")
}

func TestHashKeyIsNotShown(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.HashKey = "a-secret"
	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	assert.NotContains(t, conf.Get("hash_key"), "a-secret")
}
