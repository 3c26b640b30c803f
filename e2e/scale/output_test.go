package scale

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	// equalLines is how many equal messages a collector may write in a minute.
	equalLines = 2
	// bytesAtStart is what a collector may write as it starts and stops, bytesAMinute what it
	// may in each minute besides, whatever is away.
	bytesAtStart, bytesAMinute = 16 << 10, 12 << 10
)

// life is one process of an agent or a gateway, which has been started several times.
type life struct {
	of        string
	collector *harness.Collector
}

// checkOutput requires that no agent and no gateway, in none of its lives, has filled its log.
func (f *fleet) checkOutput() {
	f.Helper()
	for i, l := range f.lives {
		output := l.collector.Output()
		assert.Empty(f, misleads(output), "life %d, of %s", i, l.of)
		_, minutes, _ := linesOf(output)
		f.Logf("%s: %d lines, %d bytes in %d started minutes", l.of, strings.Count(output, "\n"), len(output), minutes)
	}
}

// timeOfLine is the first column of a line of a collector's log.
const timeOfLine = "2006-01-02T15:04:05.000Z0700"

// equal is what lines have in common that are equal to a reader.
type equal struct{ level, message, component string }

// linesOf counts the lines of a collector's log, in how many started minutes they lie, and
// returns what is no line of a log.
func linesOf(output string) (lines map[equal]int, minutes int, others []string) {
	lines = map[equal]int{}
	var first, last time.Time
	for line := range strings.Lines(output) {
		columns := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 5)
		at, err := time.Parse(timeOfLine, columns[0])
		if err != nil || len(columns) < 4 {
			others = append(others, line)
			continue
		}
		if first.IsZero() {
			first = at
		}
		last = at
		e := equal{level: columns[1], message: columns[3]}
		var fields map[string]any
		if json.Unmarshal([]byte(columns[len(columns)-1]), &fields) == nil {
			e.component = fmt.Sprint(fields["otelcol.component.kind"], " ", fields["otelcol.component.id"], " ", fields["otelcol.signal"])
		}
		lines[e]++
	}
	return lines, int(last.Sub(first)/time.Minute) + 1, others
}

// trace matches a line of a stack trace.
var trace = regexp.MustCompile(`^\t\S+\.go:\d+|^goroutine \d+`)

// misleads returns what a collector's log has too much of.
func misleads(output string) (found []string) {
	lines, minutes, others := linesOf(output)
	for e, n := range lines {
		if n > equalLines*minutes {
			found = append(found, fmt.Sprintf("%d lines in %d started minutes: %v", n, minutes, e))
		}
	}
	for _, line := range others {
		if trace.MatchString(line) {
			found = append(found, "a stack trace: "+strings.TrimSpace(line))
			break
		}
	}
	if most := bytesAtStart + minutes*bytesAMinute; len(output) > most {
		found = append(found, fmt.Sprintf("%d bytes in %d started minutes, more than %d", len(output), minutes, most))
	}
	return found
}

// TestMisleads has each kind of log that checkOutput must find.
func TestMisleads(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line := func(after time.Duration, message, fields string) string {
		return began.Add(after).Format(timeOfLine) + "\terror\tinternal/queue_sender.go:62\t" + message + "\t{" + fields + "}\n"
	}
	const rejecting = "Exporting failed. Rejecting data. Try enabling retry_on_failure"
	two := line(0, rejecting, "") + line(time.Second, rejecting, `"error": "another one"`)
	for name, tt := range map[string]struct {
		output string
		want   int
	}{
		"nothing":              {"", 0},
		"two a minute":         {two + line(61*time.Second, rejecting, "") + line(62*time.Second, rejecting, ""), 0},
		"three in a minute":    {two + line(59*time.Second, rejecting, ""), 1},
		"of another component": {two + line(0, rejecting, `"otelcol.component.id": "a"`), 0},
		"a stack trace":        {two + "go.opentelemetry.io/collector/exporter.(*queue).Send\n\tgo.opentelemetry.io/collector@v1/queue.go:62\n", 1},
		"a message in two":     {"unable to read: /etc/hosts is missing\n" + two, 0},
		"long":                 {line(0, strings.Repeat("x", bytesAtStart+bytesAMinute), ""), 1},
		"long, and a minute":   {line(0, strings.Repeat("x", bytesAtStart+bytesAMinute), "") + line(61*time.Second, "y", ""), 0},
	} {
		t.Run(name, func(t *testing.T) { assert.Len(t, misleads(tt.output), tt.want) })
	}
}
