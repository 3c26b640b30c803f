package mlattr

// torchTitan is the vocabulary of torchtitan. Each device reports for itself.
//
// Its numbers come by a bridge, as those of Megatron-LM do.
func torchTitan() Table {
	return Table{
		Name:     "torchtitan",
		Packages: []string{"torchtitan"},
		Title:    "torchtitan",
		Page:     "https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/metrics.py",
		Services: []string{"torchtitan*"},
		Scopes:   []string{"torchtitan"},
		Metrics: []Metric{
			{Source: "throughput(tps)", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeInput, PerDevice: true},
			{Source: "tflops", Measure: MeasureFLOPThroughput, Instrument: Gauge, PerDevice: true, Everyday: true},
			{Source: "mfu(%)", Measure: MeasureMFU, Instrument: Gauge, Unit: "%", PerDevice: true, Everyday: true},
			{Source: "loss_metrics/global_avg_loss", Measure: MeasureLoss, Instrument: Gauge},
			{Source: "loss_metrics/global_max_loss", Measure: MeasureLoss, Instrument: Gauge, Repeats: []string{"loss_metrics/global_avg_loss"}},
			{Source: "grad_norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "time_metrics/end_to_end(s)", Measure: MeasureStepDuration, Instrument: Gauge},
			{Source: "time_metrics/data_loading(s)", Measure: MeasureDataLoadTime, Instrument: Gauge},
			{Source: "n_tokens_seen", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
		},
	}
}
