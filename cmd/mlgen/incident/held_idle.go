package incident

import "github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"

// heldIdle: a job of another user keeps the memory of four GPUs that it has
// stopped to use. A run works on the host's other GPUs.
func heldIdle(site *fleet.Site) {
	host := site.AddHost("gpu-08", 8)
	places := fleet.Places(host)
	site.Train(fleet.Training{Service: "bert-ft", Job: 48255, User: 1004, Places: places[:4]})
	for _, place := range places[4:] {
		place.GPU.Hold(61<<30, fleet.Attr{Key: "slurm.job.id", Value: "48274"}, fleet.Attr{Key: "user.id", Value: "1003"})
		place.GPU.Use, place.GPU.Power = 0.7, 450
	}
	site.Before(Onset+1, func() {
		for _, place := range places[4:] {
			place.GPU.Use, place.GPU.Power = 0, 118
		}
	})
}
