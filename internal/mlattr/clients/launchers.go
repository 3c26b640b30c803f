package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Launchers is the vocabulary of training launchers and schedulers. It is no
// client's and holds for every resource.
//
// The order within one canonical name is the order of precedence: a tracking
// server's run id says more than a launcher's.
func Launchers() table.Table {
	return table.Table{
		Name:  "launchers",
		Title: "Launchers and schedulers",
		Resource: []table.Alias{
			{Source: "mlflow.run_id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "mlflow.run.id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: mlflowRunVariable, Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "wandb.run_id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "wandb.run.id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: wandbRunVariable, Canonical: mlattr.RunID, Kind: table.KindJobID},
			// torchrun writes the literal "none" where nobody set an id.
			{Source: elasticRunVariable, Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "slurm.job.id", Canonical: mlattr.JobID},
			{Source: "SLURM_JOB_ID", Canonical: mlattr.JobID},
			{Source: "k8s.job.uid", Canonical: mlattr.KubernetesJob},
			{Source: "TORCHELASTIC_RESTART_COUNT", Canonical: mlattr.RunAttempt},
			{Source: "SLURM_RESTART_COUNT", Canonical: mlattr.RunAttempt},
		},
		Changes: deployed,
		Span: []table.Alias{
			{Source: "mlflow.run_id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "mlflow.run.id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "wandb.run_id", Canonical: mlattr.RunID, Kind: table.KindJobID},
			{Source: "wandb.run.id", Canonical: mlattr.RunID, Kind: table.KindJobID},
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
