package detect

import (
	"fmt"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// grows reports the GPU of a run whose memory reaches its limit first.
func grows(_ *State, r *runs.Run, report func(problem.Problem)) {
	if r.State != runs.Running || !r.GPUs.Silent.IsZero() {
		return
	}
	var first *gpus.State
	for i := range r.GPUs.All {
		if g := &r.GPUs.All[i]; g.Grows && (first == nil || g.Memory.Left < first.Memory.Left) {
			first = g
		}
	}
	if first == nil {
		return
	}
	f := &first.Memory
	p := of(r, mlattr.ProblemMemoryGrowth)
	p.Onset, p.Rank, p.Host, p.GPU = f.Since, first.Rank, first.Host, first.ID
	p.Value, p.Usual, p.Unit, p.Window, p.Count = f.To, f.From, "By", f.Window, int64(f.Count)
	p.Evidence = []string{
		fmt.Sprintf("GPU memory grows by %s an hour", gib(f.PerHour)),
		fmt.Sprintf("%s of %s are used: full in %s", gib(f.To), gib(first.Limit), f.Left.Round(time.Minute)),
	}
	p.Next = "Record a snapshot of the allocator's memory: torch.cuda.memory._record_memory_history."
	report(p)
}
