package mllinesconnector

import (
	"context"
	"fmt"
	"maps"
	"strconv"
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

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// alone are the origins of an instance that shares them with no other.
func alone() origins {
	cfg := createDefaultConfig().(*Config)
	of := originsOf(new(shared.Registry[*origin.Known]), connectortest.NewNopSettings(metadata.Type), cfg)
	of.Shared = origin.NewKnown(4*cfg.MaxStreams, time.Now)
	return of
}

// rig is a connector whose clock the test sets.
type rig struct {
	t     *testing.T
	lines *lines
	sink  *consumertest.TracesSink
	at    time.Time
	// unknown is true if the times of lines are only those at which they were read.
	unknown bool
	attrs   map[string]any
	path    string
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	r := &rig{t: t, sink: new(consumertest.TracesSink), at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), path: "/data/exp7/train.log"}
	c, err := newLines(connectortest.NewNopSettings(metadata.Type), cfg, alone(), r.sink)
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
		if !r.unknown {
			record.SetTimestamp(pcommon.NewTimestampFromTime(r.at))
		}
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

// inPod lets what follows be of the file of a pod, as the operator container of file_log
// describes it.
func (r *rig) inPod(name, uid, restarts string) {
	r.path = fmt.Sprintf("/var/log/pods/ml_%s_%s/pytorch/%s.log", name, uid, restarts)
	if r.attrs == nil {
		r.attrs = map[string]any{}
	}
	maps.Copy(r.attrs, map[string]any{
		"k8s.namespace.name": "ml", "k8s.pod.name": name, "k8s.pod.uid": uid, "k8s.container.name": "pytorch", "k8s.container.restart_count": restarts,
	})
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
		var line strings.Builder
		fmt.Fprintf(&line, "%.3f+%.3f %s", s.StartTimestamp().AsTime().Sub(start).Seconds(), s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(), s.Name())
		for _, key := range []string{"ml.step", "ml.loss", "ml.val.loss", "ml.learning_rate", "ml.gradient.norm", "ml.tokens_per_second", "ml.samples_per_second", "ml.batch.size", "ml.rank.global"} {
			if v, ok := s.Attributes().Get(key); ok {
				fmt.Fprintf(&line, " %s=%s", key[strings.LastIndexByte(key, '.')+1:], v.AsString())
			}
		}
		if s.Status().Code() == ptrace.StatusCodeError {
			v, _ := s.Events().At(0).Attributes().Get("exception.type")
			fmt.Fprintf(&line, " failed=%s: %s", v.AsString(), s.Status().Message())
		}
		lines = append(lines, line.String())
	}
	return lines
}

const megatronLine = " [2026-03-01 %s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | learning rate: 1.000000E-04 | global batch size:    16 | %sloss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   %d | number of nan iterations:   %d |"

func TestStepsOfALine(t *testing.T) {
	r := newRig(t, nil)
	r.print(4*time.Second, fmt.Sprintf(megatronLine, "12:00:04.000000", 2, 32, 1500.0, "lm loss: 7.1E+00 | ", 0, 0))
	assert.Equal(t, []string{
		"1.000+1.500 train_step step=1 size=16",
		"2.500+1.500 train_step step=2 loss=7.1 learning_rate=0.0001 norm=1.2 size=16",
	}, r.describe())
	r.print(3*time.Second, fmt.Sprintf(megatronLine, "12:00:07.100000", 4, 64, 1500.0, "", 0, 0))
	assert.Equal(t, []string{
		"4.000+1.500 train_step step=3 size=16",
		"5.500+1.500 train_step step=4 loss=NaN learning_rate=0.0001 norm=1.2 size=16",
	}, r.describe(), "the loss is left out, which is NaN, and the printing took 0.1 s")
}

func TestLifecycle(t *testing.T) {
	lines, err := NewFactory().CreateLogsToTraces(t.Context(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, lines.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, lines.Shutdown(t.Context()))
}

const titan = "[titan] 2026-03-01 12:00:%02d,000 - root - INFO - step: %2d  loss: %8.5f  grad_norm:  1.4042  memory: 23.36GiB(29.49%%)  tps: 7,338  tflops: 47.90  mfu: 15.62%%"

// A program that starts again, from a checkpoint or not, makes another attempt: another
// trace of the same run.
func TestRestart(t *testing.T) {
	for name, start := range map[string]string{"a checkpoint": "[titan] 2026-03-01 12:00:20,000 - root - INFO - Training starts at step 2", "nothing": "python: warming up"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.print(2*time.Second, fmt.Sprintf(titan, 2, 1, 7.1))
			r.print(2*time.Second, fmt.Sprintf(titan, 4, 2, 7.0))
			r.print(2*time.Second, fmt.Sprintf(titan, 6, 3, 6.9))
			first := r.spans()
			require.Len(t, first, 3)
			r.print(14*time.Second, start)
			r.print(2*time.Second, fmt.Sprintf(titan, 22, 2, 6.9))
			r.print(2*time.Second, fmt.Sprintf(titan, 24, 3, 6.8))
			second := r.spans()
			require.Len(t, second, 2)
			assert.Equal(t, first[0].TraceID(), first[2].TraceID())
			assert.NotEqual(t, first[0].TraceID(), second[0].TraceID())
			assert.Equal(t, second[0].TraceID(), second[1].TraceID())
		})
	}
}

// The same lines read again make no span: a file that was read twice, or all ranks that
// print what one knows.
func TestAgain(t *testing.T) {
	r := newRig(t, nil)
	r.print(2*time.Second, fmt.Sprintf(titan, 2, 1, 7.1)+"\n"+fmt.Sprintf(titan, 2, 1, 7.1))
	assert.Len(t, r.spans(), 1)
}

// Each rank behind a launcher's prefix is a process of its own.
func TestRanks(t *testing.T) {
	r := newRig(t, nil)
	r.print(2*time.Second, "[rank0]: "+fmt.Sprintf(titan, 2, 1, 7.1)+"\n[rank1]: "+fmt.Sprintf(titan, 2, 1, 7.1))
	ranks := map[string]bool{}
	for _, td := range r.sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			v, _ := rs.Resource().Attributes().Get("ml.rank.global")
			ranks[v.AsString()] = true
		}
	}
	assert.Equal(t, map[string]bool{"0": true, "1": true}, ranks)
}

const crash = "Traceback (most recent call last):\n  File \"train.py\", line 7, in main\n    raise ValueError(\"bad batch\")\nValueError: bad batch"

// A traceback after which nothing follows ended the training. One after which it goes on
// was handled, and one of a program that does not train is none.
func TestFailure(t *testing.T) {
	r := newRig(t, nil)
	r.print(2*time.Second, fmt.Sprintf(titan, 2, 1, 7.1))
	r.print(time.Second, crash)
	r.wait(time.Second)
	assert.Len(t, r.describe(), 1, "it may go on")
	r.wait(5 * time.Second)
	assert.Equal(t, []string{"2.000+1.000 train failed=ValueError: bad batch"}, r.describe())
	r.wait(time.Hour)
	assert.Empty(t, r.describe())

	r = newRig(t, nil)
	r.print(2*time.Second, fmt.Sprintf(titan, 2, 1, 7.1))
	r.print(time.Second, crash)
	r.print(time.Second, fmt.Sprintf(titan, 4, 2, 7.1))
	r.wait(time.Hour)
	for _, line := range r.describe() {
		assert.NotContains(t, line, "failed")
	}

	r = newRig(t, nil)
	r.print(2*time.Second, crash)
	r.wait(time.Hour)
	assert.Empty(t, r.describe())
}

// The tracebacks of several ranks are mixed in one file.
func TestFailuresOfRanks(t *testing.T) {
	r := newRig(t, nil)
	r.print(2*time.Second, "[rank0]: "+fmt.Sprintf(titan, 2, 1, 7.1)+"\n[rank1]: "+fmt.Sprintf(titan, 2, 1, 7.1))
	r.spans()
	for line := range strings.SplitSeq(crash, "\n") {
		r.print(10*time.Millisecond, "[rank0]: "+line+"\n[rank1]: "+strings.ReplaceAll(line, "ValueError", "TypeError"))
	}
	r.wait(10 * time.Second)
	found := strings.Join(r.describe(), "\n")
	assert.Contains(t, found, "failed=ValueError: bad batch")
	assert.Contains(t, found, "failed=TypeError: bad batch")
}

// Beyond the limit, lines of further files are dropped, until a stream was not used for a
// while.
func TestMaxStreams(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxStreams = 4 })
	for i := range 10 {
		r.path = fmt.Sprintf("/data/%d.log", i)
		r.print(time.Millisecond, fmt.Sprintf(titan, 2, 1, 7.1))
	}
	assert.Less(t, len(r.spans()), 5)
	r.path = "/data/new.log"
	r.print(2*time.Minute, fmt.Sprintf(titan, 2, 1, 7.1))
	assert.Len(t, r.spans(), 1)
	r.wait(13 * time.Hour)
	assert.Empty(t, r.lines.programs.streams)
}

func TestBodies(t *testing.T) {
	for name, body := range map[string]func(pcommon.Value){
		"journald": func(v pcommon.Value) { v.SetEmptyMap().PutStr("MESSAGE", fmt.Sprintf(titan, 2, 1, 7.1)) },
		"several lines": func(v pcommon.Value) {
			v.SetStr("other\n" + fmt.Sprintf(titan, 2, 1, 7.1) + "\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			ld := r.logs("x")
			body(ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body())
			require.NoError(t, r.lines.ConsumeLogs(t.Context(), ld))
			assert.Len(t, r.spans(), 1)
		})
	}
}

// The kernel says which container lacked memory, in journald or in its own file. A program
// that prints the same text says nothing.
func TestKilledByTheKernel(t *testing.T) {
	const kill = "2026-03-01T12:00:30 n1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,task_memcg=/kubepods/pod11111111-2222-3333-4444-555555555555/x,task=python,pid=7,uid=0"
	train := func(t *testing.T) *rig {
		r := newRig(t, nil)
		r.inPod("llama-0", "11111111-2222-3333-4444-555555555555", "0")
		r.print(0, "iter 1: loss 2.5000, time 100.00ms, mfu 1.00%")
		r.print(time.Second, "iter 2: loss 2.4000, time 100.00ms, mfu 1.00%")
		r.attrs = nil
		return r
	}
	failures := func(r *rig) (classes []string) {
		r.wait(5 * time.Second)
		for _, s := range r.spans() {
			for _, e := range s.Events().All() {
				class, _ := e.Attributes().Get("exception.type")
				classes = append(classes, class.Str())
			}
		}
		return classes
	}
	for name, of := range map[string]struct {
		path string
		body func(pcommon.Value)
		want []string
	}{
		"its file": {path: "/var/log/kern.log", want: []string{"OOMKilled"}},
		"journald": {body: func(body pcommon.Value) {
			body.SetEmptyMap().PutStr("MESSAGE", kill)
			body.Map().PutStr("_TRANSPORT", "kernel")
		}, want: []string{"OOMKilled"}},
		"a program in journald": {body: func(body pcommon.Value) {
			body.SetEmptyMap().PutStr("MESSAGE", kill)
			body.Map().PutStr("_TRANSPORT", "syslog")
		}},
		"a program's file": {path: "/data/other.log"},
	} {
		t.Run(name, func(t *testing.T) {
			r := train(t)
			r.path = of.path
			ld := r.logs(kill)
			if of.body != nil {
				of.body(ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body())
			}
			require.NoError(t, r.lines.ConsumeLogs(t.Context(), ld))
			assert.Equal(t, of.want, failures(r))
		})
	}
	t.Run("another pod", func(t *testing.T) {
		r := train(t)
		r.path = "/var/log/kern.log"
		require.NoError(t, r.lines.ConsumeLogs(t.Context(), r.logs(strings.Replace(kill, "pod1", "pod2", 1))))
		assert.Empty(t, failures(r))
	})
}

// Records pass with the run and the service of their file.
func TestRecords(t *testing.T) {
	sink := new(consumertest.LogsSink)
	c, err := NewFactory().CreateLogsToLogs(t.Context(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	r := newRig(t, nil)
	r.attrs = map[string]any{"host.name": "n1"}
	ld := r.logs("one\ntwo")
	ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1).Attributes().PutStr("log.file.path", "/data/llama/train.log")
	require.True(t, c.Capabilities().MutatesData)
	require.NoError(t, c.ConsumeLogs(t.Context(), ld))
	require.Equal(t, 2, sink.LogRecordCount())
	out := sink.AllLogs()[0].ResourceLogs()
	require.Equal(t, 2, out.Len())
	run, _ := out.At(1).Resource().Attributes().Get("ml.run.id")
	assert.Regexp(t, "^train-[0-9a-f]{8}$", run.Str())
	first, _ := out.At(0).Resource().Attributes().Get("ml.run.id")
	assert.NotEqual(t, first.Str(), run.Str())
	host, _ := out.At(1).Resource().Attributes().Get("host.name")
	assert.Equal(t, "n1", host.Str())
	assert.Equal(t, "two", out.At(1).ScopeLogs().At(0).LogRecords().At(0).Body().Str())
}

// Records of one file pass without a copy of their resource.
func TestRecordsOfOneFile(t *testing.T) {
	of := alone()
	allocations := func(attributes int) float64 {
		r := newRig(t, nil)
		r.attrs = map[string]any{"host.name": "n1"}
		for i := range attributes {
			r.attrs[fmt.Sprintf("attribute.%d", i)] = "value"
		}
		ld := r.logs("one\ntwo")
		return testing.AllocsPerRun(100, func() {
			require.NoError(t, (&records{origins: of, next: consumertest.NewNop()}).ConsumeLogs(t.Context(), ld))
		})
	}
	assert.InDelta(t, allocations(1), allocations(30), 2)
}

// A user's format goes before the shipped ones. Its mistakes are named.
func TestOwnFormat(t *testing.T) {
	own := func(change func(*format.Format)) format.Format {
		f := format.Format{Name: "mine", Lines: []format.Rule{{
			Is: "step", Has: "it=", Pattern: `^it=(?P<step>\d+) l=(?P<loss>\S+)`, Fields: map[string]string{"learning_rate": "lr="},
		}}, Examples: []format.Example{{Text: "it=3 l=0.5 lr=1e-4", Reads: []string{"step step=3 loss=0.5 learning_rate=0.0001"}}}}
		change(&f)
		return f
	}
	r := newRig(t, func(c *Config) { c.Formats = []format.Format{own(func(*format.Format) {})} })
	r.print(time.Second, "it=1 l=0.25 lr=1e-4")
	assert.Equal(t, []string{"1.000+0.000 train_step step=1 loss=0.25 learning_rate=0.0001"}, r.describe())
	for want, change := range map[string]func(*format.Format){
		`formats::0::name: must not be empty`:                               func(f *format.Format) { f.Name = "" },
		`formats::0::lines: must have at least one rule`:                    func(f *format.Format) { f.Lines = nil },
		`formats::0::lines::0::is: "stp" is none of step,`:                  func(f *format.Format) { f.Lines[0].Is = "stp" },
		`formats::0::lines::0::has: "i" must have at least 2 bytes`:         func(f *format.Format) { f.Lines[0].Has = "i" },
		`formats::0::lines::0::pattern: error parsing regexp`:               func(f *format.Format) { f.Lines[0].Pattern = "(" },
		`formats::0::lines::0::pattern: "speed" is none of at_ms`:           func(f *format.Format) { f.Lines[0].Pattern = `(?P<speed>\d+)` },
		`formats::0::lines::0::fields: "speed" is none of at_ms`:            func(f *format.Format) { f.Lines[0].Fields = map[string]string{"speed": "x"} },
		`formats::0::lines::0::pattern: "x" has no group step`:              func(f *format.Format) { f.Lines[0].Pattern = "x" },
		`formats::0::lines::0::scope: "all" is none of device, global`:      func(f *format.Format) { f.Lines[0].Scope = "all" },
		`formats::0::examples::0::reads: are ["step step=4"], but the text`: func(f *format.Format) { f.Examples[0].Reads = []string{"step step=4"} },
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Formats = []format.Format{own(change)}
		assert.ErrorContains(t, cfg.Validate(), want)
	}
}

func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`"max_streams" is 0; it must be between 1 and 65536`: func(c *Config) { c.MaxStreams = 0 },
	} {
		cfg := createDefaultConfig().(*Config)
		change(cfg)
		assert.EqualError(t, cfg.Validate(), want)
	}
}

// Ranks of a host that print the same steps, in one file or one each, count once, also if
// one of them is behind. Their failures are told apart.
func TestLocalRanks(t *testing.T) {
	for name, print := range map[string]func(r *rig, rank int, line string){
		"prefixes": func(r *rig, rank int, line string) { r.print(0, fmt.Sprintf("[default%d]:%s", rank, line)) },
		"files": func(r *rig, rank int, line string) {
			r.path = fmt.Sprintf("/logs/llama/attempt_0/%d/stdout.log", rank)
			r.print(0, line)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			for step := 1; step <= 10; step++ {
				r.at = r.at.Add(time.Second)
				print(r, 0, fmt.Sprintf(titan, step, step, 7.1))
				if step > 1 {
					print(r, 1, fmt.Sprintf(titan, step, step-1, 7.1))
				}
			}
			steps, traces := 0, map[string]bool{}
			for _, s := range r.spans() {
				steps++
				traces[s.TraceID().String()] = true
			}
			assert.Equal(t, 10, steps)
			assert.Len(t, traces, 1)
			for line := range strings.SplitSeq(crash, "\n") {
				print(r, 0, line)
				print(r, 1, strings.ReplaceAll(line, "ValueError", "TypeError"))
			}
			r.wait(10 * time.Second)
			found := strings.Join(r.describe(), "\n")
			assert.Contains(t, found, "failed=ValueError: bad batch")
			assert.Contains(t, found, "failed=TypeError: bad batch")
		})
	}
}

// A container or a launcher that starts the program again makes another attempt of the same
// run.
func TestAttempts(t *testing.T) {
	for name, begin := range map[string]func(r *rig, attempt int){
		"a container": func(r *rig, attempt int) { r.inPod("llama-0", "u", strconv.Itoa(attempt)) },
		"a launcher":  func(r *rig, attempt int) { r.path = fmt.Sprintf("/logs/llama/attempt_%d/0/stdout.log", attempt) },
	} {
		runs, traces := map[string]bool{}, map[string]bool{}
		r := newRig(t, nil)
		for i := range 2 {
			begin(r, i)
			r.print(2*time.Second, fmt.Sprintf(titan, 2*i+2, 1, 7.1))
		}
		for _, td := range r.sink.AllTraces() {
			run, _ := td.ResourceSpans().At(0).Resource().Attributes().Get("ml.run.id")
			runs[run.Str()] = true
		}
		for _, s := range r.spans() {
			traces[s.TraceID().String()] = true
		}
		assert.Len(t, runs, 1, name)
		assert.Len(t, traces, 2, name)
	}
}

// Files of pods that come without the operator container are kept apart, too.
func TestPodsWithoutTheOperator(t *testing.T) {
	r := newRig(t, nil)
	runs := map[string]int{}
	for _, pod := range []string{"llama-0_u", "llama-1_v", "mistral-0_w"} {
		r.path = "/var/log/pods/ml_" + pod + "/pytorch/0.log"
		for step := 1; step <= 3; step++ {
			r.print(time.Second, fmt.Sprintf(titan, step, step, 7.1))
		}
	}
	assert.Len(t, r.lines.programs.streams, 3)
	for _, td := range r.sink.AllTraces() {
		run, _ := td.ResourceSpans().At(0).Resource().Attributes().Get("ml.run.id")
		runs[run.Str()] += td.SpanCount()
	}
	assert.Len(t, runs, 2)
	assert.Len(t, r.spans(), 9)
}

// A container that starts again repeats its steps: they count as another attempt, which begins
// after the end of the one before, whatever time the first line states for its step.
func TestContainerThatRepeatsSteps(t *testing.T) {
	for name, begin := range map[string]func(r *rig, attempt int){
		"a container": func(r *rig, attempt int) { r.inPod("llama-0", "u", strconv.Itoa(attempt)) },
		"a launcher":  func(r *rig, attempt int) { r.path = fmt.Sprintf("/logs/llama/attempt_%d/0/stdout.log", attempt) },
		"one file":    func(*rig, int) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			for attempt, steps := range []int{30, 40} {
				begin(r, attempt)
				for step := 1; step <= steps; step++ {
					r.print(time.Second, fmt.Sprintf("iter %d: loss 2.5000, time 5000.00ms, mfu 1.00%%", step-1))
				}
			}
			attempts := map[string]int{}
			var before, first ptrace.Span
			for _, s := range r.spans() {
				if attempts[s.TraceID().String()]++; len(attempts) == 1 {
					before = s
				} else if attempts[s.TraceID().String()] == 1 {
					first = s
				}
			}
			require.Len(t, attempts, 2)
			assert.Equal(t, 30, attempts[before.TraceID().String()])
			assert.Equal(t, 40, attempts[first.TraceID().String()])
			assert.GreaterOrEqual(t, first.StartTimestamp(), before.EndTimestamp())
		})
	}
}

// Lines without times that are read together, of a file that was written before, are as far
// apart as they say, and the last of them is new. Those that are printed while they are read
// share the time since the lines before.
func TestLinesWithoutTimes(t *testing.T) {
	r := newRig(t, nil)
	r.unknown = true
	for batch := range 10 {
		var text strings.Builder
		for i := range 100 {
			fmt.Fprintf(&text, "iter %d: loss 3.1234, time 250.00ms, mfu 12.34%%\n", batch*100+i)
		}
		r.print(10*time.Millisecond, text.String())
	}
	assert.Empty(t, r.spans(), "more may follow")
	r.wait(time.Second)
	spans := r.spans()
	require.Len(t, spans, 1000)
	for i, s := range spans {
		assert.Equal(t, 250*time.Millisecond, s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()))
		assert.Equal(t, time.Duration(i-999)*250*time.Millisecond, s.EndTimestamp().AsTime().Sub(r.at.Add(-time.Second)))
	}

	r = newRig(t, nil)
	r.unknown = true
	for poll := range 20 {
		var text strings.Builder
		for i := range 5 {
			fmt.Fprintf(&text, "[%d]\ttrain-rmse:0.45270\n", poll*5+i)
		}
		r.print(2*time.Second, text.String())
		r.wait(0)
		r.wait(time.Second)
		for _, s := range r.spans() {
			if poll > 0 {
				assert.InDelta(t, 0.6, s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(), 1e-6)
			}
		}
	}
}

// A program that prints all the time is seen within seconds, and its steps are as long as it
// says.
func TestLinesWithoutPause(t *testing.T) {
	r := newRig(t, nil)
	r.unknown = true
	var spans []ptrace.Span
	for i := range 100 {
		r.print(200*time.Millisecond, fmt.Sprintf("step:%d/5100 train_loss:3.1 train_time:%dms\n", i+1, 20_000+i*200))
		if i%5 == 4 {
			r.wait(0)
			spans = append(spans, r.spans()...)
			assert.GreaterOrEqual(t, len(spans), i-20)
		}
	}
	for _, s := range spans[1:] {
		assert.InDelta(t, 0.2, s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(), 1e-6)
	}
}

// Processes behind prefixes, and lines that wait for others, are limited over all streams.
func TestLimitsOfAll(t *testing.T) {
	r := newRig(t, nil)
	r.unknown = true
	for file := range 4 {
		r.path = fmt.Sprintf("/data/%d.log", file)
		var text strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&text, "[rank%d]: iter 1: loss 3.1234, time 250.00ms, mfu 12.34%%\n", i)
		}
		r.print(time.Millisecond, text.String())
	}
	assert.Equal(t, maxProcesses, r.lines.programs.prefixed)
	for file := range 12 {
		r.path = fmt.Sprintf("/data/%d.txt", file+100)
		var text strings.Builder
		for i := range 8000 {
			fmt.Fprintf(&text, "iter %d: loss 3.1234, time 250.00ms, mfu 12.34%%\n", i)
		}
		r.print(time.Millisecond, text.String())
	}
	assert.LessOrEqual(t, r.lines.held, maxHeld)
	r.wait(5 * time.Second)
	assert.Zero(t, r.lines.held)
	assert.Empty(t, r.lines.waiting)
	r.wait(13 * time.Hour)
	assert.Empty(t, r.lines.programs.streams)
	assert.Zero(t, r.lines.programs.prefixed)
}
