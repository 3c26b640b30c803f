package mlattr

// tuft is the vocabulary of TuFT, a fine-tuning service for many tenants. A
// session of TuFT is a client's connection, not a conversation.
func tuft() Table {
	training := []string{"training_", "hf_model."}
	sampling := []string{"sampling_backend."}
	t := Table{
		Name:           "tuft",
		Title:          "TuFT",
		Services:       []string{"tuft*"},
		Scopes:         []string{"tuft"},
		KeyPrefixes:    []string{"tuft."},
		MetricPrefixes: []string{"tuft."},
		Traits:         []Trait{ManyRuns, IdlesBetweenSpans, NoStartup, ReportsSamples},
		Span: []Alias{
			{Source: "tuft.session_id", Canonical: SessionID},
			{Source: "tuft.training_run_id", Canonical: TrainingRunID},
			{Source: "tuft.model_id", Canonical: TrainingRunID},
			{Source: "tuft.lora_id", Canonical: TrainingRunID, SpanPrefixes: training},
			{Source: "tuft.sampling_session_id", Canonical: SamplingSessionID},
			{Source: "tuft.lora_id", Canonical: SamplingSessionID, SpanPrefixes: sampling},
			{Source: "tuft.request_id", Canonical: RequestID},
			{Source: "tuft.operation_type", Canonical: Operation},
			{Source: "tuft.base_model", Canonical: GenAIRequestModel},
			{Source: "oai.base_model", Canonical: GenAIRequestModel},
			{Source: "oai.model", Canonical: GenAIRequestModel},
			{Source: "oai.user_id", Canonical: User, Kind: KindSecret},
			{Source: "tuft.data_count", Canonical: BatchSize},
			{Source: "tuft.num_micro_batches", Canonical: MicrobatchCount},
			{Source: "tuft.learning_rate", Canonical: LearningRate},
		},
		Point: []Alias{
			{Source: "base_model", Canonical: GenAIRequestModel},
			// A model of TuFT is the adapter that one training run makes.
			{Source: "model_id", Canonical: RunID},
			{Source: "operation_type", Canonical: Operation},
			{Source: "gpu_id", Canonical: GPUIndex, Kind: KindDevice},
		},
		Metrics: []Metric{
			// The time of the rate includes the wait for the lock.
			{Source: "tuft.training.tokens_per_second", Measure: MeasureTokenThroughput, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "tuft.sampling.tokens_per_second", Measure: MeasureTokenThroughput, Instrument: Histogram, TokenType: TokenTypeOutput},
			{Source: "tuft.sampling.output_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput},
			{Source: "tuft.sampling.requests", Measure: MeasureRequests, Instrument: Counter},
			{Source: "tuft.sampling.duration", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "tuft.futures.wait_time", Measure: MeasureQueueTime, Instrument: Histogram},
		},
		// Every operation is a future, except for those that are a WholeCall of
		// their own. The spans below are the same operation in other layers.
		Names: []NameRule{
			{Match: Exact, Text: "training_controller.create_model", Operation: "create_model", Identifies: true, Call: WholeCall},
			{Match: Exact, Text: "training_controller.run_forward", Phase: PhaseForward, Operation: "forward", Identifies: true, Queued: true},
			{Match: Exact, Text: "training_controller.run_forward_backward", Phase: PhaseForwardBackward, Operation: "forward_backward", Identifies: true, Queued: true},
			{Match: Exact, Text: "training_controller.run_optim_step", Phase: PhaseOptimizer, Operation: "optim_step", Identifies: true, Queued: true},
			{Match: Exact, Text: "training_controller.save_checkpoint", Phase: PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true, Queued: true},
			{Match: Exact, Text: "sampling_controller.create_sampling_session", Operation: "create_sampling_session", Identifies: true, Call: WholeCall},
			{Match: Exact, Text: "sampling_controller.run_sample", Phase: PhaseSample, Operation: "sample", Identifies: true},
			{Match: Exact, Text: "sampling_backend.sample", Phase: PhaseSample, Operation: "sample", Identifies: true},
			{Match: Exact, Text: "sampling_backend.add_adapter", Operation: "add_adapter", Identifies: true},
			{Match: Exact, Text: "sampling_backend.remove_adapter", Operation: "remove_adapter", Identifies: true},
			{Match: Exact, Text: "future_store.execute_operation", Identifies: true, Call: WholeCall, Queued: true},
			{Match: Exact, Text: "oai.proxy_inference", Phase: PhaseSample, Operation: "proxy_inference", Call: WholeCall},
			{Match: Prefix, Text: "training_controller.run_", Queued: true},
		},
	}
	// The backend and the model behind it, which may be in another process,
	// have the same operations.
	for _, part := range []string{"training_backend.", "hf_model."} {
		own := part == "training_backend."
		t.Names = append(t.Names,
			NameRule{Match: Exact, Text: part + "create_adapter", Operation: "create_adapter", Identifies: own},
			NameRule{Match: Exact, Text: part + "remove_adapter", Operation: "remove_adapter", Identifies: own},
			NameRule{Match: Exact, Text: part + "forward", Phase: PhaseForward, Operation: "forward", Identifies: own},
			NameRule{Match: Exact, Text: part + "forward_backward", Phase: PhaseForwardBackward, Operation: "forward_backward", Identifies: own},
			NameRule{Match: Exact, Text: part + "optim_step", Phase: PhaseOptimizer, Operation: "optim_step", Identifies: own},
			NameRule{Match: Exact, Text: part + "save_state", Phase: PhaseCheckpoint, Operation: "save_weights", Identifies: own},
			NameRule{Match: Exact, Text: part + "load_state", Phase: PhaseCheckpoint, Operation: "load_weights", Identifies: own},
		)
	}
	return t
}
