package mlattr

// axolotl is the vocabulary of Axolotl, whose metrics are scraped. They name
// neither the run nor the rank.
func axolotl() Table {
	return Table{
		Name:           "axolotl",
		Packages:       []string{"axolotl"},
		Title:          "Axolotl",
		Page:           "https://docs.axolotl.ai/docs/config-reference.html",
		Services:       []string{"axolotl*"},
		Scopes:         []string{"axolotl."},
		MetricPrefixes: []string{"axolotl_"},
		Traits:         []Trait{ProcessIsRun, StepsInMetrics},
		Metrics: []Metric{
			{Source: "axolotl_global_steps", Measure: MeasureSteps, Instrument: Counter},
			{Source: "axolotl_train_loss", Measure: MeasureLoss, Instrument: Gauge},
			{Source: "axolotl_learning_rate", Measure: MeasureLearningRate, Instrument: Gauge},
			{Source: "axolotl_gradient_norm", Measure: MeasureGradientNorm, Instrument: Gauge},
		},
	}
}
