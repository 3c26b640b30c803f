package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// say writes for the user and ignores errors of the terminal.
func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// line returns the state of all scenarios in one line.
func (l *results) line(names []string, elapsed time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mlgen (simulated) %s", elapsed.Round(time.Second))
	for _, name := range names {
		t := l.totals(name)
		fmt.Fprintf(&b, " | %s %d steps, %d items", name, t.steps, t.items)
		if t.refused > 0 {
			fmt.Fprintf(&b, ", %d NOT ACCEPTED", t.refused)
		}
	}
	return b.String()
}

// report prints the result of each scenario and returns the number of items
// that were not accepted. It quotes server messages, which may contain
// anything.
func (l *results) report(out io.Writer, names []string) int64 {
	refused := int64(0)
	for _, name := range names {
		t := l.totals(name)
		refused += t.refused
		say(out, "mlgen: %s: %d steps, %d items accepted", name, t.steps, t.items)
		if t.refused > 0 {
			say(out, ", %d not accepted, last reason: %s", t.refused, strconv.Quote(t.lastError))
		}
		say(out, "\n")
	}
	return refused
}

// show redraws the progress line until done is closed.
func (l *results) show(out io.Writer, names []string, done <-chan struct{}) {
	const eraseLine = "\r\x1b[2K"
	begun := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			say(out, eraseLine)
			return
		case now := <-tick.C:
			say(out, "%s%s", eraseLine, l.line(names, now.Sub(begun)))
		}
	}
}
