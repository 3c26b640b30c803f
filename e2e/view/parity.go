package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// numbers are values by what they are of, such as "run trainer/run-17 steps". A
// state, such as that of a run, is a key of its own with the value 1.
type numbers map[string]float64

func (n numbers) set(value *float64, key ...string) {
	if value != nil {
		n[strings.Join(key, " ")] = *value
	}
}

func (n numbers) add(value float64, key ...string) { n[strings.Join(key, " ")] += value }

func (n numbers) most(value float64, key ...string) {
	at := strings.Join(key, " ")
	if old, known := n[at]; !known || value > old {
		n[at] = value
	}
}

// AwaitParity waits until the page, its text form and the metrics endpoint of a
// collector show the same numbers of runs, GPUs, models and pools. Nothing may
// send to the collector meanwhile, but its gpu receiver may read a recording.
func AwaitParity(tb testing.TB, c *harness.Collector) {
	tb.Helper()
	require.EventuallyWithT(tb, func(t *assert.CollectT) {
		samples, err := harness.Scrape(tb.Context(), c.Address(tb, "exporters::prometheus"))
		require.NoError(t, err)
		state, err := Read(tb.Context(), c.Address(tb, "exporters::ml_view"))
		require.NoError(t, err)
		text, err := ReadText(tb.Context(), c.Address(tb, "exporters::ml_view"))
		require.NoError(t, err)
		assert.Empty(t, state.Collector.Hidden, "rows beyond the page's limits cannot be compared")
		want, have := ofMetrics(samples), ofPage(state)
		assert.NotEmpty(t, want)
		assert.Empty(t, differences(want, have))
		assert.Empty(t, missingIn(text, state))
	}, time.Minute, 200*time.Millisecond)
}

// differences names the numbers that differ, or that only one of two has.
func differences(want, have numbers) (found []string) {
	for key, value := range want {
		switch shown, known := have[key]; {
		case !known:
			found = append(found, fmt.Sprintf("%s is %v in metrics and missing on the page", key, value))
		case math.Abs(shown-value) > 1e-9*math.Abs(value):
			found = append(found, fmt.Sprintf("%s is %v in metrics and %v on the page", key, value, shown))
		}
	}
	for key, value := range have {
		if _, known := want[key]; !known {
			found = append(found, fmt.Sprintf("%s is %v on the page and not in metrics", key, value))
		}
	}
	slices.Sort(found)
	return found
}

// ofPage returns the numbers of the page.
func ofPage(s *State) numbers {
	n := numbers{}
	for i := range s.Runs {
		n.ofRun(&s.Runs[i])
	}
	for i := range s.GPUs {
		n.ofGPU(&s.GPUs[i])
	}
	for _, m := range s.Models {
		model := "model " + strings.Join([]string{m.Service, m.Model, m.Role, m.Side}, "/")
		n.set(m.Requests, model, "requests")
		n.set(m.InputTokens, model, "input")
		n.set(m.OutputTokens, model, "output")
		for class, count := range m.Errors {
			n.add(count, model, "errors", class)
		}
	}
	for _, p := range s.Pools {
		pool := "pool " + p.Service + "/" + p.Pool
		n.set(p.Size, pool, p.Instance, "size")
		n.set(p.Busy, pool, p.Instance, "busy")
		n.set(p.Idle, pool, p.Instance, "idle")
		// These have no instance.
		n.set(p.Crashes, pool, "crashes")
		n.set(p.Breakers, pool, "breakers")
		n.set(p.Alerts, pool, "alerts")
	}
	return n
}

func (n numbers) ofRun(r *Run) {
	service := r.Service
	if r.Team != "" {
		service = r.Team + "/" + service
	}
	run := "run " + service + "/" + r.ID
	for name, value := range map[string]*float64{
		"steps": r.Steps, "step time": r.StepTime, "usual step time": r.StepTimeUsual, "tokens": r.Tokens,
		"samples": r.Samples, "loss " + r.LossScope: r.Loss, "learning rate": r.LearningRate, "epoch": r.Epoch,
		"goodput": r.Goodput, "gpus": r.GPUs, "gpu utilization": r.GPUUtilization, "attempts": r.Attempts, "errors": r.Errors,
	} {
		n.set(value, run, name)
	}
	if r.Bound != "" {
		n.add(1, run, "bound", r.Bound)
	}
	if r.StateSince != nil {
		n.add(1, run, "state", r.State)
		n.add(math.Round(float64(r.StateSince.UnixMicro())/1e3), run, "state since")
	}
}

func (n numbers) ofGPU(g *GPU) {
	gpu := "gpu " + g.Host + "/" + g.ID
	for name, value := range map[string]*float64{
		"utilization": g.Utilization, "used": g.MemoryUsed, "limit": g.MemoryLimit, "reserved": g.MemoryReserved,
		"power": g.Power, "power limit": g.PowerLimit, "temperature": g.Temperature,
	} {
		n.set(value, gpu, name)
	}
	if g.Health != "" {
		n.add(1, gpu, "health", g.Health)
	}
}

// missingIn names the rows of the page that the text form has not, or has with
// another number.
func missingIn(text string, s *State) (missing []string) {
	lines := strings.Split(text, "\n")
	show := func(row string, cells ...string) {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return !slices.ContainsFunc(cells, func(cell string) bool { return !strings.Contains(line, cell) })
		}) {
			missing = append(missing, fmt.Sprintf("no line of the text form has %q of %s", cells, row))
		}
	}
	whole := func(v *float64) string {
		// Larger numbers are rounded.
		if v == nil || *v >= 99_999 {
			return ""
		}
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	if s.Collector.Simulated && !strings.Contains(text, "SIMULATED DATA") && !strings.Contains(text, "RECORDED DATA") {
		missing = append(missing, "the text form does not say that data is simulated or recorded")
	}
	for _, r := range s.Runs {
		// It shows the first forty.
		switch over := r.State == "silent" || r.State == "ended"; {
		case len(s.Runs) > 40:
		case over:
			show("run "+r.Service+"/"+r.ID, cut(r.Service)) // several such runs are in one line, without numbers
		default:
			show("run "+r.Service+"/"+r.ID, cut(r.Service), whole(r.Steps))
		}
	}
	for _, g := range s.GPUs {
		if g.Power != nil && len(s.GPUs) <= 16 {
			show("gpu "+g.Host+"/"+g.ID, cut(g.Host+":"+g.Index), whole(g.Power))
		}
	}
	for _, p := range s.Pools {
		show("pool "+p.Service+"/"+p.Pool, cut(p.Service), cut(p.Pool), whole(p.Size))
	}
	return missing
}

// cut returns the beginning of a name: a narrow column has no more.
func cut(name string) string { return name[:min(len(name), 9)] }
