package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// nemoLens is the vocabulary of NVIDIA's NeMo Lens, through which Megatron-LM,
// NeMo-RL, NeMo-Gym and the NVIDIA Resiliency Extension send telemetry. By
// default one rank of a run sends, the last.
//
// Lens renames what it sends: "dl." becomes "nv.dl.", and a step is counted from
// 1 then. Both are read. Without a run id in its environment, and without Slurm,
// each process makes up one.
func nemoLens() table.Table {
	t := table.Table{
		Name:        "nemo_lens",
		Packages:    []string{"nemo", "nemo_rl", "nemo_gym", "nvidia_resiliency_ext"},
		Title:       "NVIDIA NeMo Lens",
		Page:        "https://pypi.org/project/nemo-lens/",
		Services:    []string{"nemo", "nemo-rl*", "nemo-gym*"},
		Scopes:      []string{"nemo.lens"},
		KeyPrefixes: []string{"nemo.", "dl.", "nv.dl.", "nv.gpu.", "nvrx."},
		Traits:      []table.Trait{table.SomeRanksSend, table.StepsInMetrics},
		// Restarts within a Slurm job say more than Slurm's own.
		Resource: []table.Alias{
			{Source: "nemo.run.id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "nv.dl.job.uuid", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "nv.dl.run.uuid", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "nvrx.cycle", Canonical: mlattr.RunAttempt},
			{Source: "slurm.torchelastic.restart_count", Canonical: mlattr.RunAttempt},
			{Source: "slurm.restart_count", Canonical: mlattr.RunAttempt},
			{Source: "slurm.job.name", Canonical: mlattr.JobName},
			{Source: "slurm.cluster.name", Canonical: mlattr.Cluster},
			{Source: "nemo.user.id", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "dl.gpu.index", Canonical: mlattr.GPUIndex, Kind: table.KindDevice},
			{Source: "nv.gpu.index", Canonical: mlattr.GPUIndex, Kind: table.KindDevice},
			{Source: "dl.gpu.uuid", Canonical: mlattr.GPUUUID},
			{Source: "nv.gpu.uuid", Canonical: mlattr.GPUUUID},
			{Source: "nv.dl.training.config.global_batch_size", Canonical: mlattr.JobBatchSize},
			{Source: "nv.dl.training.config.sequence_length", Canonical: mlattr.SequenceLength},
			{Source: "dl.batch_size", Canonical: mlattr.JobBatchSize},
			{Source: "dl.sequence_length", Canonical: mlattr.SequenceLength},
		},
		Changes: append(settings("nv.dl.training.config.", "global_batch_size", "micro_batch_size", "sequence_length", "optimizer",
			"recompute_granularity"), settings("nv.dl.topology.size.", "tp", "pp", "dp")...),
		Span: []table.Alias{
			{Source: "nv.dl.training.step", Canonical: mlattr.Step},
			{Source: "nv.dl.training.objective.value", Canonical: mlattr.Loss},
			{Source: "nv.dl.training.learning_rate", Canonical: mlattr.LearningRate},
			{Source: "rl.step", Canonical: mlattr.Step},
			{Source: "rl.epoch", Canonical: mlattr.Epoch},
		},
		Events: []table.Event{
			{Name: "nv.dl.training.objective", Kind: table.EventTrainNumbers},
			{Name: "nv.dl.training.numerics", Kind: table.EventTrainNumbers},
		},
		Names: append(append(nemoTraining(), nemoRL()...),
			table.NameRule{Match: table.Prefix, Text: "nv.dl.", Identifies: true},
			table.NameRule{Match: table.Prefix, Text: "nvrx.", Identifies: true},
		),
		Metrics: []table.Metric{
			{Source: "nv.dl.training.tokens.processed", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput, OfJob: true},
			// gen_ai.client.token.usage counts the same tokens, and vLLM's own
			// metrics do.
			{Source: "rl.vllm.prompt_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput, Repeats: generatedTokens},
			{Source: "rl.vllm.generation_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput, Repeats: generatedTokens},
			{Source: "rl.policy.loss", Measure: table.MeasureLoss, Instrument: table.Gauge},
			{Source: "rl.policy_loss", Measure: table.MeasureLoss, Instrument: table.Gauge},
			{Source: "rl.grad_norm", Measure: table.MeasureGradientNorm, Instrument: table.Gauge},
			{Source: "rl.learning_rate", Measure: table.MeasureLearningRate, Instrument: table.Gauge},
		},
	}
	for _, names := range [][3]string{
		{"dl.rank", "dl.local_rank", "dl.world_size"}, {"nv.dl.rank", "nv.dl.local_rank", "nv.dl.world_size"},
	} {
		t.Resource = append(t.Resource, table.Alias{Source: names[0], Canonical: mlattr.RankGlobal},
			table.Alias{Source: names[1], Canonical: mlattr.RankLocal}, table.Alias{Source: names[2], Canonical: mlattr.WorldSize})
	}
	return t
}

// generatedTokens are the other metrics in which NeMo-RL counts the tokens that
// its model generates.
var generatedTokens = []string{"gen_ai.client.token.usage"}

// nemoTraining are the spans of training under the newer names. One of
// nv.dl.training.iter_block contains a step with its checkpoint and validation.
func nemoTraining() []table.NameRule {
	return []table.NameRule{
		{Match: table.Exact, Text: "nv.dl.training.iter_block", Phase: mlattr.PhaseBatch, Operation: "train_iteration", WholeStep: true, Identifies: true},
		{Match: table.Exact, Text: "nv.dl.training.iteration", WholeStep: true, Identifies: true},
		{Match: table.Exact, Text: "nv.dl.training.iteration.forward_backward", Phase: mlattr.PhaseForwardBackward, Identifies: true},
		{Match: table.Exact, Text: "nv.dl.training.iteration.optimizer_step", Phase: mlattr.PhaseOptimizer, Identifies: true},
		{Match: table.Exact, Text: "nv.dl.training.checkpoint.exposed_save", Phase: mlattr.PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true},
		{Match: table.Exact, Text: "nv.dl.training.checkpoint.load", Phase: mlattr.PhaseCheckpoint, Operation: "load_checkpoint", Identifies: true},
		{Match: table.Exact, Text: "nv.dl.training.evaluate", Phase: mlattr.PhaseValidation, Operation: "evaluate", Identifies: true},
	}
}

// nemoRL are the spans of NeMo-RL: a step of its algorithm contains rollouts and
// the update of the policy, which is what trains.
func nemoRL() (rules []table.NameRule) {
	for _, algorithm := range []string{"grpo", "ppo", "sft", "dpo", "rm", "distillation"} {
		prefix := "rl." + algorithm + "."
		rules = append(rules,
			table.NameRule{Match: table.Exact, Text: prefix + "step", Phase: mlattr.PhaseBatch, Operation: algorithm + "_step", WholeStep: true, Identifies: true},
			table.NameRule{Match: table.Exact, Text: prefix + "policy_update", Phase: mlattr.PhaseForwardBackward, Identifies: true},
			table.NameRule{Match: table.Exact, Text: prefix + "data_processing", Phase: mlattr.PhaseDataLoad, Identifies: true},
			table.NameRule{Match: table.Exact, Text: prefix + "save_checkpoint", Phase: mlattr.PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true},
			table.NameRule{Match: table.Exact, Text: prefix + "evaluate", Phase: mlattr.PhaseValidation, Operation: "evaluate", Identifies: true},
		)
	}
	return rules
}
