// Package text writes the state of the page as a text for terminals.
package text

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// Limits of Options.Width.
const (
	MinWidth     = 80
	MaxWidth     = 200
	DefaultWidth = 120
)

// Options chooses the form of the text.
type Options struct {
	// Width is the width of the terminal in cells. Widths below MinWidth and
	// above MaxWidth count as these, 0 as DefaultWidth.
	Width int
	// Color emphasizes titles and problems by ANSI escape sequences.
	Color bool
}

// Write writes the state as lines of at most the chosen width. Only commands,
// configuration and addresses, which are written to be copied, may be longer;
// each of these has its own line. Texts from telemetry cannot control the
// terminal: what it would not show as it is, is escaped. An error is that of w.
func Write(w io.Writer, s *model.State, o Options) error {
	d := document{state: s, width: o.Width, color: o.Color}
	if d.width == 0 {
		d.width = DefaultWidth
	}
	d.width = min(max(d.width, MinWidth), MaxWidth)
	d.header()
	d.needs()
	d.runs()
	d.gpus()
	d.failures()
	d.changes()
	d.models()
	d.pools()
	d.calls()
	d.missing()
	_, err := w.Write(d.out.Bytes())
	return err
}

// ANSI escape sequences.
const (
	bold    = "\x1b[1m"
	boldRed = "\x1b[1;31m"
	plain   = "\x1b[0m"
)

type document struct {
	out   bytes.Buffer
	state *model.State
	width int
	color bool
}

func (d *document) lines(lines ...string) {
	for _, line := range lines {
		d.out.WriteString(line)
		d.out.WriteByte('\n')
	}
}

func (d *document) styled(style, line string) {
	if d.color {
		line = style + line + plain
	}
	d.lines(line)
}

// title begins a section: shown of total rows are in it.
func (d *document) title(style, name string, shown, total int) {
	d.lines("")
	switch {
	case shown < total:
		name = fmt.Sprintf("%s (showing %d of %d)", name, shown, total)
	case total > 0:
		name += " (" + strconv.Itoa(total) + ")"
	}
	d.styled(style, name)
}

// section writes a table under its title, nothing if it has no rows. It shows
// at most most of the rows.
func section[T any](d *document, name, list string, most int, rows []T, columns []column[T], after func(*T) []string) {
	if len(rows) == 0 {
		return
	}
	shown := rows[:min(most, len(rows))]
	d.title(bold, name, len(shown), len(rows)+max(0, d.state.Collector.Hidden[list]))
	d.lines(table(columns, shown, d.width, after)...)
}

// paragraph returns a text with an indent and broken into lines.
func (d *document) paragraph(indent int, text string) []string {
	lines := wrap(text, d.width-indent, 2*maxCellLines)
	for i := range lines {
		lines[i] = strings.Repeat(" ", indent) + lines[i]
	}
	return lines
}

// copied returns a line with a text that is never cut, empty if text is.
func copied(mark, text string) []string {
	if text == "" {
		return nil
	}
	return []string{"    " + mark + " " + escape(text)}
}

// joined joins the texts that are known.
func joined(separator string, texts ...string) string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	return strings.Join(texts, separator)
}

// activities are the kinds of Collector.GPUs in the order of the header.
var activities = []string{"working", model.LooksHung, model.Slow, model.HeldIdle, "failed", "free"}

// words writes a name of the model, such as looks_hung, as words.
func words(name string) string {
	return printable(strings.ReplaceAll(name, "_", " "))
}

func (d *document) header() {
	c := d.state.Collector
	all := 0
	var parts []string
	for _, activity := range activities {
		if n := c.GPUs[activity]; n > 0 {
			all += n
			parts = append(parts, strconv.Itoa(n)+" "+words(activity))
		}
	}
	switch all {
	case 0:
		parts = []string{"no GPU known"}
	case 1:
		parts[0] = "1 GPU: " + parts[0]
	default:
		parts[0] = strconv.Itoa(all) + " GPUs: " + parts[0]
	}
	if c.Hosts > 0 {
		parts = append(parts, fmt.Sprintf("hosts %d/%d", c.HostsReporting, c.Hosts))
	}
	if old := age(d.state.Time, c.DataTime); old != "" {
		parts = append(parts, "data "+old+" old")
	} else {
		parts = append(parts, "no data yet")
	}
	parts = append(parts, d.state.Time.UTC().Format("15:04:05 UTC"))
	if c.Version != "" {
		parts = append(parts, printable(c.Version))
	}
	d.lines(flow(parts, " · ", d.width)...)
	if c.DataTime != nil && d.state.Time.Sub(*c.DataTime) > oldData {
		d.styled(boldRed, "NO DATA since "+c.DataTime.UTC().Format("2 Jan 15:04:05 UTC"))
	}
	if c.Simulated {
		d.styled(bold, `SIMULATED DATA: rows marked "sim" are simulated or recorded`)
	}
}

// oldData is the age of the last data from which on it is said.
const oldData = 30 * time.Second

// flow joins parts into lines, broken between parts.
func flow(parts []string, separator string, limit int) []string {
	var lines []string
	line := ""
	for _, part := range parts {
		switch {
		case line == "":
			line = part
		case cells(line)+cells(separator)+cells(part) <= limit:
			line += separator + part
		default:
			lines = append(lines, cut(line, limit))
			line = part
		}
	}
	return append(lines, cut(line, limit))
}

const wideNeeds = 110

func (d *document) needs() {
	needs := d.state.Needs
	if len(needs) == 0 {
		if d.state.Collector.DataTime == nil {
			return
		}
		d.title(bold, "NOTHING NEEDS SOMEONE", 0, 0)
		return
	}
	type need = model.Need
	now := d.state.Time
	columns := []column[need]{
		{title: "since", text: func(n *need) string { return clock(now, n.Since) }},
		{title: "what", text: kindOfNeed},
		{title: "run · owner · job", least: 12, text: func(n *need) string {
			job := printable(n.Job)
			if job == "" {
				job = shortID(n.RunID)
			}
			return joined(" · ", printable(n.Subject), printable(n.Owner), job)
		}},
	}
	evidence := func(n *need) string { return printable(strings.Join(n.Evidence, "; ")) }
	before := func(n *need) string {
		var texts []string
		for _, change := range n.Before {
			texts = append(texts, joined(" ", printable(change.Text), "at", clock(now, change.Time)))
		}
		return strings.Join(texts, ", ")
	}
	wide := d.width >= wideNeeds
	if wide {
		columns = append(columns,
			column[need]{title: "evidence", wrap: true, least: 20, text: evidence},
			column[need]{title: "changed before", wrap: true, least: 14, text: before})
	}
	columns = append(columns, column[need]{title: "lost", right: true, text: func(n *need) string {
		if n.GPUHours == nil {
			return ""
		}
		return trimmed(n.GPUHours) + " GPUh"
	}})
	after := func(n *need) []string {
		var lines []string
		if text := evidence(n); text != "" && !wide {
			lines = append(lines, d.paragraph(4, text)...)
		}
		if text := before(n); text != "" && !wide {
			lines = append(lines, d.paragraph(4, "changed before: "+text)...)
		}
		if n.Next != "" {
			lines = append(lines, d.paragraph(4, "next: "+printable(n.Next))...)
		}
		return append(lines, copied("$", n.Command)...)
	}
	shown := needs[:min(maxNeeds, len(needs))]
	d.title(boldRed, "NEEDS SOMEONE", len(shown), len(needs)+max(0, d.state.Collector.Hidden["needs"]))
	d.lines(table(columns, shown, d.width, after)...)
}

// kindOfNeed writes what the problem is, with its measure.
func kindOfNeed(n *model.Need) string {
	kind := strings.ToUpper(words(n.Kind))
	switch n.Kind {
	case model.Slow:
		return joined(" ", kind, change(n.Value, n.Usual))
	case model.Failing:
		return joined(" ", kind, percent(n.Value))
	default:
		return kind
	}
}

// The most rows of each section.
const (
	maxNeeds    = 50
	maxRuns     = 50
	maxGPUs     = 64
	maxFailures = 10
	maxChanges  = 5
	maxModels   = 20
	maxPools    = 20
	maxCalls    = 10
	maxMissing  = 20
)

// order puts runs that need someone first and ended ones last.
func order(run *model.Run) int {
	switch {
	case len(run.Needs) > 0:
		return 0
	case run.State == "ended":
		return 2
	default:
		return 1
	}
}

func byOrder(a, b model.Run) int { return cmp.Compare(order(&a), order(&b)) }

// simulated marks a row with simulated or recorded data.
func simulated(is bool) string {
	if is {
		return "sim"
	}
	return ""
}
