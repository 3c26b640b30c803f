package artifact

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/progress"
)

// maxStepsListed is how many ranks' last steps the script and the report list;
// trace.json has all that are known, up to maxStepsKept.
const (
	maxStepsListed = 16
	maxStepsKept   = 512
)

// gpuLines has a line for each GPU.
func gpuLines(gpus []gpustate.GPU) jsontree.Array {
	out := jsontree.Array{}
	for i := range gpus {
		out = append(out, gpuLine(&gpus[i]))
	}
	return out
}

func gpuLine(g *gpustate.GPU) string {
	var b strings.Builder
	b.WriteString("GPU")
	if g.Index >= 0 {
		fmt.Fprintf(&b, " %d", g.Index)
	}
	fmt.Fprintf(&b, " of %s (%s)", cmp.Or(g.Host, "(unknown)"), g.ID)
	if g.Replayed {
		b.WriteString(", from a recording")
	}
	if g.Own != "" {
		b.WriteString(", the process's own by its " + g.Own)
	}
	switch {
	case g.Used >= 0 && g.Limit >= 0:
		fmt.Fprintf(&b, ": %s of %s used", gibibytes(g.Used), gibibytes(g.Limit))
	case g.Used >= 0:
		fmt.Fprintf(&b, ": %s used", gibibytes(g.Used))
	}
	if g.Utilization >= 0 {
		fmt.Fprintf(&b, ", %.0f%% busy", 100*g.Utilization)
	}
	if g.Status != "" {
		b.WriteString(", " + g.Status)
	}
	if len(g.Throttled) > 0 {
		b.WriteString(", clocks held down by " + strings.Join(g.Throttled, ", "))
	}
	if len(g.Uses) > 0 && !slices.ContainsFunc(g.Uses, func(u gpustate.Use) bool { return u.Run != "" }) {
		b.WriteString("; no workload is joined to a run")
	}
	for i := range g.Uses {
		u := &g.Uses[i]
		b.WriteString("; " + workloadName(&u.Workload))
		if u.Memory >= 0 {
			b.WriteString(" has " + gibibytes(u.Memory))
		}
		if u.Utilization >= 0 {
			fmt.Fprintf(&b, " (%.0f%%)", 100*u.Utilization)
		}
	}
	if g.Omitted > 0 {
		fmt.Fprintf(&b, "; and others")
	}
	for _, x := range g.XIDs {
		fmt.Fprintf(&b, "; %s at %s", cmp.Or(x.Text, "(unknown)"), timeText(x.At))
	}
	if !g.At.IsZero() {
		b.WriteString("; read at " + timeText(g.At))
	}
	return b.String()
}

func gibibytes(n jsontree.Known) string {
	return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + " GiB"
}

// workloadName names a workload by what is known of it.
func workloadName(w *gpustate.Workload) string {
	var parts []string
	for _, m := range jsontree.OfKnown("rank", w.Rank, "run", w.Run, "service", w.Service, "job", w.Job, "pod", w.Pod) {
		parts = append(parts, fmt.Sprint(m.Key, " ", m.Value))
	}
	if w.PID != 0 {
		parts = append(parts, "process "+strconv.FormatInt(w.PID, 10))
	}
	if len(parts) == 0 && w.User != "" {
		parts = append(parts, "user "+w.User)
	}
	if len(parts) == 0 {
		return "a process"
	}
	return strings.Join(parts, ", ")
}

// stepLines has the ranks' last steps, and what they mean.
func stepLines(f *failure.Failure) jsontree.Array {
	out := jsontree.Array{}
	if reading := progress.Reading(f.Steps, f.WorldSize); reading != "" {
		out = append(out, reading)
	}
	for i := range f.Steps {
		if i == maxStepsListed {
			return append(out, fmt.Sprintf("and %d more", len(f.Steps)-i))
		}
		s := &f.Steps[i]
		line := "rank " + s.Rank + ": step " + strconv.FormatInt(s.Step, 10)
		if s.Epoch >= 0 {
			line += " of epoch " + strconv.FormatInt(int64(s.Epoch), 10)
		}
		if s.Span != "" {
			line += ", " + s.Span
		}
		if s.Host != "" {
			line += " on " + s.Host
		}
		out = append(out, line+", ended at "+timeText(s.At))
	}
	return out
}
