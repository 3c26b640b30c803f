package mlattr

// torchTitan is the vocabulary of torchtitan. Each device reports for itself.
//
// Its numbers of training come by a bridge, as those of Megatron-LM do. Its
// reinforcement learning sends OTLP, of the inference engine only, with times in
// milliseconds and the counters' names of vLLM.
func torchTitan() Table {
	return Table{
		Name:     "torchtitan",
		Packages: []string{"torchtitan"},
		Title:    "torchtitan",
		Page:     "https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/metrics.py",
		Services: []string{"torchtitan*"},
		Scopes:   []string{"torchtitan"},
		// The resource of an inference engine, whose service is the user's.
		Signature: []string{"generator_name", "engine_index", "tp_rank"},
		Resource: []Alias{
			{Source: "rank", Canonical: RankGlobal},
			{Source: "local_rank", Canonical: RankLocal},
			{Source: "world_size", Canonical: WorldSize},
			{Source: "hostname", Canonical: HostName},
			{Source: "model_name", Canonical: GenAIRequestModel},
		},
		Metrics: []Metric{
			{Source: "throughput(tps)", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeInput, PerDevice: true},
			{Source: "tflops", Measure: MeasureFLOPThroughput, Instrument: Gauge, PerDevice: true, Everyday: true},
			{Source: "mfu(%)", Measure: MeasureMFU, Instrument: Gauge, Unit: "%", PerDevice: true, Everyday: true},
			{Source: "loss_metrics/global_avg_loss", Measure: MeasureLoss, Instrument: Gauge},
			{Source: "loss_metrics/global_max_loss", Measure: MeasureLoss, Instrument: Gauge, Repeats: []string{"loss_metrics/global_avg_loss"}},
			{Source: "grad_norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "time_metrics/end_to_end(s)", Measure: MeasureStepDuration, Instrument: Gauge},
			{Source: "time_metrics/data_loading(s)", Measure: MeasureDataLoadTime, Instrument: Gauge},
			{Source: "vllm.cached_prompt_tokens", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "vllm.time_to_first_token", Measure: MeasureTimeToFirstToken, Instrument: Histogram, Unit: "ms"},
			{Source: "vllm.inter_token_latency", Measure: MeasureTimePerOutputToken, Instrument: Histogram, Unit: "ms"},
			{Source: "vllm.e2e_latency", Measure: MeasureRequestDuration, Instrument: Histogram, Unit: "ms"},
			{Source: "vllm.queue_time", Measure: MeasureQueueTime, Instrument: Histogram, Unit: "ms"},
			{Source: "n_tokens_seen", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
		},
	}
}
