package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// tuft is the vocabulary of TuFT, a fine-tuning service for many tenants. A
// session of TuFT is a client's connection, not a conversation.
func tuft() table.Table {
	training := []string{"training_", "hf_model."}
	sampling := []string{"sampling_backend."}
	t := table.Table{
		Name:           "tuft",
		Title:          "TuFT",
		Services:       []string{"tuft*"},
		Scopes:         []string{"tuft"},
		KeyPrefixes:    []string{"tuft."},
		MetricPrefixes: []string{"tuft."},
		Traits:         []table.Trait{table.ManyRuns, table.IdlesBetweenSpans, table.NoStartup, table.ReportsSamples},
		Span: []table.Alias{
			{Source: "tuft.session_id", Canonical: mlattr.SessionID},
			{Source: "tuft.training_run_id", Canonical: mlattr.TrainingRunID},
			{Source: "tuft.model_id", Canonical: mlattr.TrainingRunID},
			{Source: "tuft.lora_id", Canonical: mlattr.TrainingRunID, SpanPrefixes: training},
			{Source: "tuft.sampling_session_id", Canonical: mlattr.SamplingSessionID},
			{Source: "tuft.lora_id", Canonical: mlattr.SamplingSessionID, SpanPrefixes: sampling},
			{Source: "tuft.request_id", Canonical: mlattr.RequestID},
			{Source: "tuft.operation_type", Canonical: mlattr.Operation},
			{Source: "tuft.base_model", Canonical: mlattr.GenAIRequestModel},
			{Source: "oai.base_model", Canonical: mlattr.GenAIRequestModel},
			{Source: "oai.model", Canonical: mlattr.GenAIRequestModel},
			{Source: "oai.user_id", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "tuft.data_count", Canonical: mlattr.BatchSize},
			{Source: "tuft.num_micro_batches", Canonical: mlattr.MicrobatchCount},
			{Source: "tuft.learning_rate", Canonical: mlattr.LearningRate},
		},
		Point: []table.Alias{
			{Source: "base_model", Canonical: mlattr.GenAIRequestModel},
			// A model of TuFT is the adapter that one training run makes.
			{Source: "model_id", Canonical: mlattr.RunID},
			{Source: "operation_type", Canonical: mlattr.Operation},
			{Source: "gpu_id", Canonical: mlattr.GPUIndex, Kind: table.KindDevice},
		},
		Metrics: []table.Metric{
			// The time of the rate includes the wait for the lock.
			{Source: "tuft.training.tokens_per_second", Measure: table.MeasureTokenThroughput, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "tuft.sampling.tokens_per_second", Measure: table.MeasureTokenThroughput, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput},
			{Source: "tuft.sampling.output_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput},
			{Source: "tuft.sampling.requests", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "tuft.sampling.duration", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "tuft.futures.wait_time", Measure: table.MeasureQueueTime, Instrument: table.Histogram},
		},
		// Every operation is a future, except for those that are a WholeCall of
		// their own. The spans below are the same operation in other layers.
		Names: []table.NameRule{
			{Match: table.Exact, Text: "training_controller.create_model", Operation: "create_model", Identifies: true, Call: table.WholeCall},
			{Match: table.Exact, Text: "training_controller.run_forward", Phase: mlattr.PhaseForward, Operation: "forward", Identifies: true, Queued: true},
			{Match: table.Exact, Text: "training_controller.run_forward_backward", Phase: mlattr.PhaseForwardBackward, Operation: "forward_backward", Identifies: true, Queued: true},
			{Match: table.Exact, Text: "training_controller.run_optim_step", Phase: mlattr.PhaseOptimizer, Operation: "optim_step", Identifies: true, Queued: true},
			{Match: table.Exact, Text: "training_controller.save_checkpoint", Phase: mlattr.PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true, Queued: true},
			{Match: table.Exact, Text: "sampling_controller.create_sampling_session", Operation: "create_sampling_session", Identifies: true, Call: table.WholeCall},
			{Match: table.Exact, Text: "sampling_controller.run_sample", Phase: mlattr.PhaseSample, Operation: "sample", Identifies: true},
			{Match: table.Exact, Text: "sampling_backend.sample", Phase: mlattr.PhaseSample, Operation: "sample", Identifies: true},
			{Match: table.Exact, Text: "sampling_backend.add_adapter", Operation: "add_adapter", Identifies: true},
			{Match: table.Exact, Text: "sampling_backend.remove_adapter", Operation: "remove_adapter", Identifies: true},
			{Match: table.Exact, Text: "future_store.execute_operation", Identifies: true, Call: table.WholeCall, Queued: true},
			{Match: table.Exact, Text: "oai.proxy_inference", Phase: mlattr.PhaseSample, Operation: "proxy_inference", Call: table.WholeCall},
			{Match: table.Prefix, Text: "training_controller.run_", Queued: true},
		},
	}
	// The backend and the model behind it, which may be in another process,
	// have the same operations.
	for _, part := range []string{"training_backend.", "hf_model."} {
		own := part == "training_backend."
		t.Names = append(t.Names,
			table.NameRule{Match: table.Exact, Text: part + "create_adapter", Operation: "create_adapter", Identifies: own},
			table.NameRule{Match: table.Exact, Text: part + "remove_adapter", Operation: "remove_adapter", Identifies: own},
			table.NameRule{Match: table.Exact, Text: part + "forward", Phase: mlattr.PhaseForward, Operation: "forward", Identifies: own},
			table.NameRule{Match: table.Exact, Text: part + "forward_backward", Phase: mlattr.PhaseForwardBackward, Operation: "forward_backward", Identifies: own},
			table.NameRule{Match: table.Exact, Text: part + "optim_step", Phase: mlattr.PhaseOptimizer, Operation: "optim_step", Identifies: own},
			table.NameRule{Match: table.Exact, Text: part + "save_state", Phase: mlattr.PhaseCheckpoint, Operation: "save_weights", Identifies: own},
			table.NameRule{Match: table.Exact, Text: part + "load_state", Phase: mlattr.PhaseCheckpoint, Operation: "load_weights", Identifies: own},
		)
	}
	return t
}
