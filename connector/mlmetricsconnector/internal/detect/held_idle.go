package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() {
	addPlain(mlattr.ProblemHeldIdle, whole(heldIdle), mlattr.ProblemGPUFailed, mlattr.ProblemLooksHung)
}

// heldIdle reports GPUs that workloads hold and that have done nothing for idle_timeout.
func heldIdle(s *State, report func(problem.Problem)) {
	for key, idle := range s.GPUs.Idle {
		if s.Limits.Idle > 0 && idle.For >= s.Limits.Idle {
			report(problem.Problem{
				Kind: mlattr.ProblemHeldIdle, Onset: idle.Since, GPUs: 1, Telemetry: math.NaN(),
				Subject: problem.Subject{Host: key.Host, GPU: key.ID}, Evident: idle.Seen, Holder: idle.Holder,
				Value: idle.For.Seconds(), Usual: math.NaN(), Unit: "s",
			})
		}
	}
}
