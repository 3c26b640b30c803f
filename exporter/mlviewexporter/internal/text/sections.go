package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

func (d *document) runs() {
	type run = model.Run
	if len(d.state.Runs) == 0 {
		d.title(bold, "RUNS", 0, 0)
		d.lines("no run has sent data yet")
		return
	}
	now := d.state.Time
	section(d, "RUNS", "runs", maxRuns, slices.SortedStableFunc(slices.Values(d.state.Runs), byOrder), []column[run]{
		{title: "run", least: 16, text: func(r *run) string { return printable(r.Service) }},
		{title: "id", leave: 3, text: func(r *run) string { return shortID(r.ID) }},
		{title: "data", text: func(r *run) string { return simulated(r.Simulated) }},
		{title: "owner", least: 5, leave: 8, text: func(r *run) string { return printable(r.Owner) }},
		{title: "job", least: 6, leave: 9, text: func(r *run) string { return printable(r.Job) }},
		{title: "state", text: runState},
		{title: "GPUs", right: true, text: func(r *run) string { return trimmed(r.GPUs) }},
		{title: "GPU use", right: true, leave: 7, text: func(r *run) string { return percent(r.GPUUtilization) }},
		{title: "step", right: true, text: func(r *run) string { return count(r.Steps) }},
		{title: "s/step", right: true, text: func(r *run) string { return number(r.StepTime) }},
		{title: "vs usual", right: true, leave: 1, text: func(r *run) string { return change(r.StepTime, r.StepTimeUsual) }},
		{title: "tok/s", right: true, text: func(r *run) string { return number(r.TokenRate) }},
		{title: "samples/s", right: true, leave: 12, text: func(r *run) string { return number(r.SampleRate) }},
		{title: "loss", right: true, leave: 4, text: func(r *run) string { return loss(r.Loss) }},
		{title: "goodput", right: true, leave: 10, text: func(r *run) string { return percent(r.Goodput) }},
		{title: "waits for", leave: 11, text: bound},
		{title: "ckpt age", right: true, leave: 6, text: func(r *run) string { return age(now, r.LastCheckpoint) }},
		{title: "restarts", right: true, leave: 5, text: restarts},
		{title: "errors", right: true, leave: 13, text: func(r *run) string { return count(r.Errors) }},
		{title: "last step", right: true, leave: 2, text: func(r *run) string { return age(now, r.LastStep) }},
	}, nil)
}

func runState(r *model.Run) string {
	if r.State == "stalled" {
		return words(model.LooksHung)
	}
	return words(r.State)
}

// bound says what the run's steps wait for.
func bound(r *model.Run) string {
	switch r.Bound {
	case "input":
		return "data"
	case "gpu":
		return "GPU"
	case "unknown":
		return ""
	default:
		return words(r.Bound)
	}
}

func restarts(r *model.Run) string {
	if r.Attempts == nil {
		return ""
	}
	return count(new(max(0, *r.Attempts-1)))
}

func (d *document) gpus() {
	type gpu = model.GPU
	now := d.state.Time
	section(d, "GPUS", "gpus", maxGPUs, d.state.GPUs, []column[gpu]{
		{title: "GPU", least: 10, text: func(g *gpu) string {
			index := printable(g.Index)
			if index == "" {
				index = shortID(g.ID)
			}
			return joined(":", printable(g.Host), index)
		}},
		{title: "name", least: 8, leave: 8, text: func(g *gpu) string { return printable(g.Name) }},
		{title: "data", text: func(g *gpu) string { return simulated(g.Simulated) }},
		{title: "does", text: func(g *gpu) string { return words(g.Activity) }},
		{title: "use", right: true, text: func(g *gpu) string { return percent(g.Utilization) }},
		{title: "memory", right: true, text: func(g *gpu) string { return memory(g.MemoryUsed, g.MemoryLimit) }},
		{title: "not attributed", right: true, leave: 6, text: func(g *gpu) string { return memory(g.MemoryUnattributed, nil) }},
		{title: "power", right: true, leave: 1, text: func(g *gpu) string { return withUnit(g.Power, g.PowerLimit, "W") }},
		{title: "temp.", right: true, leave: 4, text: func(g *gpu) string { return withUnit(g.Temperature, nil, "°C") }},
		{title: "health", leave: 3, text: func(g *gpu) string {
			if g.XID != nil {
				return joined(" ", words(g.Health), "XID", printable(g.XID.Code), age(now, &g.XID.Time), "ago")
			}
			return words(g.Health)
		}},
		{title: "throttled by", least: 12, leave: 7, text: func(g *gpu) string { return words(strings.Join(g.Throttle, ", ")) }},
		{title: "idle", right: true, leave: 2, text: func(g *gpu) string { return age(now, g.IdleSince) }},
		{title: "held by", least: 16, text: holders},
	}, nil)
}

func holders(g *model.GPU) string {
	var texts []string
	for _, h := range g.Holders {
		name := printable(h.Service)
		switch {
		case name == "":
			name = printable(h.Name)
		case h.Rank != "":
			name += " rank " + printable(h.Rank)
		}
		texts = append(texts, joined(" ", name, prefixed("(", printable(h.Owner), ")"), memory(h.Memory, nil)))
	}
	return strings.Join(texts, ", ")
}

func (d *document) failures() {
	type failure = model.Failure
	now := d.state.Time
	rows := slices.SortedStableFunc(slices.Values(d.state.Failures), func(a, b failure) int { return cmp.Compare(effort(&a), effort(&b)) })
	section(d, "FAILURES", "failures", maxFailures, rows, []column[failure]{
		{title: "last", right: true, text: func(f *failure) string { return age(now, f.LastSeen) }},
		{title: "first", right: true, leave: 3, text: func(f *failure) string { return age(now, f.FirstSeen) }},
		{title: "count", right: true, text: func(f *failure) string { return strconv.FormatInt(f.Count, 10) }},
		{title: "inputs", right: true, leave: 6, text: func(f *failure) string {
			if f.Variants <= 0 {
				return ""
			}
			return strconv.Itoa(f.Variants)
		}},
		{title: "class", least: 18, text: func(f *failure) string { return printable(f.Class) }},
		{title: "message", least: 24, text: func(f *failure) string { return printable(f.Message) }},
		{title: "service", least: 14, leave: 2, text: func(f *failure) string { return printable(f.Service) }},
		{title: "run", leave: 4, text: func(f *failure) string { return shortID(f.RunID) }},
		{title: "version", least: 7, leave: 5, text: func(f *failure) string { return printable(f.Version) }},
	}, d.reproduction)
}

// effort orders failures by what it takes to get them onto one's desk: first
// those whose command runs as it is and harms nothing.
func effort(f *model.Failure) int {
	switch {
	case !f.Replays:
		return 3
	case len(f.Fill) > 0:
		return 2
	case slices.ContainsFunc(f.Requires, func(flag string) bool {
		return strings.HasPrefix(flag, "--allow-") && !strings.HasPrefix(flag, "--allow-module ")
	}):
		return 1
	default:
		return 0
	}
}

// reproduction returns the lines under a failure: the command, and what it needs.
func (d *document) reproduction(f *model.Failure) []string {
	if f.Command == "" {
		return nil
	}
	lines := copied("$", f.Command)
	if !f.Replays {
		lines = append(d.paragraph(4, "cannot be replayed; to see what is known of it:"), lines...)
	}
	// The flags stand in the command.
	others := slices.DeleteFunc(slices.Clone(f.Requires), func(need string) bool { return strings.HasPrefix(need, "--") })
	if len(others) > 0 {
		lines = append(lines, d.paragraph(4, "needs "+printable(strings.Join(others, ", ")))...)
	}
	if len(f.Fill) > 0 {
		lines = append(lines, d.paragraph(4, "replace "+printable(strings.Join(f.Fill, ", "))+" by your own")...)
	}
	return lines
}

func (d *document) changes() {
	type change = model.Change
	now := d.state.Time
	section(d, "CHANGES", "changes", maxChanges, d.state.Changes, []column[change]{
		{title: "at", text: func(c *change) string { return clock(now, c.Time) }},
		{title: "service", least: 8, text: func(c *change) string { return printable(c.Service) }},
		{title: "run", least: 8, leave: 1, text: func(c *change) string { return shortID(c.RunID) }},
		{title: "change", least: 12, text: func(c *change) string { return printable(c.Text) }},
	}, nil)
}

func (d *document) models() {
	type use = model.Model
	now := d.state.Time
	section(d, "MODELS", "models", maxModels, d.state.Models, []column[use]{
		{title: "service", least: 14, text: func(m *use) string { return printable(m.Service) }},
		{title: "model", least: 12, text: func(m *use) string { return printable(m.Model) }},
		{title: "role", least: 12, leave: 8, text: func(m *use) string { return printable(m.Role) }},
		{title: "side", leave: 9, text: func(m *use) string { return words(m.Side) }},
		{title: "req/s", right: true, text: func(m *use) string { return number(m.RequestRate) }},
		{title: "in tok/s", right: true, leave: 3, text: func(m *use) string { return number(m.InputTokenRate) }},
		{title: "out tok/s", right: true, leave: 1, text: func(m *use) string { return number(m.OutputTokenRate) }},
		{title: "cached", right: true, leave: 10, text: func(m *use) string { return share(m.CachedTokens, m.InputTokens) }},
		{title: "first token p50/p95", right: true, leave: 4, text: func(m *use) string { return quantiles(m.FirstToken, seconds) }},
		{title: "duration p50/p95", right: true, leave: 2, text: func(m *use) string { return quantiles(m.Duration, seconds) }},
		{title: "tok/s each p50/p95", right: true, leave: 6, text: func(m *use) string { return quantiles(m.Decode, number) }},
		{title: "failing", right: true, text: failing},
		{title: "errors", least: 10, leave: 5, text: errorsByType},
		{title: "cut by length", right: true, leave: 7, text: func(m *use) string { return count(m.LengthStops) }},
		{title: "cost", right: true, leave: 11, text: func(m *use) string { return number(m.Cost) }},
	}, func(m *use) []string {
		if len(m.Versions) < 2 {
			return nil
		}
		var lines []string
		for _, v := range m.Versions[:min(2, len(m.Versions))] {
			parts := []string{
				printable(v.Version) + " since " + clock(now, v.FirstSeen),
				count(&v.Requests) + " requests",
				count(&v.Errors) + " errors" + joined("", prefixed(" (", share(&v.Errors, &v.Requests), ")")),
				prefixed("first token ", quantiles(v.FirstToken, seconds), ""),
				prefixed("duration ", quantiles(v.Duration, seconds), ""),
			}
			lines = append(lines, d.paragraph(4, joined(", ", parts...))...)
		}
		return lines
	})
}

// failing writes the fraction of requests that fail, and what is usual if that
// is another one.
func failing(m *model.Model) string {
	now, usual := percent(m.ErrorRatio), percent(m.ErrorRatioUsual)
	if usual == now {
		usual = ""
	}
	return now + prefixed(" (was ", usual, ")")
}

// prefixed puts a known text between others.
func prefixed(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func share(part, whole *float64) string {
	if part == nil || whole == nil || *whole <= 0 {
		return ""
	}
	return percent(new(*part / *whole))
}

func quantiles(q *model.Quantiles, write func(*float64) string) string {
	if q == nil || q.Count == 0 {
		return ""
	}
	return write(&q.P50) + " / " + write(&q.P95)
}

func errorsByType(m *model.Model) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(m.Errors)) {
		if n := m.Errors[name]; n > 0 {
			texts = append(texts, printable(name)+" "+count(&n))
		}
	}
	return strings.Join(texts, ", ")
}

func (d *document) pools() {
	type pool = model.Pool
	section(d, "POOLS", "pools", maxPools, d.state.Pools, []column[pool]{
		{title: "service", least: 8, text: func(p *pool) string { return printable(p.Service) }},
		{title: "pool", least: 8, text: func(p *pool) string { return printable(p.Pool) }},
		{title: "instance", least: 8, leave: 1, text: func(p *pool) string { return shortID(p.Instance) }},
		{title: "size", right: true, text: func(p *pool) string { return count(p.Size) }},
		{title: "busy", right: true, text: func(p *pool) string { return count(p.Busy) }},
		{title: "idle", right: true, text: func(p *pool) string { return count(p.Idle) }},
		{title: "queue", right: true, text: func(p *pool) string { return count(p.Queue) }},
		{title: "crashes", right: true, text: func(p *pool) string { return count(p.Crashes) }},
		{title: "open breakers", right: true, leave: 2, text: func(p *pool) string { return count(p.Breakers) }},
		{title: "alerts", right: true, leave: 3, text: func(p *pool) string { return count(p.Alerts) }},
	}, nil)
}

func (d *document) calls() {
	type call = model.Call
	section(d, "CALLS", "calls", maxCalls, d.state.Calls, []column[call]{
		{title: "at", text: func(c *call) string { return c.Time.UTC().Format("15:04:05") }},
		{title: "service", least: 8, leave: 1, text: func(c *call) string { return printable(c.Service) }},
		{title: "function", least: 20, text: func(c *call) string { return joined(".", printable(c.Library), printable(c.Function)) }},
		{title: "took", right: true, text: func(c *call) string { return seconds(&c.Duration) }},
		{title: "queued", right: true, leave: 2, text: func(c *call) string { return seconds(c.Queue) }},
		{title: "encoding", right: true, leave: 3, text: func(c *call) string { return seconds(c.Serialize) }},
		{title: "result", least: 18, text: result},
	}, nil)
}

// result says how a call ended.
func result(c *model.Call) string {
	switch {
	case c.Error != "":
		return joined(": ", printable(c.Error), printable(c.Message))
	case c.Slow:
		return "ok, slow"
	default:
		return "ok"
	}
}

func (d *document) missing() {
	rows := d.state.Missing
	if len(rows) == 0 {
		return
	}
	shown := rows[:min(maxMissing, len(rows))]
	d.title(bold, "MISSING", len(shown), len(rows)+max(0, d.state.Collector.Hidden["missing"]))
	for len(shown) > 0 {
		// What has the same reason and remedy stands together.
		first, what := shown[0], ""
		same := 0
		for same < len(shown) && shown[same].Why == first.Why && shown[same].Fix == first.Fix {
			text := printable(shown[same].What)
			if n := shown[same].Count; n > 0 {
				text += fmt.Sprintf(" (%d)", n)
			}
			what = joined("; ", what, text)
			same++
		}
		d.lines(d.paragraph(0, joined(": ", what, printable(first.Why)))...)
		d.lines(copied(">", first.Fix)...)
		shown = shown[same:]
	}
}
