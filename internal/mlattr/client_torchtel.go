package mlattr

// torchTel is the vocabulary of TorchTel, which instruments PyTorch. Its
// resource identifies the process; its spans have names only.
//
// Its job_id is 0 under torchrun, also inside Slurm, and is no id then.
func torchTel() Table {
	return Table{
		Name:      "torchtel",
		Title:     "TorchTel",
		Services:  []string{"torchtel"},
		Scopes:    []string{"torchtel"},
		Signature: []string{"job_id", "local_rank", "global_rank", "world_size"},
		Traits:    []Trait{ProcessIsRun, NoStartup, OneTrace},
		Resource: []Alias{
			{Source: "job_id", Canonical: JobID},
			{Source: "job_name", Canonical: JobName},
			{Source: "user", Canonical: User, Kind: KindSecret},
			{Source: "cluster", Canonical: Cluster},
			{Source: "local_rank", Canonical: RankLocal},
			{Source: "global_rank", Canonical: RankGlobal},
			{Source: "world_size", Canonical: WorldSize},
			{Source: "host", Canonical: HostName},
		},
		Span: []Alias{
			{Source: "duration.ms", Canonical: Latency, Factor: 1e-3},
		},
		Names: []NameRule{
			{Match: Exact, Text: "train", Phase: PhaseTrain},
			{Match: Exact, Text: "autograd.backward", Phase: PhaseBackward},
			{Match: Exact, Text: "dataloader.next", Phase: PhaseDataLoad},
			{Match: Suffix, Text: ".forward", Phase: PhaseForward},
			{Match: Suffix, Text: ".step", Phase: PhaseOptimizer},
		},
		Metrics: []Metric{
			// An optimizer that inherits from another one is counted twice.
			{Source: "train.step.count", Measure: MeasureSteps, Instrument: Counter, Everyday: true},
			{Source: "model.parameters", Measure: MeasureParameters, Instrument: Gauge, Everyday: true},
			{Source: "gpu.memory.bytes", Measure: MeasureGPUMemory, Instrument: Gauge, Everyday: true},
		},
	}
}
