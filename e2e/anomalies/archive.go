package anomalies

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// longestLine limits a line of an archive, in bytes, as the archive does.
	longestLine = 256 << 20
	// sameOnset is how far apart the onsets of a problem and of its replay are at most.
	sameOnset = time.Hour
)

// lines passes the lines of a file to read.
func lines(path string, read func([]byte) error) (err error) {
	file, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	all := bufio.NewScanner(file)
	all.Buffer(nil, longestLine)
	for n := 1; all.Scan(); n++ {
		if err := read(all.Bytes()); err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
	}
	return all.Err()
}

// readThresholds reads thresholds such as "slow=1.1,failing=0.1".
func readThresholds(text string) (map[string]float64, error) {
	all := make(map[string]float64)
	for part := range strings.SplitSeq(text, ",") {
		kind, value, is := strings.Cut(part, "=")
		least, err := strconv.ParseFloat(value, 64)
		if text == "" {
			return nil, nil
		} else if !is || err != nil {
			return nil, fmt.Errorf("%q is no threshold such as slow=1.1", part)
		}
		all[kind] = least
	}
	return all, nil
}

// replayArchive sends archived spans at the pace at which they ended to a collector with
// thresholds, and returns what it reports, with the times of the archive. It must run in a
// synctest bubble.
func replayArchive(ctx context.Context, archive string, thresholds map[string]float64) ([]*sighting, error) {
	flush := 15 * time.Second
	c := &collector{flush: flush, seen: newSightings(flush), configure: func(cfg *mlmetricsconnector.Config) { cfg.Thresholds = thresholds }}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	w := newWorldOf(ctx, 1, c)
	var ahead time.Duration
	var last time.Time
	err := lines(archive, func(line []byte) error {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		if err != nil {
			return err
		}
		sent := newest(td)
		if last.IsZero() {
			ahead, last = time.Until(sent), sent
		} else if sent.After(last) {
			w.live(sent.Sub(last))
			last = sent
		}
		shift(td, ahead)
		c.consume(ctx, scenario.Batch{Signal: sentlog.SignalTraces, Traces: td})
		return nil
	})
	w.live(afterRecording)
	for _, s := range c.reported() {
		s.onset, s.detected = s.onset.Add(ahead), s.detected.Add(ahead)
	}
	return c.reported(), errors.Join(err, c.stop(ctx), c.failed())
}

// recordedProblem is a problem that a collector has reported, from its records.
type recordedProblem struct {
	subject
	onset time.Time
}

// readRecords returns the problems in records that the exporter "file" has written, by their
// ids.
func readRecords(path string) (map[string]recordedProblem, error) {
	all := make(map[string]recordedProblem)
	err := lines(path, func(line []byte) error {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		if err != nil {
			return err
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					if onset, ok := record.Attributes().Get(mlattr.ProblemOnset); ok && record.EventName() == mlattr.Problem {
						of := subjectOf(rl.Resource().Attributes(), record.Attributes())
						all[text(record.Attributes(), mlattr.ProblemID)] = recordedProblem{of, time.UnixMicro(int64(onset.Double() * 1e6))}
					}
				}
			}
		}
		return nil
	})
	return all, err
}

// verdict is what somebody says of a problem.
type verdict struct{ kind, id, is string }

// readVerdicts returns the last verdict of each problem, in the order of the file.
func readVerdicts(path string) (all []verdict, err error) {
	err = lines(path, func(line []byte) error {
		if words := strings.Fields(string(line)); len(words) > 2 && (words[2] == "right" || words[2] == "wrong") {
			all = slices.DeleteFunc(all, func(v verdict) bool { return v.id == words[1] })
			all = append(all, verdict{words[0], words[1], words[2]})
		}
		return nil
	})
	return all, err
}

// in reports whether a problem is among those of a replay.
func (p *recordedProblem) in(replayed []*sighting) bool {
	return slices.ContainsFunc(replayed, func(s *sighting) bool {
		return s.subject == p.subject && s.onset.Sub(p.onset).Abs() <= sameOnset
	})
}

// compare writes how many problems of each kind two replays have, and which of them keep the
// problems of which somebody has said whether they were right.
func compare(to io.Writer, before, after []*sighting, verdicts []verdict, records map[string]recordedProblem) error {
	var text strings.Builder
	text.WriteString("problem\tseverity\told\tnew\n")
	count := func(all []*sighting, kind string) (n int) {
		for _, s := range all {
			if s.kind == kind {
				n++
			}
		}
		return n
	}
	for _, kind := range mlattr.Problems {
		if was, is := count(before, kind.Name), count(after, kind.Name); was+is > 0 {
			fmt.Fprintf(&text, "%s\t%s\t%d\t%d\n", kind.Name, kind.Severity, was, is)
		}
	}
	if len(verdicts) > 0 {
		text.WriteString("\nverdict\tproblem\told\tnew\n")
	}
	says := map[bool]string{true: "reported", false: "not reported"}
	for _, v := range verdicts {
		p, known := records[v.id]
		if !known {
			fmt.Fprintf(&text, "%s\t%s %s\tno record\tno record\n", v.is, v.kind, v.id)
			continue
		}
		fmt.Fprintf(&text, "%s\t%s %s\t%s\t%s\n", v.is, v.kind, v.id, says[p.in(before)], says[p.in(after)])
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, err := io.WriteString(table, text.String())
	return errors.Join(err, table.Flush())
}
