package mlattr

// launchers is the vocabulary of training launchers and schedulers. It is no
// client's and holds for every resource.
//
// The order within one canonical name is the order of precedence: a tracking
// server's run id says more than a launcher's.
func launchers() Table {
	return Table{
		Name:  "launchers",
		Title: "Launchers and schedulers",
		Resource: []Alias{
			{Source: "mlflow.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "mlflow.run.id", Canonical: RunID, Kind: KindJobID},
			{Source: mlflowRunVariable, Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run.id", Canonical: RunID, Kind: KindJobID},
			{Source: wandbRunVariable, Canonical: RunID, Kind: KindJobID},
			// torchrun writes the literal "none" where nobody set an id.
			{Source: elasticRunVariable, Canonical: RunID, Kind: KindJobID},
			{Source: "slurm.job.id", Canonical: JobID},
			{Source: "SLURM_JOB_ID", Canonical: JobID},
			{Source: "k8s.job.uid", Canonical: KubernetesJob},
			{Source: "TORCHELASTIC_RESTART_COUNT", Canonical: RunAttempt},
			{Source: "SLURM_RESTART_COUNT", Canonical: RunAttempt},
		},
		Changes: deployed,
		Span: []Alias{
			{Source: "mlflow.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "mlflow.run.id", Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run_id", Canonical: RunID, Kind: KindJobID},
			{Source: "wandb.run.id", Canonical: RunID, Kind: KindJobID},
		},
	}
}

// Environment variables that name a process's run.
const (
	mlflowRunVariable  = "MLFLOW_RUN_ID"
	wandbRunVariable   = "WANDB_RUN_ID"
	elasticRunVariable = "TORCHELASTIC_RUN_ID"
)

// RunVariables are the environment variables that name a process's run, in the
// order of precedence: a tracking server's run, which is what a user looks up,
// before the launcher's, which names only one launch. A Sentinel names no run.
var RunVariables = [...]string{mlflowRunVariable, wandbRunVariable, elasticRunVariable}
