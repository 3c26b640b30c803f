package anomalies

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Two real trainings whose slow part is known are replayed from the times that others have
// profiled, in testdata/real/stragglers: what each worker computed in each step.

// stepsOfJob are the steps of a replay: those that were profiled, again and again.
const stepsOfJob = 400

// worker is a group of tensor-parallel ranks of a job. The first of them was profiled.
type worker struct{ data, stage int }

// took is what a worker did in a step: milliseconds from the step's start.
type took struct{ start, forward, backward, optimizer, end float64 }

// profile is a profiled training.
type profile struct {
	name string
	// tensor and data are how many ranks are parallel, of each worker and stage.
	tensor, data int
	workers      []worker
	// staged reports whether the ranks say their stage, and steps has what each of the
	// workers did.
	staged bool
	steps  [][]took
}

// tensorOf is how many tensor-parallel ranks each worker of a profile is.
var tensorOf = map[string]int{"AR": 4, "ST": 1}

// readProfile reads a profile.
func readProfile(name string) (*profile, error) {
	file, err := os.Open(filepath.Join("testdata", "real", "stragglers", name+".csv.gz")) //nolint:gosec // a file of the test
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	text, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	p, last := &profile{name: name, tensor: tensorOf[name]}, -1
	for scan := bufio.NewScanner(text); scan.Scan(); {
		var step int
		var w worker
		var t took
		if strings.HasPrefix(scan.Text(), "#") || strings.HasPrefix(scan.Text(), "step") {
			continue
		}
		if _, err := fmt.Sscanf(scan.Text(), "%d,%d,%d,%g,%g,%g,%g,%g", &step, &w.data, &w.stage, &t.start, &t.forward, &t.backward, &t.optimizer, &t.end); err != nil {
			return nil, fmt.Errorf("%s: %w", scan.Text(), err)
		}
		if step != last {
			p.steps, last = append(p.steps, nil), step
		}
		if !slices.Contains(p.workers, w) {
			p.workers, p.data = append(p.workers, w), max(p.data, w.data+1)
		}
		p.steps[len(p.steps)-1] = append(p.steps[len(p.steps)-1], t)
	}
	return p, nil
}

// rank returns the global rank of a worker's first process, in the order of Megatron-LM.
func (p *profile) rank(w worker) int { return p.tensor * (w.data + p.data*w.stage) }

// replay replays the training, and returns what was reported of it. It must run in a synctest bubble.
func (p *profile) replay(ctx context.Context) ([]*sighting, error) {
	c, err := newCollector(ctx, 15*time.Second)
	if err != nil {
		return nil, err
	}
	ids := uint64(0)
	for n := range stepsOfJob {
		step := p.steps[n%len(p.steps)]
		begun := time.Now()
		td := ptrace.NewTraces()
		ends := 0.0
		for i, w := range p.workers {
			p.send(td, w, n+1, &step[i], begun, &ids)
			ends = max(ends, step[i].end)
		}
		time.Sleep(time.Duration(ends * float64(time.Millisecond)))
		c.consume(ctx, scenario.Batch{Signal: sentlog.SignalTraces, Traces: td})
	}
	time.Sleep(time.Minute)
	seen := c.reported()
	if err := c.stop(ctx); err != nil {
		return nil, err
	}
	return seen, c.failed()
}

// send makes the spans of a worker in a step.
func (p *profile) send(td ptrace.Traces, w worker, number int, t *took, begun time.Time, ids *uint64) {
	rank := p.rank(w)
	rs := td.ResourceSpans().AppendEmpty()
	attrs := rs.Resource().Attributes()
	attrs.PutStr("service.name", "megatron")
	attrs.PutStr(mlattr.RunID, p.name)
	attrs.PutStr("host.name", fmt.Sprintf("h%d", rank/8))
	attrs.PutInt(mlattr.RankGlobal, int64(rank))
	attrs.PutInt(mlattr.WorldSize, int64(p.tensor*len(p.workers)))
	if p.staged {
		attrs.PutInt(mlattr.RankPipeline, int64(w.stage))
	}
	list := rs.ScopeSpans().AppendEmpty().Spans()
	add := func(phase string, from, to float64) {
		*ids++
		s := list.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{byte(rank + 1), 9})
		s.SetSpanID(pcommon.SpanID{byte(*ids >> 24), byte(*ids >> 16), byte(*ids >> 8), byte(*ids), 1})
		s.SetName(phase)
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(begun.Add(time.Duration(from * 1e6))))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(begun.Add(time.Duration(to * 1e6))))
		s.Attributes().PutStr(mlattr.Phase, phase)
		s.Attributes().PutInt(mlattr.Step, int64(number))
	}
	add(mlattr.PhaseForward, t.start, t.start+t.forward)
	back := max(t.start+t.forward, t.end-t.optimizer-t.backward)
	add(mlattr.PhaseBackward, back, back+t.backward)
	add(mlattr.PhaseOptimizer, t.end-t.optimizer, t.end)
}
