package detect

import (
	"math"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() {
	addPlain(mlattr.ProblemHeldIdle, whole(heldIdle), mlattr.ProblemGPUFailed, mlattr.ProblemLooksHung)
}

// holding is a workload on a host.
type holding struct {
	host string
	gpus.Victim
}

// idleGPUs are those of a workload that do nothing.
type idleGPUs struct {
	number, measured int
	memory           float64
	since            time.Time
}

// heldIdle reports GPUs that workloads hold and that have done nothing for idle_timeout.
// The evidence is that of all GPUs of the workload on the host.
func heldIdle(s *State, report func(problem.Problem)) {
	of := func(key gpus.Key, idle *gpus.Idle) holding {
		h := holding{key.Host, gpus.Victim{Run: idle.Run, Owner: idle.Holder}}
		h.Owner.Rank = ""
		return h
	}
	long := func(idle *gpus.Idle) bool { return s.Limits.Idle > 0 && idle.For >= s.Limits.Idle }
	held := make(map[holding]idleGPUs)
	for key, idle := range s.GPUs.Idle {
		if long(&idle) {
			all := held[of(key, &idle)]
			if all.number++; idle.Memory > 0 {
				all.measured, all.memory = all.measured+1, all.memory+idle.Memory
			}
			if all.since.IsZero() || idle.Since.Before(all.since) {
				all.since = idle.Since
			}
			held[of(key, &idle)] = all
		}
	}
	for key, idle := range s.GPUs.Idle {
		if long(&idle) {
			by := of(key, &idle)
			all := held[by]
			report(problem.Problem{
				Kind: mlattr.ProblemHeldIdle, Onset: idle.Since, GPUs: 1, Telemetry: math.NaN(),
				Subject: problem.Subject{Host: key.Host, GPU: key.ID}, Evident: idle.Seen, Holder: by.Owner, HolderRun: by.Run,
				Value: idle.For.Seconds(), Usual: math.NaN(), Unit: "s", Held: []gpus.Key{key},
				Evidence: all.evidence(), Next: "Ask the owner to free these GPUs.",
			})
		}
	}
}

// evidence says what memory is held, and since when nothing is done.
func (i idleGPUs) evidence() []string {
	idle := quantity(i.number, "GPU", "GPUs") + " at 0 % since " + clock(i.since)
	if i.measured == 0 {
		return []string{idle}
	}
	memory := gib(i.memory/float64(i.measured)) + " held"
	if i.number > 1 {
		memory = strconv.Itoa(i.number) + " × " + memory
	}
	return []string{memory, idle}
}
