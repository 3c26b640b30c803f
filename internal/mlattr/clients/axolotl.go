package clients

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"

// axolotl is the vocabulary of Axolotl, whose metrics are scraped. They name
// neither the run nor the rank.
func axolotl() table.Table {
	return table.Table{
		Name:           "axolotl",
		Packages:       []string{"axolotl"},
		Title:          "Axolotl",
		Page:           "https://docs.axolotl.ai/docs/config-reference.html",
		Services:       []string{"axolotl*"},
		Scopes:         []string{"axolotl."},
		MetricPrefixes: []string{"axolotl_"},
		Traits:         []table.Trait{table.ProcessIsRun, table.StepsInMetrics},
		Metrics: []table.Metric{
			{Source: "axolotl_global_steps", Measure: table.MeasureSteps, Instrument: table.Counter},
			{Source: "axolotl_train_loss", Measure: table.MeasureLoss, Instrument: table.Gauge},
			{Source: "axolotl_learning_rate", Measure: table.MeasureLearningRate, Instrument: table.Gauge},
			{Source: "axolotl_gradient_norm", Measure: table.MeasureGradientNorm, Instrument: table.Gauge},
		},
	}
}
