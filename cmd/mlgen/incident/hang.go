package incident

import "github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"

// hang: rank 13 of 16 ends its data_load and sends nothing more. The others end
// their forward passes and wait for it, with their GPUs at 100 % and low power.
// Somebody starts the run again.
func hang(site *fleet.Site) course {
	run := site.Train(fleet.Training{
		Service: "llama-sft", Job: 48211, User: 1001,
		Places: fleet.Places(site.AddHost("gpu-01", 8), site.AddHost("gpu-02", 8)),
	})
	return course{begins: func() { run.Hang(13) }, ends: func() { run.Mend(run.Places) }}
}
