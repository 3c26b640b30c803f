package artifact

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// maxStepsListed is how many ranks' last steps the script and the report list;
// trace.json has all that are known, up to maxStepsKept.
const (
	maxStepsListed = 16
	maxStepsKept   = 512
	// maxRanksNamed is how many ranks a sentence names.
	maxRanksNamed = 8
)

// surroundingsText has a line for a GPU, and one for the last step of a rank.
//
//go:embed surroundings.tmpl
var surroundingsText string

var surroundings = template.Must(template.New("").Funcs(template.FuncMap{
	"gibibytes": gibibytes, "percent": percent, "join": func(texts []string) string { return strings.Join(texts, ", ") },
	"workload": workloadName, "unjoined": unjoined, "time": timeText,
}).Parse(surroundingsText))

// lineOf returns the line of a GPU or step.
func lineOf(name string, of any) string {
	var b strings.Builder
	_ = surroundings.ExecuteTemplate(&b, name, of) // The functions do not fail, and all fields are there.
	return b.String()
}

// gpuLines has a line for each GPU.
func gpuLines(gpus []gpustate.GPU) jsontree.Array {
	out := jsontree.Array{}
	for i := range gpus {
		out = append(out, lineOf("gpu", &gpus[i]))
	}
	return out
}

// unjoined reports whether nothing of what uses a GPU is known to be of a run.
func unjoined(uses []gpustate.Use) bool {
	return len(uses) > 0 && !slices.ContainsFunc(uses, func(u gpustate.Use) bool { return u.Run != "" })
}

func percent(of gpustate.Ratio) string { return fmt.Sprintf("%.0f%%", 100*of) }

func gibibytes(n jsontree.Known) string {
	return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + " GiB"
}

// workloadName names a workload by what is known of it.
func workloadName(w gpustate.Workload) string {
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
	if reading := readingOf(f.Steps, f.WorldSize); reading != "" {
		out = append(out, reading)
	}
	for i := range f.Steps {
		if i == maxStepsListed {
			return append(out, fmt.Sprintf("and %d more", len(f.Steps)-i))
		}
		out = append(out, lineOf("step", &f.Steps[i]))
	}
	return out
}

// readingOf returns what the last steps of a run's ranks mean, in words, the rank furthest
// behind first. world is the number of ranks that there should be, or 0.
func readingOf(steps []failure.Step, world int) string {
	if len(steps) < 2 {
		return ""
	}
	first, last := steps[0].Step, steps[len(steps)-1].Step
	known := make(map[string]bool, len(steps))
	var behind, unseen []string
	for _, s := range steps {
		known[s.Rank] = true
		if s.Step == first && len(behind) < maxRanksNamed {
			behind = append(behind, s.Rank)
		}
	}
	reading := fmt.Sprintf("Furthest behind: rank %s, whose last step is %d; the first are at %d.", strings.Join(behind, ", "), first, last)
	if first == last {
		reading = fmt.Sprintf("All ranks that are known ended step %d: none is behind.", last)
	}
	for i := 0; i < world && len(unseen) < maxRanksNamed; i++ {
		if name := strconv.Itoa(i); !known[name] {
			unseen = append(unseen, name)
		}
	}
	if missing := world - len(steps); missing > 0 {
		reading += fmt.Sprintf(" No step was seen of %d of %d ranks: %s.", missing, world, strings.Join(unseen, ", "))
	}
	return reading
}
