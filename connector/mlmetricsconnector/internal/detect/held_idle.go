package detect

import (
	"math"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// holding is a workload on a host.
type holding struct {
	host string
	gpus.Holding
}

// heldIdle reports GPUs that workloads hold and that have done nothing for idle_timeout.
// The evidence is that of all GPUs of the workload on the host.
func heldIdle(s *State, report func(problem.Problem)) {
	held := make(map[holding][]gpus.Key)
	for key, idle := range s.GPUs.Idle {
		if s.Limits.Idle > 0 && idle.For >= s.Limits.Idle {
			by := holding{key.Host, idle.Holding}
			by.Owner.Rank = ""
			held[by] = append(held[by], key)
		}
	}
	for by, keys := range held {
		evidence := s.idleEvidence(keys)
		for _, key := range keys {
			idle := s.GPUs.Idle[key]
			report(problem.Problem{
				Kind: mlattr.ProblemHeldIdle, Onset: idle.Since, GPUs: 1, Telemetry: math.NaN(),
				Subject: problem.Subject{Host: key.Host, GPU: key.ID}, Evident: idle.Seen, Holder: by.Owner, HolderRun: by.Run,
				Value: idle.For.Seconds(), Usual: math.NaN(), Unit: "s", Held: []gpus.Key{key},
				Evidence: evidence, Next: "Ask the owner to free these GPUs.",
			})
		}
	}
}

// idleEvidence says what memory of GPUs is held, and since when they do nothing.
func (s *State) idleEvidence(keys []gpus.Key) (evidence []string) {
	measured, memory, since := 0, 0.0, s.Now
	for _, key := range keys {
		idle := s.GPUs.Idle[key]
		if idle.Memory > 0 {
			measured, memory = measured+1, memory+idle.Memory
		}
		if idle.Since.Before(since) {
			since = idle.Since
		}
	}
	if measured > 0 {
		text := gib(memory/float64(measured)) + " held"
		if len(keys) > 1 {
			text = strconv.Itoa(len(keys)) + " × " + text
		}
		evidence = append(evidence, text)
	}
	return append(evidence, quantity(len(keys), "GPU", "GPUs")+" at 0 % since "+clock(since))
}
