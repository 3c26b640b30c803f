package mlattr

// nemoLens is the vocabulary of NVIDIA's NeMo Lens, through which Megatron-LM,
// NeMo-RL, NeMo-Gym and the NVIDIA Resiliency Extension send telemetry. By
// default one rank of a run sends, the last.
//
// Lens renames what it sends: "dl." becomes "nv.dl.", and a step is counted from
// 1 then. Both are read. Without a run id in its environment, and without Slurm,
// each process makes up one.
func nemoLens() Table {
	t := Table{
		Name:        "nemo_lens",
		Packages:    []string{"nemo", "nemo_rl", "nemo_gym", "nvidia_resiliency_ext"},
		Title:       "NVIDIA NeMo Lens",
		Page:        "https://pypi.org/project/nemo-lens/",
		Services:    []string{"nemo", "nemo-rl*", "nemo-gym*"},
		Scopes:      []string{"nemo.lens"},
		KeyPrefixes: []string{"nemo.", "dl.", "nv.dl.", "nv.gpu.", "nvrx."},
		Traits:      []Trait{SomeRanksSend, StepsInMetrics},
		// Restarts within a Slurm job say more than Slurm's own.
		Resource: []Alias{
			{Source: "nemo.run.id", Canonical: RunID, Kind: KindJobID},
			{Source: "nv.dl.job.uuid", Canonical: RunID, Kind: KindJobID},
			{Source: "nv.dl.run.uuid", Canonical: RunID, Kind: KindJobID},
			{Source: "nvrx.cycle", Canonical: RunAttempt},
			{Source: "slurm.torchelastic.restart_count", Canonical: RunAttempt},
			{Source: "slurm.restart_count", Canonical: RunAttempt},
			{Source: "slurm.job.name", Canonical: JobName},
			{Source: "slurm.cluster.name", Canonical: Cluster},
			{Source: "nemo.user.id", Canonical: User, Kind: KindSecret},
			{Source: "dl.gpu.index", Canonical: GPUIndex, Kind: KindDevice},
			{Source: "nv.gpu.index", Canonical: GPUIndex, Kind: KindDevice},
			{Source: "dl.gpu.uuid", Canonical: GPUUUID},
			{Source: "nv.gpu.uuid", Canonical: GPUUUID},
			{Source: "nv.dl.training.config.global_batch_size", Canonical: JobBatchSize},
			{Source: "nv.dl.training.config.sequence_length", Canonical: SequenceLength},
			{Source: "dl.batch_size", Canonical: JobBatchSize},
			{Source: "dl.sequence_length", Canonical: SequenceLength},
		},
		Changes: append(settings("nv.dl.training.config.", "global_batch_size", "micro_batch_size", "sequence_length", "optimizer",
			"recompute_granularity"), settings("nv.dl.topology.size.", "tp", "pp", "dp")...),
		Span: []Alias{
			{Source: "nv.dl.training.step", Canonical: Step},
			{Source: "nv.dl.training.objective.value", Canonical: Loss},
			{Source: "nv.dl.training.learning_rate", Canonical: LearningRate},
			{Source: "rl.step", Canonical: Step},
			{Source: "rl.epoch", Canonical: Epoch},
		},
		Events: []Event{
			{"nv.dl.training.objective", EventTrainNumbers},
			{"nv.dl.training.numerics", EventTrainNumbers},
		},
		Names: append(append(nemoTraining(), nemoRL()...),
			NameRule{Match: Prefix, Text: "nv.dl.", Identifies: true},
			NameRule{Match: Prefix, Text: "nvrx.", Identifies: true},
		),
		Metrics: []Metric{
			{Source: "nv.dl.training.tokens.processed", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput, OfJob: true},
			// gen_ai.client.token.usage counts the same tokens, and vLLM's own
			// metrics do.
			{Source: "rl.vllm.prompt_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput, Repeats: generatedTokens},
			{Source: "rl.vllm.generation_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput, Repeats: generatedTokens},
			{Source: "rl.policy.loss", Measure: MeasureLoss, Instrument: Gauge},
			{Source: "rl.policy_loss", Measure: MeasureLoss, Instrument: Gauge},
			{Source: "rl.grad_norm", Measure: MeasureGradientNorm, Instrument: Gauge},
			{Source: "rl.learning_rate", Measure: MeasureLearningRate, Instrument: Gauge},
		},
	}
	for _, names := range [][3]string{
		{"dl.rank", "dl.local_rank", "dl.world_size"}, {"nv.dl.rank", "nv.dl.local_rank", "nv.dl.world_size"},
	} {
		t.Resource = append(t.Resource, Alias{Source: names[0], Canonical: RankGlobal},
			Alias{Source: names[1], Canonical: RankLocal}, Alias{Source: names[2], Canonical: WorldSize})
	}
	return t
}

// generatedTokens are the other metrics in which NeMo-RL counts the tokens that
// its model generates.
var generatedTokens = []string{"gen_ai.client.token.usage"}

// nemoTraining are the spans of training under the newer names. One of
// nv.dl.training.iter_block contains a step with its checkpoint and validation.
func nemoTraining() []NameRule {
	return []NameRule{
		{Match: Exact, Text: "nv.dl.training.iter_block", Phase: PhaseBatch, Operation: "train_iteration", WholeStep: true, Identifies: true},
		{Match: Exact, Text: "nv.dl.training.iteration", WholeStep: true, Identifies: true},
		{Match: Exact, Text: "nv.dl.training.iteration.forward_backward", Phase: PhaseForwardBackward, Identifies: true},
		{Match: Exact, Text: "nv.dl.training.iteration.optimizer_step", Phase: PhaseOptimizer, Identifies: true},
		{Match: Exact, Text: "nv.dl.training.checkpoint.exposed_save", Phase: PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true},
		{Match: Exact, Text: "nv.dl.training.checkpoint.load", Phase: PhaseCheckpoint, Operation: "load_checkpoint", Identifies: true},
		{Match: Exact, Text: "nv.dl.training.evaluate", Phase: PhaseValidation, Operation: "evaluate", Identifies: true},
	}
}

// nemoRL are the spans of NeMo-RL: a step of its algorithm contains rollouts and
// the update of the policy, which is what trains.
func nemoRL() (rules []NameRule) {
	for _, algorithm := range []string{"grpo", "ppo", "sft", "dpo", "rm", "distillation"} {
		prefix := "rl." + algorithm + "."
		rules = append(rules,
			NameRule{Match: Exact, Text: prefix + "step", Phase: PhaseBatch, Operation: algorithm + "_step", WholeStep: true, Identifies: true},
			NameRule{Match: Exact, Text: prefix + "policy_update", Phase: PhaseForwardBackward, Identifies: true},
			NameRule{Match: Exact, Text: prefix + "data_processing", Phase: PhaseDataLoad, Identifies: true},
			NameRule{Match: Exact, Text: prefix + "save_checkpoint", Phase: PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true},
			NameRule{Match: Exact, Text: prefix + "evaluate", Phase: PhaseValidation, Operation: "evaluate", Identifies: true},
		)
	}
	return rules
}
