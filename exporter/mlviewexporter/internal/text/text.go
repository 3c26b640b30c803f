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

// Write writes the state as lines of at most the chosen width. Only commands,
// configuration and addresses, which are written to be copied, may be longer;
// each of these has its own line. Texts from telemetry cannot control the
// terminal: what it would not show as it is, is escaped. An error is that of w.
func Write(w io.Writer, s *api.State, o Options) error {
	d := document{state: s, width: o.Width, color: o.Color}
	if d.width == 0 {
		d.width = DefaultWidth
	}
	d.width = min(max(d.width, MinWidth), MaxWidth)
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
	state *api.State
	width int
	color bool
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

// part describes a section: a table under its title, and a note that says how
// to read it.
type part[T any] struct {
	name, note string
	// list is the key of the list in Collector.Hidden.
	list string
	// most is the most rows to show.
	most    int
	columns []column[T]
	// after returns the lines under a row.
	after func(*T) []string
	// size returns how many rows of the list a row of the table is; nil means one.
	size func(*T) int
}

// section writes a part, nothing if it has no rows.
func section[T any](d *document, p part[T], rows []T) {
	if len(rows) == 0 {
		return
	}
	if p.size == nil {
		p.size = func(*T) int { return 1 }
	}
	most, shown, all := min(p.most, len(rows)), 0, max(0, d.state.Collector.Hidden[p.list])
	for i := range rows {
		if i < most {
			shown += p.size(&rows[i])
		}
		all += p.size(&rows[i])
	}
	style := bold
	if p.list == "needs" {
		style = boldRed
	}
	d.title(style, p.name, shown, all)
	if p.note != "" {
		d.lines(d.paragraph(0, p.note)...)
	}
	lines, left := table(p.columns, rows[:most], d.width, p.after)
	d.lines(lines...)
	if len(left) > 0 {
		d.leftOut = append(d.leftOut, p.name+": "+strings.Join(left, ", "))
	}
}

// more says what the text leaves out, and where it is.
func (d *document) more() {
	d.lines("")
	if len(d.leftOut) > 0 {
		text := "Columns left out at this width: " + strings.Join(d.leftOut, "; ") + "."
		if d.width < MaxWidth {
			text += " ?width=" + strconv.Itoa(MaxWidth) + " shows more."
		}
		d.lines(d.paragraph(0, text)...)
	}
	d.lines(d.paragraph(0, "/api/v1/runs/{key}/report says what became of a run. A browser opens runs, traces and reports at the same address; /api/v1/state has every row and column as JSON.")...)
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
	return []string{"    " + mark + " " + Escape(text)}
}

// joined joins the texts that are known.
func joined(separator string, texts ...string) string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	return strings.Join(texts, separator)
}

// activities are the kinds of Collector.GPUs in the order of the header.
var activities = []string{"working", api.LooksHung, api.Slow, api.HeldIdle, "failed", "free", noData}

// noData is the activity of a GPU that is not read any more.
const noData = "no_data"

// Words writes a name of the model, such as looks_hung, as words.
func Words(name string) string {
	return Printable(strings.ReplaceAll(name, "_", " "))
}

// State writes the state of a run, or what its time went to, as words.
func State(name string) string {
	if name == mlattr.RunStalled {
		return Words(api.LooksHung)
	}
	return Words(name)
}

func (d *document) header() {
	c := d.state.Collector
	all := 0
	var parts []string
	for _, activity := range activities {
		if n := c.GPUs[activity]; n > 0 {
			all += n
			text := Words(activity)
			if activity == api.LooksHung && n > 1 {
				text = "look hung"
			}
			if since := c.NoDataSince; activity == noData && since != nil {
				text = "without data since " + clock(d.state.Time, *since)
			}
			parts = append(parts, strconv.Itoa(n)+" "+text)
		}
	}
	if all == 0 {
		parts = []string{"no GPU known"}
	} else {
		parts[0] = api.Counted(all, "GPU", "GPUs") + ": " + parts[0]
	}
	if c.Hosts > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d hosts sending", c.HostsReporting, c.Hosts))
	}
	if all := len(d.state.Collectors); all > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d collectors sending", all-d.silent(), all))
	}
	newest := cmp.Or(prefixed("newest data ", age(d.state.Time, c.DataTime), " old"), "no data yet")
	parts = append(parts, newest, d.state.Time.UTC().Format("15:04:05 UTC"))
	if c.Version != "" {
		parts = append(parts, "otelcol-ml "+Printable(c.Version))
	}
	d.lines(flow(parts, " · ", d.width)...)
	if c.DataTime != nil && d.state.Time.Sub(*c.DataTime) > oldData {
		d.styled(boldRed, "NO DATA since "+c.DataTime.UTC().Format("2 Jan 15:04:05 UTC"))
	}
	d.losses()
	d.unreal()
}

// losses says at once what loses data now.
func (d *document) losses() {
	for i := range d.state.Missing {
		m := &d.state.Missing[i]
		if m.Since == nil {
			continue
		}
		text := Printable(m.What) + ", since " + m.Since.UTC().Format("2 Jan 15:04:05 UTC")
		if m.Count > 0 {
			text += " (" + strconv.FormatInt(m.Count, 10) + ")"
		}
		for _, line := range d.paragraph(0, text+": "+Printable(m.Why)) {
			d.styled(boldRed, line)
		}
	}
}

// unreal says which data comes from no real program or GPU.
func (d *document) unreal() {
	if !d.state.Collector.Simulated {
		return
	}
	type origin struct{ simulated, recorded bool }
	origins := slices.Concat(
		api.Mapped(d.state.Runs, func(r api.Run) origin { return origin{r.Simulated, r.Recorded} }),
		api.Mapped(d.state.GPUs, func(g api.GPU) origin { return origin{g.Simulated, g.Recorded} }),
		api.Mapped(d.state.Failures, func(f api.Failure) origin { return origin{f.Simulated, false} }))
	all := len(origins)
	simulated := len(api.Where(slices.Values(origins), func(o origin) bool { return o.simulated && !o.recorded }))
	recorded := len(api.Where(slices.Values(origins), func(o origin) bool { return o.recorded }))
	d.allSimulated = simulated == all
	if simulated+recorded == all {
		d.styled(bold, "ALL DATA IS SIMULATED OR RECORDED")
	}
	switch {
	case d.allSimulated:
		d.styled(bold, "SIMULATED DATA: no run and no GPU is real")
	case simulated > 0 || recorded == 0:
		d.styled(bold, `SIMULATED DATA: what is marked "sim" is not real`)
	}
	if recorded > 0 {
		d.styled(bold, `RECORDED DATA: what is marked "rec" is played from a recording, not live`)
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
	first := []column[api.Need]{
		{title: "urgency", text: urgencyOf},
		{title: "since", text: func(n *api.Need) string { return clock(d.state.Time, n.Since) }},
	}
	section(d, part[api.Need]{
		name: "NEEDS ATTENTION", note: needsNote, list: "needs", most: 50, after: d.needDetails,
		columns: slices.Concat(first, d.columnsOfNeeds(), []column[api.Need]{
			{title: "lost", right: true, text: func(n *api.Need) string { return prefixed("", Number(n.GPUHours), " GPU-hours") }},
		}),
	}, d.state.Needs)
}

// columnsOfNeeds are the columns that problems have that last or have ended.
func (d *document) columnsOfNeeds() []column[api.Need] {
	return []column[api.Need]{
		{title: "what", text: kindOfNeed},
		{title: "data", text: func(n *api.Need) string { return d.simulated(n.Simulated, n.Recorded) }},
		{title: "where", least: 16, text: func(n *api.Need) string { return Printable(n.Subject) }},
		{title: "owner", least: 8, text: ownerOf},
		{title: "job", least: 8, leave: 2, text: func(n *api.Need) string { return Printable(n.Job) }},
		{title: "run", leave: 1, text: func(n *api.Need) string { return shortID(n.RunID) }},
	}
}

// needsNote says how the problems are ordered.
const needsNote = "Work from the top. Linked problems usually clear together. An error ratio that is usual for its service is not listed. Times are in UTC."

// resolved writes the problems that ended within the last 24 hours.
func (d *document) resolved() {
	first := []column[api.Need]{{title: "ended", text: func(n *api.Need) string { return clock(d.state.Time, *n.Ended) }}}
	reasons := map[string]string{mlattr.ProblemNoEvidence: "no new evidence"}
	section(d, part[api.Need]{
		name: "RESOLVED IN THE LAST 24 HOURS", list: "resolved", most: 10, after: d.evidence,
		columns: slices.Concat(first, d.columnsOfNeeds(), []column[api.Need]{
			{title: "lasted", right: true, text: func(n *api.Need) string { return age(*n.Ended, &n.Since) }},
			{title: "why", leave: 3, text: func(n *api.Need) string { return cmp.Or(reasons[n.EndReason], "over") }},
		}),
	}, d.state.Resolved)
}

// ownerOf writes whose a problem is.
func ownerOf(n *api.Need) string {
	return cmp.Or(Printable(n.Owner), prefixed("team ", Printable(n.Team), ""), "not known")
}

// evidence returns what was observed of a problem, and since when nothing was.
func (d *document) evidence(n *api.Need) (lines []string) {
	if n.NoEvidenceSince != nil {
		lines = d.paragraph(4, "no new evidence for "+age(d.state.Time, n.NoEvidenceSince)+": it may be over")
	}
	if len(n.Evidence) > 0 {
		lines = append(lines, d.paragraph(4, Printable(strings.Join(n.Evidence, "; ")))...)
	}
	return lines
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

// needDetails returns the evidence of a problem and what to do next.
func (d *document) needDetails(n *api.Need) []string {
	before := api.Mapped(n.Before, func(c api.Change) string {
		return joined(" ", Printable(c.Text), "at", clock(d.state.Time, c.Time))
	})
	lines := append(d.evidence(n), d.paragraph(4, "changed before: "+cmp.Or(strings.Join(before, ", "), "nothing seen"))...)
	if n.Next != "" {
		lines = append(lines, d.paragraph(4, "next: "+Printable(n.Next))...)
	}
	failure := api.Find(d.state.Failures, func(f *api.Failure) bool { return n.Command != "" && f.Command == n.Command })
	if failure != nil {
		return append(lines, d.reproduction(failure)...)
	}
	return append(lines, copied("$", n.Command)...)
}

// kindOfNeed writes what the problem is, with its measure.
func kindOfNeed(n *api.Need) string {
	kind := strings.ToUpper(Words(n.Kind))
	switch n.Kind {
	case api.Slow:
		return joined(" ", kind, Change(n.Value, n.Usual))
	case api.Failing:
		return joined(" ", kind, Percent(n.Value))
	default:
		return kind
	}
}

// byOrder puts runs that need someone first and ended ones last.
func byOrder(a, b api.Run) int {
	lasts := func(r *api.Run) bool { return len(r.Needs) > 0 || !mlattr.RunOver(r.State) }
	return cmp.Or(api.TrueFirst(len(a.Needs) > 0, len(b.Needs) > 0), api.TrueFirst(lasts(&a), lasts(&b)))
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
