package incident

import "github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"

// hangAtStart: the processes of a run hold GPU memory and send metrics, but take
// no first step: their first collective never ends. It is so from the beginning, until
// somebody starts the run again.
func hangAtStart(site *fleet.Site) course {
	run := site.Train(fleet.Training{
		Service: "mixtral-pretrain", Job: 48290, User: 1005, Places: fleet.Places(site.AddHost("gpu-09", 8)), Stuck: true,
	})
	return course{begins: run.Stick, ends: func() { run.Mend(run.Places) }}
}
