// Package text writes the state of the page as a text for terminals, and has the words and
// the forms of numbers that this text and reports of runs share.
package text

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
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

// Within returns the options with a width within the limits.
func (o Options) Within() Options {
	o.Width = min(max(cmp.Or(o.Width, DefaultWidth), MinWidth), MaxWidth)
	return o
}

// Of returns the state as lines of at most the chosen width. Only commands,
// configuration and addresses, which are written to be copied, may be longer;
// each of these has its own line. Texts from telemetry cannot control the
// terminal: what it would not show as it is, is escaped.
func Of(s *api.State, o Options) []byte {
	d := document{state: s, Options: o.Within()}
	d.header()
	d.needs()
	d.resolved()
	d.collectors()
	d.runs()
	d.gpus()
	d.failures()
	d.changes()
	d.models()
	d.pools()
	d.calls()
	d.missing()
	d.more()
	return d.out.Bytes()
}

// ANSI escape sequences.
const (
	bold    = "\x1b[1m"
	boldRed = "\x1b[1;31m"
	plain   = "\x1b[0m"
)

type document struct {
	Options
	out   bytes.Buffer
	state *api.State
	// allSimulated reports whether all data is simulated, so that rows need no mark.
	allSimulated bool
	// leftOut names the columns that the width has no room for, by section.
	leftOut []string
}

func (d *document) lines(lines ...string) {
	for _, line := range lines {
		d.out.WriteString(line)
		d.out.WriteByte('\n')
	}
}

func (d *document) styled(style string, lines ...string) {
	for _, line := range lines {
		if d.Color {
			line = style + line + plain
		}
		d.lines(line)
	}
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

// section writes the section of a list, nothing if that has no rows. cells returns the printable
// texts of a row, empty for what is not known, and after, unless it is nil, writes the lines
// under it. size returns how many rows of the list rows of the table are.
func section[T any](d *document, list string, rows []T, cells func(*T) []string, after func(*T), size func([]T) int) {
	if len(rows) == 0 {
		return
	}
	of, style := layouts[list], bold
	if list == "needs" {
		style = boldRed
	}
	all := size(rows) + max(0, d.state.Collector.Hidden[list])
	rows = rows[:min(of.Most, len(rows))]
	d.title(style, of.Name, size(rows), all)
	d.paragraph(0, of.Note)
	columns, leftOut := lay(of.Columns, mlattr.Mapped(rows, func(row T) []string { return cells(&row) }), d.Width)
	d.lines(tableRow(columns, 0, d.Width)...)
	for i := range rows {
		d.lines(tableRow(columns, i+1, d.Width)...)
		if after != nil {
			after(&rows[i])
		}
	}
	if len(leftOut) > 0 {
		d.leftOut = append(d.leftOut, of.Name+": "+strings.Join(leftOut, ", "))
	}
}

// asMany is the size of rows that are each one of the list.
func asMany[T any](rows []T) int { return len(rows) }

// more says what the text leaves out, and where it is.
func (d *document) more() {
	d.lines("")
	if len(d.leftOut) > 0 {
		text := "Columns left out at this width: " + strings.Join(d.leftOut, "; ") + "."
		if d.Width < MaxWidth {
			text += " ?width=" + strconv.Itoa(MaxWidth) + " shows more."
		}
		d.paragraph(0, text)
	}
	d.paragraph(0, "/api/v1/runs/{key}/report says what became of a run. A browser opens runs, traces and reports at the same address; /api/v1/state has every row and column as JSON.")
}

// paragraph writes a text with an indent and broken into lines, nothing if it is empty.
func (d *document) paragraph(indent int, text string) {
	if text == "" {
		return
	}
	for _, line := range wrap(text, d.Width-indent, 2*maxCellLines) {
		d.lines(strings.Repeat(" ", indent) + line)
	}
}

// detail writes a paragraph under a row: what it is, and the text, if that is not empty.
func (d *document) detail(what, text string) { d.paragraph(4, prefixed(what, text, "")) }

// copied writes a line with a text that is never cut, nothing if it is empty.
func (d *document) copied(mark, text string) {
	if text != "" {
		d.lines("    " + mark + " " + Escape(text))
	}
}

// activities are the kinds of Collector.GPUs in the order of the header.
var activities = []string{"working", mlattr.ProblemLooksHung, mlattr.ProblemSlow, mlattr.ProblemHeldIdle, "failed", "free", noData}

// noData is the activity of a GPU that is not read any more.
const noData = "no_data"

func (d *document) header() {
	c := &d.state.Collector
	all := 0
	var parts []string
	for _, activity := range activities {
		n := c.GPUs[activity]
		if n <= 0 {
			continue
		}
		all += n
		text := Words(activity)
		if activity == mlattr.ProblemLooksHung && n > 1 {
			text = "look hung"
		}
		if activity == noData && c.NoDataSince != nil {
			text = "without data since " + clock(d.state.Time, *c.NoDataSince)
		}
		parts = append(parts, strconv.Itoa(n)+" "+text)
	}
	if all == 0 {
		parts = []string{"no GPU known"}
	} else {
		parts[0] = api.Counted(all, "GPU", "GPUs") + ": " + parts[0]
	}
	sending := func(some, all int, things string) {
		if all > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d %s sending", some, all, things))
		}
	}
	sending(c.HostsReporting, c.Hosts, "hosts")
	sending(len(d.state.Collectors)-d.silent(), len(d.state.Collectors), "collectors")
	newest := cmp.Or(prefixed("newest data ", age(d.state.Time, c.DataTime), " old"), "no data yet")
	parts = append(parts, newest, d.state.Time.UTC().Format("15:04:05 UTC"))
	if c.Version != "" {
		parts = append(parts, "otelcol-ml "+Printable(c.Version))
	}
	d.lines(flow(parts, " · ", d.Width)...)
	if c.DataTime != nil && d.state.Time.Sub(*c.DataTime) > oldData {
		d.styled(boldRed, "NO DATA since "+day(*c.DataTime))
	}
	d.losses()
	d.unreal()
}

// oldData is the age of the last data from which on it is said.
const oldData = 30 * time.Second

// losses says at once what loses data now.
func (d *document) losses() {
	for _, m := range d.state.Missing {
		if m.Since == nil {
			continue
		}
		text := Printable(m.What) + ", since " + day(*m.Since)
		if m.Count > 0 {
			text += " (" + strconv.FormatInt(m.Count, 10) + ")"
		}
		d.styled(boldRed, wrap(text+": "+Printable(m.Why), d.Width, 2*maxCellLines)...)
	}
}

// unreal says which data comes from no real program or GPU.
func (d *document) unreal() {
	if !d.state.Collector.Simulated {
		return
	}
	marks := slices.Concat(
		mlattr.Mapped(d.state.Runs, func(r api.Run) string { return d.simulated(r.Simulated, r.Recorded) }),
		mlattr.Mapped(d.state.GPUs, func(g api.GPU) string { return d.simulated(g.Simulated, g.Recorded) }),
		mlattr.Mapped(d.state.Failures, func(f api.Failure) string { return d.simulated(f.Simulated, false) }))
	simulated, recorded, live := slices.Contains(marks, "sim"), slices.Contains(marks, "rec"), slices.Contains(marks, "")
	if d.allSimulated = !live && !recorded; !live {
		d.styled(bold, "ALL DATA IS SIMULATED OR RECORDED")
	}
	switch {
	case d.allSimulated:
		d.styled(bold, "SIMULATED DATA: no run and no GPU is real")
	case simulated || !recorded:
		d.styled(bold, `SIMULATED DATA: what is marked "sim" is not real`)
	}
	if recorded {
		d.styled(bold, `RECORDED DATA: what is marked "rec" is played from a recording, not live`)
	}
}

// simulated marks a row with data that is simulated or recorded, if not all is
// simulated.
func (d *document) simulated(is, recorded bool) string {
	switch {
	case !is || d.allSimulated:
		return ""
	case recorded:
		return "rec"
	default:
		return "sim"
	}
}

// flow joins parts into lines, broken between parts.
func flow(parts []string, separator string, limit int) (lines []string) {
	line := parts[0]
	for _, part := range parts[1:] {
		if cells(line)+cells(separator)+cells(part) <= limit {
			line += separator + part
		} else {
			lines, line = append(lines, cut(line, limit)), part
		}
	}
	return append(lines, cut(line, limit))
}

func (d *document) needs() {
	if len(d.state.Needs) == 0 {
		title := "NO PROBLEMS DETECTED"
		if c := d.state.Collector; c.NoDataSince != nil || c.HostsReporting < c.Hosts || d.silent() > 0 {
			title += ", AS FAR AS DATA TELLS"
		}
		if d.state.Collector.DataTime != nil {
			d.title(bold, title, 0, 0)
		}
		return
	}
	section(d, "needs", d.state.Needs, func(n *api.Need) []string {
		return d.cellsOf(n, []string{urgencyOf(n), clock(d.state.Time, n.Since)}, prefixed("", Number(n.GPUHours), " GPU-hours"))
	}, d.needDetails, asMany)
}

// cellsOf returns what problems have that last or have ended, between other cells.
func (d *document) cellsOf(n *api.Need, first []string, last ...string) []string {
	owner := cmp.Or(Printable(n.Owner), prefixed("team ", Printable(n.Team), ""), "not known")
	return slices.Concat(first, []string{
		Headline(n), d.simulated(n.Simulated, n.Recorded), Printable(n.Subject), owner, Printable(n.Job), shortID(n.RunID),
	}, last)
}

// resolved writes the problems that ended within the last 24 hours.
func (d *document) resolved() {
	reasons := map[string]string{mlattr.ProblemNoEvidence: "no new evidence"}
	section(d, "resolved", d.state.Resolved, func(n *api.Need) []string {
		return d.cellsOf(n, []string{clock(d.state.Time, *n.Ended)}, age(*n.Ended, &n.Since), cmp.Or(reasons[n.EndReason], "over"))
	}, d.evidence, asMany)
}

// evidence writes what was observed of a problem, and since when nothing was.
func (d *document) evidence(n *api.Need) {
	d.paragraph(4, prefixed("no new evidence for ", age(d.state.Time, n.NoEvidenceSince), ": it may be over"))
	d.detail("", Printable(strings.Join(n.Evidence, "; ")))
	d.detail("id: ", Printable(n.ID))
}

// urgencyOf writes the place of a problem and when somebody should act. One that
// follows from another has no place of its own.
func urgencyOf(n *api.Need) string {
	place := strconv.Itoa(n.Urgency)
	switch {
	case n.NoEvidenceSince != nil:
		return joined(" ", place, "stale")
	case n.Cause != "":
		return "follows " + place
	default:
		return joined(" ", place, cmp.Or(deadlines[mlattr.Severity(n.Severity)], Words(n.Severity)))
	}
}

// deadlines say when somebody should act.
var deadlines = map[mlattr.Severity]string{mlattr.SeverityPage: "now", mlattr.SeverityTicket: "today"}

// needDetails writes the evidence of a problem and what to do next.
func (d *document) needDetails(n *api.Need) {
	d.evidence(n)
	before := mlattr.Mapped(n.Before, func(c api.Change) string {
		return joined(" ", Printable(c.Text), "at", clock(d.state.Time, c.Time))
	})
	d.detail("changed before: ", cmp.Or(strings.Join(before, ", "), "nothing seen"))
	d.detail("next: ", Printable(n.Next))
	failure := mlattr.Find(d.state.Failures, func(f *api.Failure) bool { return n.Command != "" && f.Command == n.Command })
	if failure != nil {
		d.reproduction(failure)
	} else {
		d.copied("$", n.Command)
	}
}
