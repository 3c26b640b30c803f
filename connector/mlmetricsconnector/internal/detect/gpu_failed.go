package detect

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// recoveries say what the driver asks for, and what to do.
var recoveries = map[int]string{
	mlattr.RecoveryReset:         "The driver asks for a reset. Stop what uses the GPU, then reset it.",
	mlattr.RecoveryReboot:        "The driver asks for a reboot. Drain the host, then reboot it.",
	mlattr.RecoveryDrainPeers:    "The driver asks to end peer-to-peer work. Stop the runs that use this GPU together with others.",
	mlattr.RecoveryDrainAndReset: "The driver asks to drain and reset the GPU. Let its run end, then reset it.",
	mlattr.RecoveryIMEX:          "The driver asks to restart the IMEX domain of the GPU.",
}

// failedGPUs reports failed GPUs, once for each run that held one, else for one workload.
func failedGPUs(s *State, report func(problem.Problem)) {
	for key, failure := range s.GPUs.Failed {
		held := slices.DeleteFunc(slices.Clone(failure.Held), func(v gpus.Holding) bool { return v.Run == "" })
		if len(held) == 0 {
			held = append(failure.Held, gpus.Holding{})[:1]
		}
		for _, by := range held {
			report(problem.Problem{
				Kind: mlattr.ProblemGPUFailed, Onset: failure.Since, Evident: failure.Seen, GPUs: 1,
				Subject: problem.Subject{Resource: s.Owners.Of(by.Run, by.Owner.Service), Run: by.Run, Host: key.Host, GPU: key.ID},
				Holder:  by.Owner, Value: math.NaN(), Usual: math.NaN(), Telemetry: math.NaN(),
				Held: []gpus.Key{key}, GPUIndex: failure.Index, Recovery: failure.Recovery,
				Evidence: []string{"the driver reports the state failed"},
				Next:     cmp.Or(recoveries[failure.Recovery], "Drain the host, and find out what the driver reports: nvidia-smi -q."),
			})
		}
	}
}
