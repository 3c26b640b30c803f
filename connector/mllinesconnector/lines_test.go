package mllinesconnector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
)

// rig is a connector whose clock the test sets.
type rig struct {
	t     *testing.T
	lines *lines
	sink  *consumertest.TracesSink
	at    time.Time
	attrs map[string]any
	path  string
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	r := &rig{t: t, sink: new(consumertest.TracesSink), at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), path: "/data/exp7/train.log"}
	c, err := newLines(connectortest.NewNopSettings(metadata.Type), cfg, r.sink)
	require.NoError(t, err)
	c.now = func() time.Time { return r.at }
	r.lines = c
	t.Cleanup(func() { require.NoError(t, c.Shutdown(t.Context())) })
	return r
}

// logs returns a request with a record for each line.
func (r *rig) logs(text string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	require.NoError(r.t, rl.Resource().Attributes().FromRaw(r.attrs))
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		record := records.AppendEmpty()
		record.Body().SetStr(line)
		record.SetObservedTimestamp(pcommon.NewTimestampFromTime(r.at))
		if r.path != "" {
			record.Attributes().PutStr("log.file.path", r.path)
		}
	}
	return ld
}

// print prints lines after some time.
func (r *rig) print(after time.Duration, text string) {
	r.t.Helper()
	r.at = r.at.Add(after)
	ld := r.logs(text)
	ld.MarkReadOnly()
	require.NoError(r.t, r.lines.ConsumeLogs(r.t.Context(), ld))
}

// wait lets time pass.
func (r *rig) wait(d time.Duration) {
	r.at = r.at.Add(d)
	require.NoError(r.t, r.lines.send(r.t.Context(), r.lines.look(false)))
}

// spans returns all spans, and forgets them.
func (r *rig) spans() (all []ptrace.Span) {
	for _, td := range r.sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					all = append(all, span)
				}
			}
		}
	}
	r.sink.Reset()
	return all
}

// describe writes spans as lines: the seconds since the start of the test, the name, and
// the attributes.
func (r *rig) describe() (lines []string) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, s := range r.spans() {
		line := fmt.Sprintf("%.3f+%.3f %s", s.StartTimestamp().AsTime().Sub(start).Seconds(), s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(), s.Name())
		for _, key := range []string{"ml.step", "ml.loss", "ml.val.loss", "ml.learning_rate", "ml.tokens_per_second", "ml.samples_per_second", "ml.batch.size", "ml.rank.global"} {
			if v, ok := s.Attributes().Get(key); ok {
				line += fmt.Sprintf(" %s=%s", key[strings.LastIndexByte(key, '.')+1:], v.AsString())
			}
		}
		if s.Status().Code() == ptrace.StatusCodeError {
			v, _ := s.Events().At(0).Attributes().Get("exception.type")
			line += fmt.Sprintf(" failed=%s: %s", v.AsString(), s.Status().Message())
		}
		lines = append(lines, line)
	}
	return lines
}

const megatronLine = " [2026-03-01 %s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | learning rate: 1.000000E-04 | global batch size:    16 | %sloss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   %d | number of nan iterations:   %d |"

func TestStepsOfALine(t *testing.T) {
	r := newRig(t, nil)
	r.print(4*time.Second, fmt.Sprintf(megatronLine, "12:00:04.000000", 2, 32, 1500.0, "lm loss: 7.1E+00 | ", 0, 0))
	assert.Equal(t, []string{
		"1.000+1.500 train_step step=1 size=16",
		"2.500+1.500 train_step step=2 loss=7.1 learning_rate=0.0001 size=16",
	}, r.describe())
	r.print(3*time.Second, fmt.Sprintf(megatronLine, "12:00:07.100000", 4, 64, 1500.0, "", 0, 0))
	assert.Equal(t, []string{
		"4.000+1.500 train_step step=3 size=16",
		"5.500+1.500 train_step step=4 loss=NaN learning_rate=0.0001 size=16",
	}, r.describe(), "the loss is left out, which is NaN, and the printing took 0.1 s")
}

func TestLifecycle(t *testing.T) {
	lines, err := NewFactory().CreateLogsToTraces(t.Context(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, lines.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, lines.Shutdown(t.Context()))
}
