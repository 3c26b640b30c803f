package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// torchTel is the vocabulary of TorchTel, which instruments PyTorch. Its
// resource identifies the process; its spans have names only.
//
// Its job_id is 0 under torchrun, also inside Slurm, and is no id then.
func torchTel() table.Table {
	return table.Table{
		Name:      "torchtel",
		Title:     "TorchTel",
		Services:  []string{"torchtel"},
		Scopes:    []string{"torchtel"},
		Signature: []string{"job_id", "local_rank", "global_rank", "world_size"},
		Traits:    []table.Trait{table.ProcessIsRun, table.NoStartup, table.OneTrace},
		Resource: []table.Alias{
			{Source: "job_id", Canonical: mlattr.JobID},
			{Source: "job_name", Canonical: mlattr.JobName},
			{Source: "user", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "cluster", Canonical: mlattr.Cluster},
			{Source: "local_rank", Canonical: mlattr.RankLocal},
			{Source: "global_rank", Canonical: mlattr.RankGlobal},
			{Source: "world_size", Canonical: mlattr.WorldSize},
			{Source: "host", Canonical: mlattr.HostName},
		},
		Span: []table.Alias{
			{Source: "duration.ms", Canonical: mlattr.Latency, Factor: 1e-3},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "train", Phase: mlattr.PhaseTrain},
			{Match: table.Exact, Text: "autograd.backward", Phase: mlattr.PhaseBackward},
			{Match: table.Exact, Text: "dataloader.next", Phase: mlattr.PhaseDataLoad},
			{Match: table.Suffix, Text: ".forward", Phase: mlattr.PhaseForward},
			{Match: table.Suffix, Text: ".step", Phase: mlattr.PhaseOptimizer},
		},
		Metrics: []table.Metric{
			// An optimizer that inherits from another one is counted twice.
			{Source: "train.step.count", Measure: table.MeasureSteps, Instrument: table.Counter, Everyday: true},
			{Source: "model.parameters", Measure: table.MeasureParameters, Instrument: table.Gauge, Everyday: true},
			{Source: "gpu.memory.bytes", Measure: table.MeasureGPUMemory, Instrument: table.Gauge, Everyday: true},
		},
	}
}
