package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// mlLines is the vocabulary of the ml_lines connector, which makes spans of what training
// programs print. It gives each start of a program a trace. In many programs one rank
// prints for all.
func mlLines() table.Table {
	return table.Table{
		Name:   "printed_lines",
		Title:  "Lines of training programs",
		Page:   "https://github.com/otelcol-ml/otelcol-ml/blob/main/docs/lines.md",
		Scopes: []string{"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector"},
		Traits: []table.Trait{table.ProcessIsRun, table.OneTrace, table.SomeRanksSend},
		Names: []table.NameRule{
			// Checkpoints, validations and the wait for data may be within it.
			{Match: table.Exact, Text: "train_step", Phase: mlattr.PhaseBatch, Operation: "train_step", WholeStep: true},
		},
	}
}
