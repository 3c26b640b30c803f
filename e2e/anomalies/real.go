package anomalies

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Real trainings are replayed from the numbers that others have published, in
// testdata/real: as they were, and with a second half whose steps take longer.

// realKinds are the folders of testdata/real, and what they are.
var realKinds = []struct{ folder, name string }{
	{"nanogpt", "modded-nanogpt, 8 GPUs"}, {"mlperf", "MLPerf Training 5.1, 8 to 512 GPUs"},
}

// stretches are how many times as long the steps of the second half take.
var stretches = []float64{1, 1.05, 1.1, 1.2, 1.5}

// realLine is a line of a file: a step, or another event.
type realLine struct {
	kind string
	at   float64 // in seconds
	// seconds is the mean duration of the steps since the line before, 0 if it is not
	// stated, and loss their loss.
	step    int
	seconds float64
	loss    float64
	hasLoss bool
}

// readReal reads a file.
func readReal(path string) (lines []realLine, err error) {
	file, err := os.Open(path) //nolint:gosec // a file of the test
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	text, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	// What is not stated is no number.
	number := func(text string) (value float64, ok bool) {
		value, err := strconv.ParseFloat(text, 64)
		return value, err == nil
	}
	for scan := bufio.NewScanner(text); scan.Scan(); {
		fields := strings.Split(scan.Text(), ",")
		if fields[0] == "kind" || strings.HasPrefix(fields[0], "#") {
			continue
		}
		line := realLine{kind: fields[0]}
		if len(fields) == 4 { // nanogpt
			step, _ := number(fields[1])
			line.step = int(step)
			line.loss, line.hasLoss = number(fields[2])
			line.at, _ = number(fields[3])
		} else {
			line.at, _ = number(fields[1])
			step, _ := number(fields[2])
			line.step = int(step)
			line.seconds, _ = number(fields[3])
			line.loss, line.hasLoss = number(fields[4])
		}
		line.at /= 1000
		lines = append(lines, line)
	}
	if filepath.Base(filepath.Dir(path)) == "nanogpt" {
		slices.SortStableFunc(lines, func(x, y realLine) int {
			return cmp.Or(cmp.Compare(x.step, y.step), cmp.Compare(x.kind, y.kind))
		})
	}
	return lines, nil
}

// realTrainer sends the spans of a training of one rank, each 5 s.
type realTrainer struct {
	ctx  context.Context
	to   *collector
	name string
	at   time.Time
	sent ptrace.Traces
	list ptrace.SpanSlice
	ids  uint64
}

const sendReal = 5 * time.Second

func (r *realTrainer) begin() {
	r.sent = ptrace.NewTraces()
	rs := r.sent.ResourceSpans().AppendEmpty()
	attrs := rs.Resource().Attributes()
	attrs.PutStr("service.name", "trainer")
	attrs.PutStr(mlattr.RunID, r.name)
	attrs.PutStr("host.name", "h1")
	attrs.PutInt(mlattr.RankGlobal, 0)
	attrs.PutInt(mlattr.WorldSize, 1)
	r.list = rs.ScopeSpans().AppendEmpty().Spans()
}

func (r *realTrainer) send() {
	if r.list.Len() > 0 {
		r.to.consume(r.ctx, scenario.Batch{Signal: sentlog.SignalTraces, Traces: r.sent})
		r.begin()
	}
}

// span adds a span that lasts from now on for some seconds.
func (r *realTrainer) span(phase string, after, seconds float64, attrs map[string]any) ptrace.Span {
	r.ids++
	s := r.list.AppendEmpty()
	s.SetTraceID(pcommon.TraceID{1})
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], r.ids)
	s.SetSpanID(id)
	s.SetName(cmp.Or(phase, "train_step"))
	start := r.at.Add(time.Duration(after * 1e9))
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(seconds * 1e9))))
	if err := s.Attributes().FromRaw(attrs); err != nil {
		panic(err) // attributes of this file
	}
	if phase != "" {
		s.Attributes().PutStr(mlattr.Phase, phase)
	}
	return s
}

// pass lets the time of some seconds pass.
func (r *realTrainer) pass(seconds float64) {
	r.at = r.at.Add(time.Duration(seconds * 1e9))
	for time.Now().Add(sendReal).Before(r.at) {
		time.Sleep(sendReal)
		r.send()
	}
}

func (r *realTrainer) step(number int, seconds float64, line *realLine, last bool) {
	attrs := map[string]any{mlattr.Step: int64(number)}
	parts := []ptrace.Span{
		r.span(mlattr.PhaseForward, 0, seconds/3, attrs), r.span(mlattr.PhaseBackward, seconds/3, seconds*0.57, attrs),
		r.span(mlattr.PhaseOptimizer, seconds*0.9, seconds*0.1, attrs),
	}
	if line.hasLoss && last {
		parts[0].Attributes().PutDouble(mlattr.Loss, line.loss)
		parts[0].Attributes().PutStr(mlattr.LossScope, "batch")
	}
	whole := r.span("", 0, seconds, attrs)
	for _, part := range parts {
		part.SetParentSpanID(whole.SpanID())
	}
	r.pass(seconds)
}

// replayReal replays a training, and returns what was reported of it, how long it took,
// and when its steps began to take longer.
func replayReal(ctx context.Context, path string, times float64) (found []*sighting, lived time.Duration, since time.Time, err error) {
	lines, err := readReal(path)
	if err != nil || len(lines) == 0 {
		return nil, 0, since, err
	}
	c, err := newCollector(ctx, 15*time.Second)
	if err != nil {
		return nil, 0, since, err
	}
	began := time.Now()
	r := &realTrainer{ctx: ctx, to: c, name: filepath.Base(path), at: began}
	r.begin()
	half, before, last := lines[len(lines)/2].at, lines[0].at, 0
	for i := range lines {
		line := &lines[i]
		stretch := 1.0
		if line.at >= half && times != 1 {
			if stretch = times; since.IsZero() {
				since = r.at
			}
		}
		switch line.kind {
		case "train":
			r.step(line.step, max((line.at-before)*stretch, 0.001), line, true)
		case "step":
			steps := 1
			if line.seconds > 0 {
				steps = min(max(int((line.at-before)/line.seconds+0.5), 1), 2000)
			}
			for n := range steps {
				r.step(last+n+1, max(line.seconds*stretch, 0.001), line, n == steps-1)
			}
			last = line.step
		case "val":
			r.validate(2)
			continue // its clock stands still
		case "eval_stop":
			if lasted := line.at - before; lasted > 0 && lasted < 12*3600 {
				r.validate(lasted)
			}
		case "eval_start", "run_start", "init_stop":
		default:
			continue
		}
		before = line.at
	}
	time.Sleep(2 * sendReal)
	r.send()
	time.Sleep(time.Minute)
	lived = time.Since(began)
	return c.reported(), lived, since, c.stop(ctx)
}

func (r *realTrainer) validate(seconds float64) {
	r.span(mlattr.PhaseValidation, 0, seconds, nil)
	r.pass(seconds)
}

// realRow is what was found in the trainings of a folder.
type realRow struct {
	name  string
	times float64
	// runs are replayed, of which slow ones were found after since.
	runs, found int
	lived       time.Duration
	delays      []time.Duration
	// pages and tickets are those of nothing that was planted.
	pages, tickets int
}

func (r *realRow) add(reported []*sighting, lived time.Duration, since time.Time) {
	r.runs++
	r.lived += lived
	slow := false
	for _, s := range reported {
		if s.kind == mlattr.ProblemSlow && !since.IsZero() && s.detected.After(since) {
			if !slow {
				slow = true
				r.found++
				r.delays = append(r.delays, s.detected.Sub(since))
			}
			continue
		}
		switch kind, _ := mlattr.ProblemNamed(s.kind); kind.Severity {
		case mlattr.SeverityPage:
			r.pages++
		case mlattr.SeverityTicket:
			r.tickets++
		}
	}
}

// realSection returns what docs/evidence/anomalies.md says of real trainings.
func realSection(rows []realRow) string {
	var text strings.Builder
	text.WriteString(`## Real trainings

Step times and losses of trainings that others have published
([sources](../../e2e/anomalies/testdata/real/README.md)), replayed as one rank, as they were and with a
second half whose steps take longer. Found are problems "slow"; the delay is the median and the 90 %
quantile. No other page or ticket is reported, nor any as they were.

| trainings | second half | found | delay |
|---|---|---|---|
`)
	for i := range rows {
		r := &rows[i]
		half, found, delay := "as it was", "–", "–"
		if r.times != 1 {
			half, found = fmt.Sprintf("%.0f %% longer", 100*(r.times-1)), strconv.Itoa(r.found)
			delay = span(quantile(r.delays, 0.5)) + ", " + span(quantile(r.delays, 0.9))
		}
		fmt.Fprintf(&text, "| %s, %d runs, %.0f h | %s | %s | %s |\n", r.name, r.runs, r.lived.Hours(), half, found, delay)
	}
	return text.String()
}
