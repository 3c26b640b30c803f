package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// say writes for people. Nothing can be done about a terminal that is gone.
func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// line is the state of all scenarios in one line.
func (l *ledger) line(names []string, elapsed time.Duration) string {
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

// report tells the result of each scenario and returns how many items were not
// accepted. What a server said is quoted: it may hold anything.
func (l *ledger) report(out io.Writer, names []string) int64 {
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

// show rewrites the progress line until done is closed.
func (l *ledger) show(out io.Writer, names []string, done <-chan struct{}) {
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
