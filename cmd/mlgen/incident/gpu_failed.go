package incident

import "github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"

// gpuFailed: a GPU falls off the bus (XID 79), the run that it worked for fails, and starts
// again on another host. Somebody repairs the GPU.
func gpuFailed(site *fleet.Site) course {
	breaks, spare := site.AddHost("gpu-10", 4), site.AddHost("gpu-11", 4)
	run := site.Train(fleet.Training{Service: "vit-pretrain", Job: 48301, User: 1006, Places: fleet.Places(breaks)})
	return course{
		begins: func() {
			run.Crash(2, "torch.AcceleratorError", "CUDA error: unspecified launch failure")
			run.Mend(fleet.Places(spare))
			site.FallOffTheBus(breaks, 2)
		},
		ends: func() {
			breaks.GPUs[2].Failed = false
			run.Mend(fleet.Places(breaks))
		},
	}
}
