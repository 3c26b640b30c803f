package incident

import "github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"

// slowInput: a run restarts as attempt 2, half of it on a new node, and its
// data_load grows so that a step takes 60 % longer. Somebody starts it again where it was.
func slowInput(site *fleet.Site) course {
	stays, leaves := site.AddHost("gpu-03", 4), site.AddHost("gpu-04", 4)
	run := site.Train(fleet.Training{
		Service: "qwen-dpo", Job: 48260, User: 1002, Places: fleet.Places(stays, leaves),
	})
	comes := site.AddHost("gpu-05", 4)
	return course{
		begins: func() {
			run.Restart(fleet.Places(stays, comes))
			run.SlowInput(1.6)
		},
		ends: func() { run.Mend(fleet.Places(stays, leaves)) },
	}
}
