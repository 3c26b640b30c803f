package price_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
)

// at is a time at which all prices of the tests hold.
var at = time.Date(2026, 8, 22, 12, 0, 0, 0, time.UTC)

// table returns the prices of a text.
func table(t *testing.T, text string) *price.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return read(t, path)
}

func read(t *testing.T, path string) *price.Table {
	t.Helper()
	file := price.NewFile(path, zap.NewNop())
	_, err := file.Read()
	require.NoError(t, err)
	return file.Table()
}

// The package that the file comes from says what each request costs.
func TestCostsAreThoseOfGenAIPrices(t *testing.T) {
	var requests []struct {
		Provider, Model          string
		At                       time.Time
		Input, Output, Reasoning int64
		CacheRead                int64 `json:"cache_read"`
		CacheWrite               int64 `json:"cache_write"`
		Cost                     *struct{ Input, Output, Other float64 }
	}
	data, err := os.ReadFile(filepath.Join("testdata", "rated.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &requests))
	require.NotEmpty(t, requests)
	prices := read(t, filepath.Join("testdata", "prices.json"))
	for i, r := range requests {
		usage := price.Usage{Input: r.Input, CacheRead: r.CacheRead, CacheWrite: r.CacheWrite, Output: r.Output, Reasoning: r.Reasoning}
		cost, ok := prices.Find(r.Provider, r.Model, r.At).Rate(usage, r.At)
		require.Equal(t, r.Cost != nil, ok, "%d: %+v", i, r)
		if ok {
			assert.InDelta(t, r.Cost.Input, cost.Input, 1e-9, "%d: %+v", i, r)
			assert.InDelta(t, r.Cost.Output, cost.Output, 1e-9, "%d: %+v", i, r)
			assert.InDelta(t, r.Cost.Other, cost.Other, 1e-9, "%d: %+v", i, r)
			assert.InDelta(t, r.Cost.Input+r.Cost.Output+r.Cost.Other, cost.Total(), 1e-9)
		}
	}
}

func TestProvidersByTheirConventionalNames(t *testing.T) {
	prices := table(t, `[
		{"id": "azure", "models": [{"match": {"equals": "m"}, "prices": {"input_mtok": 1}}]},
		{"id": "x-ai", "models": [{"match": {"equals": "m"}, "prices": {"input_mtok": 2}}]},
		{"id": "google", "provider_match": {"contains": "vertex"}, "models": [{"match": {"equals": "m"}, "prices": {"input_mtok": 3}}]},
		{"id": "openai", "provider_match": {"contains": "openai"}, "models": [{"match": {"equals": "m"}, "prices": {"input_mtok": 4}}]}
	]`)
	for provider, want := range map[string]float64{
		"azure.ai.openai": 1, "azure.ai.inference": 1, "x_ai": 2, "gcp.vertex_ai": 3, "gcp.gen_ai": 3, "OpenAI": 4, " openai ": 4,
	} {
		cost, ok := prices.Find(provider, "M", at).Rate(price.Usage{Input: 1e6}, at)
		assert.True(t, ok, provider)
		assert.InDelta(t, want, cost.Total(), 1e-12, provider)
	}
	for _, provider := range []string{"", "vllm", "ollama", strings.Repeat("openai", 100)} {
		assert.Nil(t, prices.Find(provider, "m", at), provider)
	}
	cost, ok := prices.Find("", "azure/m", at).Rate(price.Usage{Input: 1e6}, at)
	assert.True(t, ok, "the model's name has the provider")
	assert.InDelta(t, 1, cost.Total(), 1e-12)
}

// Tokens without a price have no cost, rather than none.
func TestUnknownPrices(t *testing.T) {
	prices := table(t, `[{"id": "p", "models": [
		{"match": {"equals": "input"}, "prices": {"input_mtok": 1}},
		{"match": {"equals": "audio"}, "prices": {"input_audio_mtok": 1, "requests_kcount": 3}},
		{"match": {"equals": "empty"}, "prices": []},
		{"match": {"equals": "null"}, "prices": {"input_mtok": 1, "output_mtok": null}},
		{"match": {"equals": "free"}, "prices": {"input_mtok": 0, "output_mtok": 0}}]}]`)
	for model, want := range map[string]bool{"input": false, "audio": false, "empty": false, "null": false, "free": true, "": false} {
		_, ok := prices.Find("p", model, at).Rate(price.Usage{Input: 1, Output: 1}, at)
		assert.Equal(t, want, ok, model)
	}
	_, ok := prices.Find("p", "input", at).Rate(price.Usage{Input: 1}, at)
	assert.True(t, ok, "an embedding has no output")
}

// What a client reports may be more cached tokens than there are.
func TestPartsAreNoMoreThanTheWhole(t *testing.T) {
	prices := table(t, `[{"id": "p", "models": [{"match": {"equals": "m"}, "prices":
		{"input_mtok": 10, "cache_read_mtok": 1, "cache_write_mtok": 20, "output_mtok": 30, "output_reasoning_mtok": 40}}]}]`)
	cost, ok := prices.Find("p", "m", at).Rate(price.Usage{Input: 1e6, CacheRead: 3e6, CacheWrite: 1e6, Output: 1e6, Reasoning: 5e6}, at)
	assert.True(t, ok)
	assert.Equal(t, price.Cost{Input: 1, Output: 40}, cost)
}

func TestFilesThatAreRefused(t *testing.T) {
	const model = `[{"id": "p", "models": [{"id": "m", "match": %, "prices": %}]}]`
	of := func(match, prices string) string {
		return strings.Replace(strings.Replace(model, "%", match, 1), "%", prices, 1)
	}
	const equal, one = `{"equals": "m"}`, `{"input_mtok": 1}`
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":          {"", "it cannot be read as a list of providers"},
		"an object":        {`{"gpt-4o": {"input_cost_per_token": 1}}`, "it cannot be read as a list of providers"},
		"no model":         {"[]", "no model"},
		"too large":        {strings.Repeat(" ", 16<<20+1), "more than 16777216 bytes"},
		"a negative price": {of(equal, `{"input_mtok": -1}`), "not between"},
		"a huge price":     {of(equal, `{"input_mtok": 1e10}`), "not between"},
		"no number":        {of(equal, `{"input_mtok": "1"}`), "prices"},
		"falling tiers":    {of(equal, `{"input_mtok": {"base": 1, "tiers": [{"start": 9, "price": 2}, {"start": 8, "price": 3}]}}`), "does not begin above"},
		"a negative tier":  {of(equal, `{"input_mtok": {"base": 1, "tiers": [{"start": 9, "price": -2}]}}`), "does not begin above"},
		"no date":          {of(equal, `[{"constraint": {"start_date": "soon"}, "prices": {}}]`), "soon"},
		"no time":          {of(equal, `[{"constraint": {"start_time": "25:00:00Z", "end_time": "26:00:00Z"}, "prices": {}}]`), "25"},
		"no prices":        {`[{"id": "p", "models": [{"id": "m", "match": {"equals": "m"}}]}]`, "is missing"},
		"an empty clause":  {of(`{}`, one), "is none of equals"},
		"a regex":          {of(`{"regex": "("}`, one), "missing closing"},
		"deep JSON":        {strings.Repeat("[", 20_000), "it cannot be read as a list of providers"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "prices.json")
			require.NoError(t, os.WriteFile(path, []byte(tt.text), 0o600))
			file := price.NewFile(path, zap.NewNop())
			_, err := file.Read()
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, path)
			assert.Nil(t, file.Table())
		})
	}
}

func TestAFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	file := price.NewFile(path, zap.NewNop())
	_, err := file.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Nil(t, file.Table())

	write := func(text string, day int) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		date := time.Date(2026, 8, day, 23, 0, 0, 0, time.FixedZone("", -2*3600))
		require.NoError(t, os.Chtimes(path, date, date))
	}
	of := func(price string) string {
		return `[{"id": "p", "models": [{"match": {"equals": "m"}, "prices": {"input_mtok": ` + price + `}}]}]`
	}
	cost := func() float64 {
		t.Helper()
		cost, ok := file.Table().Find("p", "m", at).Rate(price.Usage{Input: 1e6}, at)
		require.True(t, ok)
		return cost.Total()
	}
	read := func(changed bool) {
		t.Helper()
		got, err := file.Read()
		require.NoError(t, err)
		assert.Equal(t, changed, got)
	}
	write(of("1"), 1)
	read(true)
	assert.InDelta(t, 1, cost(), 0)
	assert.Equal(t, "2026-08-02", file.Table().Date(), "in UTC")
	read(false)

	write(of("2"), 3)
	read(true)
	assert.InDelta(t, 2, cost(), 0)
	assert.Equal(t, "2026-08-04", file.Table().Date())

	write("[", 5)
	_, err = file.Read()
	require.Error(t, err)
	assert.InDelta(t, 2, cost(), 0, "the earlier prices stay")
	read(false)
	require.NoError(t, os.Remove(path))
	_, err = file.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.InDelta(t, 2, cost(), 0)

	_, err = price.NewFile(t.TempDir(), zap.NewNop()).Read()
	assert.ErrorContains(t, err, "no regular file")
}

func TestChangesAreReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	core, logs := observer.New(zap.InfoLevel)
	file := price.NewFile(path, zap.New(core))
	for range 3 {
		file.Look()
	}
	require.Len(t, logs.TakeAll(), 1, "once")
	assert.Len(t, file.Notices("ml_metrics"), 1)
	require.NoError(t, os.WriteFile(path, []byte(`[{"id": "p", "models": [{"match": {"equals": "m"}, "prices": {}}]}]`), 0o600))
	for range 3 {
		file.Look()
	}
	require.Len(t, logs.TakeAll(), 1, "nothing has changed after the first look")
	assert.Empty(t, file.Notices("ml_metrics"))
}

// A flood of names fills the memory to its limit, and new names have no price until
// the names are forgotten.
func TestNamesAreBounded(t *testing.T) {
	prices := table(t, `[{"id": "p", "models": [{"match": {"starts_with": "m"}, "prices": {"input_mtok": 1}}]}]`)
	for i := range 4096 {
		require.NotNil(t, prices.Find("p", "m"+strconv.Itoa(i), at))
	}
	assert.Nil(t, prices.Find("p", "mine", at))
	assert.NotNil(t, prices.Find("p", "m7", at))
	assert.NotNil(t, prices.Find("p", "mine", at.Add(time.Hour)))
	assert.Nil(t, prices.Find("p", "m"+strings.Repeat("x", 256), at))
	assert.Nil(t, prices.Find("p", "", at))
}

func TestFindDoesNotAllocate(t *testing.T) {
	prices := read(t, filepath.Join("testdata", "prices.json"))
	usage := price.Usage{Input: 300_000, CacheRead: 1000, Output: 7}
	require.NotNil(t, prices.Find("anthropic", "claude-sonnet-4-5", at))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		prices.Find("anthropic", "claude-sonnet-4-5", at).Rate(usage, at)
	}))
}

func TestHourOfAGPU(t *testing.T) {
	prices := price.NewGPUs(map[string]float64{"H100": 2.5, "H100 PCIe": 2, "A100": 1.5, "A100-SXM4-40GB": 1.2, "L4": 0.7, "MIG 1g.10gb": 0.4})
	for gpu, want := range map[string]float64{
		"NVIDIA H100 80GB HBM3": 2.5, "NVIDIA H100 PCIe": 2, "nvidia h100 pcie": 2, "NVIDIA A100-SXM4-80GB": 1.5,
		"NVIDIA A100-SXM4-40GB": 1.2, "NVIDIA L4": 0.7,
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb": 0.4,
	} {
		got, ok := prices.Hour(gpu)
		assert.True(t, ok, gpu)
		assert.InDelta(t, want, got, 0, gpu)
	}
	for _, gpu := range []string{"NVIDIA L40S", "NVIDIA XH100", "", "NVIDIA H1000 H100X", "NVIDIA A100-SXM4-40GB MIG 2g.10gb"} {
		_, ok := prices.Hour(gpu)
		assert.False(t, ok, gpu)
	}
	_, ok := price.NewGPUs(nil).Hour("NVIDIA L4")
	assert.False(t, ok)
}

// The reason is on the page and in the log.
func TestAReasonIsShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"id":"p","models":[{"prices":{"input_mtok":{"tiers":[{"start":`+strings.Repeat("1", 1<<20)+`}]}}}]}]`), 0o600))
	_, err := price.NewFile(path, zap.NewNop()).Read()
	require.ErrorContains(t, err, path)
	assert.Less(t, len(err.Error()), 1<<10)
}

func FuzzFile(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "prices.json"))
	require.NoError(f, err)
	f.Add(string(data), "anthropic", "claude-sonnet-4-5", int64(300_000), int64(10))
	f.Add(`[{"id":"p","models":[{"match":{"and":[{"contains":"m"},{"regex":"^m"}]},"prices":[{"constraint":{"start_time":"00:00:00Z","end_time":"01:00:00+02:00"},"prices":{"output_mtok":{"base":1}}}]}]}]`, "", "p/m", int64(1), int64(1))
	f.Add("null", "litellm", "/", int64(0), int64(0))
	f.Fuzz(func(t *testing.T, text, provider, model string, input, output int64) {
		path := filepath.Join(t.TempDir(), "prices.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		file := price.NewFile(path, zap.NewNop())
		if _, err := file.Read(); err != nil {
			assert.Nil(t, file.Table())
			return
		}
		usage := price.Usage{Input: max(input, 0), CacheRead: max(output, 0), Output: max(output, 0), Reasoning: max(input, 0)}
		cost, ok := file.Table().Find(provider, model, at).Rate(usage, at)
		if ok {
			assert.GreaterOrEqual(t, cost.Input, 0.0)
			assert.GreaterOrEqual(t, cost.Output, 0.0)
			assert.GreaterOrEqual(t, cost.Other, 0.0)
		}
	})
}
