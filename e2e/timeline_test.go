package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// timed is a span of a training program by what its client's documentation says
// it is, in nanoseconds since 1970. It shares no code with the collector.
type timed struct {
	start, end int64
	// phase is the ml.phase of the span, and state what its time is used for:
	// the first in states wins where several overlap. Each may be empty.
	phase, state string
	// step is true where a step ends with the span.
	step bool
}

// states are those with a span, in the order of precedence.
var states = []string{"productive", "checkpoint", "checkpoint_restore", "validation", "data_load", "queue"}

// timeline is the training of one process of a run.
type timeline struct {
	spans []timed
	// silence is the state of a time without a span.
	silence string
}

// timelines are the training programs of a scenario, by process or run.
func timelines(spans []*sentlog.Span, scenario string) map[string]*timeline {
	found := map[string]*timeline{}
	for _, span := range ofScenario(spans, scenario) {
		key, t, ok := trainingOf(span)
		if !ok {
			continue
		}
		t.start, t.end = span.StartUnixNano, span.EndUnixNano
		if found[key] == nil {
			found[key] = &timeline{silence: map[string]string{"torchtel": "other"}[scenario]}
			if found[key].silence == "" {
				found[key].silence = "idle"
			}
		}
		found[key].spans = append(found[key].spans, t)
	}
	return found
}

// trainingOf says what a span is to a training, and of which process or run.
func trainingOf(span *sentlog.Span) (key string, t timed, ok bool) {
	switch span.Scenario {
	case "torchtel":
		t.phase, _ = canonicalFacts(span)["ml.phase"].(string)
		t.state = map[string]string{"forward": "productive", "backward": "productive", "optimizer": "productive", "data_load": "data_load"}[t.phase]
		// The generator's AdamW calls Adam.
		t.step = span.Name == "AdamW.step"
		return fmt.Sprint(span.Resource["global_rank"]), t, t.state != ""
	case "tuft":
		run, isRun := canonicalFacts(span)["ml.training_run.id"].(string)
		part, operation, _ := strings.Cut(span.Name, ".")
		phases := map[string]string{
			"run_forward": "forward", "forward": "forward", "run_forward_backward": "forward_backward", "forward_backward": "forward_backward",
			"run_optim_step": "optimizer", "optim_step": "optimizer",
			"save_checkpoint": "checkpoint", "save_state": "checkpoint", "load_state": "checkpoint",
		}
		t.phase = phases[operation]
		switch {
		case !isRun:
			return "", t, false
		case part == "future_store", part == "training_controller" && t.phase != "":
			t.state = "queue"
		case operation == "load_state":
			t.state = "checkpoint_restore"
		case t.phase == "checkpoint":
			t.state = "checkpoint"
		case t.phase != "":
			t.state = "productive"
		}
		t.step = operation == "run_optim_step"
		return run, t, t.state != ""
	case "fx":
		switch name, _, _ := strings.Cut(span.Name, "_"); {
		case name == "batch":
			t.phase, t.state, t.step = "batch", "productive", span.ParentSpanID == "" && span.Status.Code != "error"
		case name == "validation":
			t.phase, t.state = "validation", "validation"
		case span.Name == "data_loading":
			t.phase, t.state = "data_load", "data_load"
		}
		return fmt.Sprint(span.Resource["service.name"]), t, t.state != ""
	default:
		return "", t, false
	}
}

// edges are the moments at which anything begins or ends, in order.
func (tl *timeline) edges() []int64 {
	var at []int64
	for _, s := range tl.spans {
		at = append(at, s.start, s.end)
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// seconds divides the whole time by state.
func (tl *timeline) seconds() map[string]float64 {
	nanoseconds := map[string]int64{}
	edges := tl.edges()
	for i := range edges[1:] {
		from, to := edges[i], edges[i+1]
		used := tl.silence
		for _, state := range slices.Backward(states) {
			if slices.ContainsFunc(tl.spans, func(s timed) bool { return s.state == state && s.start <= from && s.end >= to }) {
				used = state
			}
		}
		nanoseconds[used] += to - from
	}
	found := map[string]float64{}
	for state, n := range nanoseconds {
		found[state] = float64(n) / 1e9
	}
	return found
}

// steps are the phases of each step in seconds, from the end of the step before
// to its own; "other" is the rest of the step and always there.
func (tl *timeline) steps() []map[string]float64 {
	var ends []int64
	for _, s := range tl.spans {
		if s.step {
			ends = append(ends, s.end)
		}
	}
	slices.Sort(ends)
	byPhase := map[string][]timed{}
	for _, s := range tl.spans {
		if s.phase != "" {
			byPhase[s.phase] = append(byPhase[s.phase], s)
			byPhase[""] = append(byPhase[""], s)
		}
	}
	var found []map[string]float64
	if len(ends) == 0 {
		return nil
	}
	from := tl.edges()[0]
	for _, end := range ends {
		step := map[string]float64{"step": float64(end-from) / 1e9}
		for phase, spans := range byPhase {
			if n := covered(spans, from, end); phase == "" {
				step["other"] = float64(end-from-n) / 1e9
			} else if n > 0 {
				step[phase] = float64(n) / 1e9
			}
		}
		found = append(found, step)
		from = end
	}
	return found
}

// covered is how many nanoseconds between two moments lie in a span.
func covered(spans []timed, from, to int64) (n int64) {
	sorted := slices.SortedFunc(slices.Values(spans), func(a, b timed) int { return cmp.Compare(a.start, b.start) })
	for _, s := range sorted {
		start, end := max(s.start, from), min(s.end, to)
		if end > start {
			n += end - start
			from = end
		}
	}
	return n
}
