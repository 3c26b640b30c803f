package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// mostRows is the maximal number of rows of a table.
	mostRows = 16
	// fewRows is the number of rows that a table keeps as long as other parts
	// can be omitted.
	fewRows = 4
	// narrowest is the minimal width of the layout; a narrower terminal wraps
	// lines.
	narrowest = 40
)

// page is the content of the screen.
type page struct {
	snapshot snapshot
	failure  *failure
	// notes are lines about the demo itself, such as a changed port or an
	// endpoint that does not respond.
	notes []string
	// now and started are by the demo's clock.
	now, started time.Time
	// grpc, http and metrics are the endpoints to show, as host:port.
	grpc, http, metrics string
	// logs names the files that the two programs write to.
	logs []string
}

// size is the available space. A height of 0 has no limit.
type size struct{ width, height int }

// layout is how much a screen shows.
type layout struct {
	width int
	// rows is the maximal number of rows of each table.
	rows int
	// compact omits empty lines and the table of request rates.
	compact bool
}

// screen returns the lines of a page. If they exceed the height, its tables get
// fewer rows, and then it becomes compact.
func screen(p page, s size) []string {
	l := layout{width: max(s.width, narrowest), rows: mostRows}
	lines := draft(p, l)
	for s.height > 0 && shownHeight(lines, l.width) > s.height {
		switch {
		case l.rows > fewRows:
			l.rows--
		case !l.compact:
			l.compact = true
		case l.rows > 1:
			l.rows--
		default:
			return lines
		}
		lines = draft(p, l)
	}
	return lines
}

// shownHeight returns the number of terminal lines. Only lines that must not be
// cut can be longer than the width.
func shownHeight(lines []string, width int) int {
	height := 0
	for _, line := range lines {
		height += max(1, (cells(line)+width-1)/width)
	}
	return height
}

// draft lays out a page without regard to the height.
func draft(p page, l layout) []string {
	var lines []string
	gap := func() {
		if !l.compact {
			lines = append(lines, "")
		}
	}
	section := func(title string, rows []string, all int) {
		gap()
		lines = append(lines, cut(title, l.width))
		lines = append(lines, limited(rows, all, l.rows)...)
	}
	lines = append(lines,
		cut(fmt.Sprintf("otelcol-ml demo   %s   running for %s",
			p.now.Format(time.TimeOnly), p.now.Sub(p.started).Truncate(time.Second)), l.width),
		"SIMULATED: workloads by mlgen, GPUs from a recording (nvidia.gpu.source=replay)")
	for _, note := range p.notes {
		lines = append(lines, "note: "+printable(note))
	}
	s := p.snapshot
	section(fmt.Sprintf("RUNS   steps/s: mean over ranks; batches/s, tokens/s: sums; over the last %s", rateWindow),
		runsTable(s.runs, l), len(s.runs))
	section("TOKENS by role and direction", tokensTable(s.tokens, l), len(s.tokens))
	if len(s.requests) > 0 && !l.compact {
		section("TOKENS PER SECOND of each request, mean of the new ones", requestsTable(s.requests, l), len(s.requests))
	}
	section("GPUS and what runs on them   joined by: the rule that matched GPU and run; process: its environment names the run",
		gpusTable(s.gpus, l), len(s.gpus))
	if s.dropped > 0 {
		lines = append(lines, fmt.Sprintf("note: %d series beyond the limit of %d are not shown", s.dropped, maxSeries))
	}
	gap()
	lines = append(lines, failureLines(p, l.width)...)
	gap()
	return append(lines,
		"SEND YOUR OWN   with any OpenTelemetry SDK, either of",
		"  OTEL_EXPORTER_OTLP_ENDPOINT=http://"+printable(p.http)+" OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"  OTEL_EXPORTER_OTLP_ENDPOINT=http://"+printable(p.grpc)+" OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"metrics: http://"+printable(p.metrics)+"/metrics   logs: "+printable(strings.Join(p.logs, ", ")),
		"Ctrl-C stops everything.")
}

// limited appends to a table the number of omitted rows.
func limited(lines []string, all, shown int) []string {
	switch {
	case all == 0:
		return []string{"  nothing yet"}
	case all > shown:
		return append(lines, fmt.Sprintf("  … and %d more", all-shown))
	default:
		return lines
	}
}

func runsTable(runs []run, l layout) []string {
	columns := []column{
		{title: "run", least: 12},
		{title: "service", least: 12},
		{title: "ranks", right: true, leave: 2},
		{title: "steps/s", right: true},
		{title: "batches/s", right: true, leave: 1},
		{title: "tokens/s", right: true},
		{title: "loss", right: true, leave: 3},
		{title: "epoch", right: true, leave: 4},
		{title: "last step", right: true, leave: 5},
	}
	var rows [][]string
	for _, r := range runs[:min(l.rows, len(runs))] {
		id := idText(r.id)
		if r.merged > 1 {
			id = fmt.Sprintf("(%d runs)", r.merged)
		}
		ranks := missing
		if r.ranks > 0 {
			ranks = strconv.Itoa(r.ranks)
		}
		loss := lossText(r.loss)
		if r.loss.known && r.lossScope != "" {
			loss += " " + cut(printable(r.lossScope), 10)
		}
		rows = append(rows, []string{
			id, orMissing(r.service), ranks, rateText(r.stepRate), rateText(r.batchRate), rateText(r.tokenRate),
			loss, countText(r.epoch), ageText(r.lastStep),
		})
	}
	return table(columns, rows, l.width)
}

func tokensTable(all []tokens, l layout) []string {
	columns := []column{
		{title: "service", least: 8},
		{title: "role", least: 6},
		{title: "direction", least: 6},
		{title: "model", least: 6, leave: 1},
		{title: "tokens", right: true},
		{title: "per second", right: true},
	}
	var rows [][]string
	for _, t := range all[:min(l.rows, len(all))] {
		rows = append(rows, []string{
			orMissing(t.service), orMissing(t.role), orMissing(t.direction), orMissing(t.model),
			countText(t.total), rateText(t.rate),
		})
	}
	return table(columns, rows, l.width)
}

func requestsTable(all []requestRate, l layout) []string {
	columns := []column{
		{title: "service", least: 8},
		{title: "of", least: 10},
		{title: "model", least: 6},
		{title: "per second", right: true},
	}
	var rows [][]string
	for _, r := range all[:min(l.rows, len(all))] {
		rows = append(rows, []string{orMissing(r.service), orMissing(r.what), orMissing(r.model), rateText(r.rate)})
	}
	return table(columns, rows, l.width)
}

func gpusTable(gpus []gpu, l layout) []string {
	columns := []column{
		{title: "gpu", right: true},
		{title: "hw.id", least: 8, leave: 4},
		{title: "host", least: 6, leave: 3},
		{title: "source", least: 6, leave: 5},
		{title: "util", right: true},
		{title: "memory GiB", right: true},
		{title: "power", right: true, leave: 2},
		{title: "temp", right: true, leave: 1},
		{title: "→ run", least: 12},
		{title: "rank", right: true},
		{title: "service", least: 6, leave: 6},
		{title: "joined by", least: 6},
	}
	var rows [][]string
	for _, g := range gpus[:min(l.rows, len(gpus))] {
		facts := []string{
			cut(orMissing(g.index), 6), idText(g.id), orMissing(g.host), orMissing(g.source),
			shareText(g.utilization), memoryText(g.memoryUsed) + "/" + memoryText(g.memoryLimit),
			numberWithUnit(g.power, " W"), numberWithUnit(g.temperature, " °C"),
		}
		if len(g.workloads) == 0 {
			rows = append(rows, slices.Concat(facts, []string{missing, missing, missing, missing}))
		}
		for i, w := range g.workloads {
			if i > 0 {
				facts = []string{"", "", "", "", "", "", "", ""}
			}
			if i == l.rows {
				rows = append(rows, slices.Concat(facts, []string{fmt.Sprintf("… and %d more", len(g.workloads)-i), "", "", ""}))
				break
			}
			rows = append(rows, slices.Concat(facts, []string{
				workloadText(w), cut(orMissing(w.rank), 8), orMissing(w.service), joinText(w),
			}))
		}
	}
	return table(columns, rows, l.width)
}

// workloadText names a workload by its run, or by its owner.
func workloadText(w workload) string {
	if w.run == "" && w.owner != "" {
		return w.ownerKind + " " + idText(w.owner)
	}
	return idText(w.run)
}

// idText shows a long id in short.
func idText(id string) string {
	if id == "" {
		return missing
	}
	return shortID(id)
}

// joinText names the rule that joined a workload to its run. Without a rule,
// the process itself named its run in its environment.
func joinText(w workload) string {
	switch {
	case w.join != "":
		return printable(w.join)
	case w.run != "":
		return "process"
	default:
		return missing
	}
}

func failureLines(p page, width int) []string {
	f := p.failure
	if f == nil {
		return []string{"LAST FAILURE", "  none with a reproduction yet"}
	}
	facts := "LAST FAILURE   service " + orMissing(f.service)
	switch {
	case f.count == 1:
		facts += ", seen once"
	case f.count > 1:
		facts += ", seen " + strconv.FormatInt(f.count, 10) + " times"
	}
	if !f.seen.IsZero() {
		facts += ", last " + ageText(age(p.now, known(float64(f.seen.UnixNano())/1e9)))
		if f.seen.Before(p.started) {
			facts += " (before this demo began)"
		}
	}
	message := orMissing(f.errorType)
	if f.message != "" {
		message += ": " + printable(f.message)
	}
	if f.groups > 1 {
		facts += fmt.Sprintf("; %d different failures have files", f.groups)
	}
	command := "  reproduce it with"
	if f.kind == kindContext {
		command = "  the failing call is unknown; show what is known with"
	}
	return []string{
		cut(facts, width),
		cut("  "+message, width),
		cut(command, width),
		// Never cut, so that it can be copied.
		"  python3 " + shellQuote(f.script),
	}
}

// clampSize returns a plausible size for what a terminal reports.
func clampSize(width, height int) size {
	const widest = 400
	if width <= 0 {
		width = 80
	}
	return size{width: min(width, widest), height: max(0, height)}
}
