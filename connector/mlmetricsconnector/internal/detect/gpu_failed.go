package detect

import (
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addPlain(mlattr.ProblemGPUFailed, whole(failedGPUs)) }

// failedGPUs reports failed GPUs, once for each run that held one, else for one workload.
func failedGPUs(s *State, report func(problem.Problem)) {
	for key, failure := range s.GPUs.Failed {
		held := slices.DeleteFunc(slices.Clone(failure.Held), func(v gpus.Victim) bool { return v.Run == "" })
		if len(held) == 0 {
			held = append(failure.Held, gpus.Victim{})[:1]
		}
		for _, by := range held {
			report(problem.Problem{
				Kind: mlattr.ProblemGPUFailed, Onset: failure.Since, Evident: failure.Seen, GPUs: 1,
				Subject: problem.Subject{Resource: s.Owners.Of(by.Run, by.Owner.Service), Run: by.Run, Host: key.Host, GPU: key.ID},
				Holder:  by.Owner, Value: math.NaN(), Usual: math.NaN(), Telemetry: math.NaN(),
			})
		}
	}
}
