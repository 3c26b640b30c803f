package mlattr

// launchers is what training launchers and schedulers are known by. It is no
// client's vocabulary and holds for every resource.
//
// The order within one canonical name is the order of precedence: a tracking
// server's run id says more than the launcher's.
func launchers() Table {
	return Table{
		Name:  "launchers",
		Title: "Launchers and schedulers",
		Resource: []Alias{
			{Source: "mlflow.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "mlflow.run.id", Canonical: RunID, Kind: KindJobID},
			{Source: "MLFLOW_RUN_ID", Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run.id", Canonical: RunID, Kind: KindJobID},
			{Source: "WANDB_RUN_ID", Canonical: RunID, Kind: KindJobID},
			// torchrun writes the literal "none" where nobody set an id.
			{Source: "TORCHELASTIC_RUN_ID", Canonical: RunID, Kind: KindJobID},
			{Source: "slurm.job.id", Canonical: JobID},
			{Source: "SLURM_JOB_ID", Canonical: JobID},
			{Source: "k8s.job.uid", Canonical: KubernetesJob},
			{Source: "TORCHELASTIC_RESTART_COUNT", Canonical: RunAttempt},
			{Source: "SLURM_RESTART_COUNT", Canonical: RunAttempt},
		},
		Span: []Alias{
			{Source: "mlflow.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "mlflow.run.id", Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run.id", Canonical: RunID, Kind: KindJobID},
		},
	}
}
