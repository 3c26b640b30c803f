package incident

import "github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"

// heldIdle: a job of another user keeps the memory of four GPUs that it has
// stopped to use. A run works on the host's other GPUs. The job works again.
func heldIdle(site *fleet.Site) course {
	host := site.AddHost("gpu-08", 8)
	places := fleet.Places(host)
	site.Train(fleet.Training{Service: "bert-ft", Job: 48255, User: 1004, Places: places[:4]})
	for _, place := range places[4:] {
		place.GPU.Hold(61<<30, fleet.Attr{Key: "slurm.job.id", Value: "48274"}, fleet.Attr{Key: "user.id", Value: "1003"})
	}
	work := func(use, power float64) func() {
		return func() {
			for _, place := range places[4:] {
				place.GPU.Use, place.GPU.Power = use, power
			}
		}
	}
	work(0.7, 450)()
	return course{begins: work(0, 118), ends: work(0.7, 450)}
}
