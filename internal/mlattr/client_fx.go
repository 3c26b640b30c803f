package mlattr

// fx is the vocabulary of the FX forecasting toolkit. Its keys are everyday
// words and its service may have no name, so its spans are recognised by their
// names, and everyday names also by their attributes.
//
// The number of an epoch is read from the span's name as well: the many
// loss_at_step_N keys of a long epoch can push "epoch" out of the SDK's limit
// of attributes.
func fx() Table {
	return Table{
		Name:   "fx",
		Title:  "FX forecasting toolkit",
		Page:   "https://github.com/crichalchemist/Sequence",
		Traits: []Trait{ProcessIsRun, IdlesBetweenSpans, NoStartup, TracePerSpan, StepsPerEpoch},
		Span: []Alias{
			{Source: "epoch", Canonical: Epoch},
			{Source: "total_epochs", Canonical: EpochTotal},
			{Source: "train_loss", Canonical: Loss},
			{Source: "loss", Canonical: Loss},
			{Source: "val_loss", Canonical: ValLoss},
			{Source: "val_metric", Canonical: ValMetric},
			{Source: "step", Canonical: Step},
			{Source: "batch_index", Canonical: BatchIndex},
			{Source: "batch_size", Canonical: BatchSize},
		},
		SpanPrefixes: []PrefixAlias{
			{Prefix: "task.", Canonical: LossTaskPrefix},
			{Prefix: "val.", Canonical: ValPrefix},
		},
		Names: []NameRule{
			{Match: Exact, Text: "training_epoch", Phase: PhaseEpoch, Operation: "training_epoch", LossScope: LossScopeEpoch, Identifies: true},
			{Match: Numbered, Text: "epoch_", Phase: PhaseEpoch, Operation: "epoch_{n}", LossScope: LossScopeEpoch, Number: Epoch, Identifies: true},
			{Match: Exact, Text: "batch_processing", Phase: PhaseBatch, Operation: "batch_processing", LossScope: LossScopeBatch, Evidence: []string{"batch_index", "batch_size", "loss", "task."}},
			{Match: Numbered, Text: "batch_", Phase: PhaseBatch, Operation: "batch_{n}", LossScope: LossScopeBatch, Number: BatchIndex, Evidence: []string{"step", "loss", "task."}},
			{Match: Exact, Text: "validation", Phase: PhaseValidation, Operation: "validation", Evidence: []string{"val_loss", "val_metric", "val."}},
			{Match: Numbered, Text: "validation_", Phase: PhaseValidation, Operation: "validation_{n}", Number: Epoch, Evidence: []string{"epoch", "val."}},
			{Match: Exact, Text: "data_loading", Phase: PhaseDataLoad, Operation: "data_loading", Evidence: []string{"pair", "num_samples"}},
			{Match: Exact, Text: "feature_engineering", Operation: "feature_engineering", Evidence: []string{"pair", "feature_count"}},
		},
	}
}
