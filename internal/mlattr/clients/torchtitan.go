package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// torchTitan is the vocabulary of torchtitan. Each device reports for itself.
//
// Its numbers of training come by a bridge, as those of Megatron-LM do. Its
// reinforcement learning sends OTLP, of the inference engine only, with times in
// milliseconds and the counters' names of vLLM.
func torchTitan() table.Table {
	return table.Table{
		Name:     "torchtitan",
		Packages: []string{"torchtitan"},
		Title:    "torchtitan",
		Page:     "https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/metrics.py",
		Services: []string{"torchtitan*"},
		Scopes:   []string{"torchtitan"},
		// The resource of an inference engine, whose service is the user's.
		Signature: []string{"generator_name", "engine_index", "tp_rank"},
		Resource: []table.Alias{
			{Source: "rank", Canonical: mlattr.RankGlobal},
			{Source: "local_rank", Canonical: mlattr.RankLocal},
			{Source: "world_size", Canonical: mlattr.WorldSize},
			{Source: "hostname", Canonical: mlattr.HostName},
			{Source: "model_name", Canonical: mlattr.GenAIRequestModel},
		},
		Metrics: []table.Metric{
			{Source: "throughput(tps)", Measure: table.MeasureTokenThroughput, Instrument: table.Gauge, TokenType: mlattr.TokenTypeInput, PerDevice: true},
			{Source: "tflops", Measure: table.MeasureFLOPThroughput, Instrument: table.Gauge, PerDevice: true, Everyday: true},
			{Source: "mfu(%)", Measure: table.MeasureMFU, Instrument: table.Gauge, Unit: "%", PerDevice: true, Everyday: true},
			{Source: "loss_metrics/global_avg_loss", Measure: table.MeasureLoss, Instrument: table.Gauge},
			{Source: "loss_metrics/global_max_loss", Measure: table.MeasureLoss, Instrument: table.Gauge, Repeats: []string{"loss_metrics/global_avg_loss"}},
			{Source: "grad_norm", Measure: table.MeasureGradientNorm, Instrument: table.Gauge, Everyday: true},
			{Source: "time_metrics/end_to_end(s)", Measure: table.MeasureStepDuration, Instrument: table.Gauge},
			{Source: "time_metrics/data_loading(s)", Measure: table.MeasureDataLoadTime, Instrument: table.Gauge},
			{Source: "vllm.cached_prompt_tokens", Measure: table.MeasureCachedTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "vllm.time_to_first_token", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram, Unit: "ms"},
			{Source: "vllm.inter_token_latency", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram, Unit: "ms"},
			{Source: "vllm.e2e_latency", Measure: table.MeasureRequestDuration, Instrument: table.Histogram, Unit: "ms"},
			{Source: "vllm.queue_time", Measure: table.MeasureQueueTime, Instrument: table.Histogram, Unit: "ms"},
			{Source: "n_tokens_seen", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
		},
	}
}
