package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// fx is the vocabulary of the FX forecasting toolkit. Its keys are everyday
// words and its service may have no name, so its spans are recognised by their
// names, and everyday names also by their attributes.
//
// The number of an epoch is read from the span's name as well: the many
// loss_at_step_N keys of a long epoch can push "epoch" out of the SDK's limit
// of attributes.
func fx() table.Table {
	return table.Table{
		Name:   "fx",
		Title:  "FX forecasting toolkit",
		Page:   "https://github.com/crichalchemist/Sequence",
		Traits: []table.Trait{table.ProcessIsRun, table.IdlesBetweenSpans, table.NoStartup, table.TracePerSpan, table.StepsPerEpoch},
		Span: []table.Alias{
			{Source: "epoch", Canonical: mlattr.Epoch},
			{Source: "total_epochs", Canonical: mlattr.EpochTotal},
			{Source: "train_loss", Canonical: mlattr.Loss},
			{Source: "loss", Canonical: mlattr.Loss},
			{Source: "val_loss", Canonical: mlattr.ValLoss},
			{Source: "val_metric", Canonical: mlattr.ValMetric},
			{Source: "step", Canonical: mlattr.Step},
			{Source: "batch_index", Canonical: mlattr.BatchIndex},
			{Source: "batch_size", Canonical: mlattr.BatchSize},
		},
		SpanPrefixes: []table.PrefixAlias{
			{Prefix: "task.", Canonical: mlattr.LossTaskPrefix},
			{Prefix: "val.", Canonical: mlattr.ValPrefix},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "training_epoch", Phase: mlattr.PhaseEpoch, Operation: "training_epoch", LossScope: mlattr.LossScopeEpoch, Identifies: true},
			{Match: table.Numbered, Text: "epoch_", Phase: mlattr.PhaseEpoch, Operation: "epoch_{n}", LossScope: mlattr.LossScopeEpoch, Number: mlattr.Epoch, Identifies: true},
			{Match: table.Exact, Text: "batch_processing", Phase: mlattr.PhaseBatch, Operation: "batch_processing", LossScope: mlattr.LossScopeBatch, Evidence: []string{"batch_index", "batch_size", "loss", "task."}},
			{Match: table.Numbered, Text: "batch_", Phase: mlattr.PhaseBatch, Operation: "batch_{n}", LossScope: mlattr.LossScopeBatch, Number: mlattr.BatchIndex, Evidence: []string{"step", "loss", "task."}},
			{Match: table.Exact, Text: "validation", Phase: mlattr.PhaseValidation, Operation: "validation", Evidence: []string{"val_loss", "val_metric", "val."}},
			{Match: table.Numbered, Text: "validation_", Phase: mlattr.PhaseValidation, Operation: "validation_{n}", Number: mlattr.Epoch, Evidence: []string{"epoch", "val."}},
			{Match: table.Exact, Text: "data_loading", Phase: mlattr.PhaseDataLoad, Operation: "data_loading", Evidence: []string{"pair", "num_samples"}},
			{Match: table.Exact, Text: "feature_engineering", Operation: "feature_engineering", Evidence: []string{"pair", "feature_count"}},
		},
	}
}
