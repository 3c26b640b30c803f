package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

var testStart = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// everySpanSteps is enough steps for every kind of event.
const everySpanSteps = 110

func testSettings() Settings {
	return Settings{Seed: 42, Rate: 1, Ranks: 2, JobName: "local", MetricsInterval: 5 * time.Second}
}

// perform runs a scenario for some steps and to its end.
func perform(t *testing.T, name string, settings Settings, steps int) []Batch {
	t.Helper()
	return performFrom(t, testStart, name, settings, steps)
}

func performFrom(t *testing.T, at time.Time, name string, settings Settings, steps int) []Batch {
	t.Helper()
	s, err := New(name, settings)
	require.NoError(t, err)
	var out []Batch
	for range steps {
		at = at.Add(settings.interval())
		out = append(out, s.Step(at)...)
	}
	return append(out, s.Finish(at)...)
}

// sent flattens requests, in the order of sending.
type sent struct {
	spans   []*sentlog.Span
	metrics []*sentlog.Metric
	logs    []*sentlog.LogEntry
	truth   sentlog.Truth
}

func flatten(batches []Batch) sent {
	var out sent
	for _, b := range batches {
		for _, e := range b.Entries() {
			switch {
			case e.Span != nil:
				out.spans = append(out.spans, e.Span)
			case e.Metric != nil:
				out.metrics = append(out.metrics, e.Metric)
			case e.Log != nil:
				out.logs = append(out.logs, e.Log)
			}
		}
		out.truth.Merge(b.Truth)
	}
	return out
}

func send(t *testing.T, name string, steps int) sent {
	t.Helper()
	return flatten(perform(t, name, testSettings(), steps))
}

// named returns the spans of a name.
func (s sent) named(name string) []*sentlog.Span {
	return s.matching(func(span *sentlog.Span) bool { return span.Name == name })
}

func (s sent) matching(match func(*sentlog.Span) bool) []*sentlog.Span {
	var out []*sentlog.Span
	for _, span := range s.spans {
		if match(span) {
			out = append(out, span)
		}
	}
	return out
}

// last returns the last point of each stream of a metric.
func (s sent) last(name string) map[string]*sentlog.Metric {
	out := map[string]*sentlog.Metric{}
	for _, m := range s.metrics {
		if m.Name == name {
			out[fmt.Sprint(m.Resource, m.Attributes)] = m
		}
	}
	return out
}

func marshal(t *testing.T, batches []Batch) []byte {
	t.Helper()
	var out []byte
	for _, b := range batches {
		var raw []byte
		var err error
		switch b.Signal {
		case sentlog.SignalTraces:
			raw, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(b.Traces)
		case sentlog.SignalMetrics:
			raw, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(b.Metrics)
		case sentlog.SignalLogs:
			raw, err = (&plog.ProtoMarshaler{}).MarshalLogs(b.Logs)
		}
		require.NoError(t, err)
		out = append(out, raw...)
	}
	return out
}

func TestSeedRepeatsEverything(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			first := perform(t, name, testSettings(), 60)
			second := perform(t, name, testSettings(), 60)
			assert.Equal(t, marshal(t, first), marshal(t, second), "the same seed sends the same bytes")
			assert.Equal(t, flatten(first).truth, flatten(second).truth)

			other := testSettings()
			other.Seed = 43
			assert.NotEqual(t, marshal(t, first), marshal(t, perform(t, name, other, 60)), "another seed sends other bytes")
		})
	}
}

// TestSeedIgnoresTheClock shows that ids, values and order come from the seed
// alone: at another time the same happens.
func TestSeedIgnoresTheClock(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			strip := func(s sent) sent {
				for _, span := range s.spans {
					span.StartUnixNano, span.EndUnixNano = 0, 0
					for i := range span.Events {
						span.Events[i].TimeUnixNano = 0
					}
				}
				for _, m := range s.metrics {
					m.StartUnixNano, m.TimeUnixNano = 0, 0
				}
				for _, l := range s.logs {
					l.TimeUnixNano = 0
				}
				return s
			}
			first := strip(send(t, name, 60))
			later := strip(flatten(performFrom(t, testStart.Add(987_654_321*time.Microsecond), name, testSettings(), 60)))
			assert.Equal(t, first, later)
		})
	}
}

// TestEverySpan checks what holds for all clients.
func TestEverySpan(t *testing.T) {
	for _, rate := range []float64{0.2, 1, 50} {
		for _, name := range Names() {
			t.Run(fmt.Sprintf("%s at %v a second", name, rate), func(t *testing.T) {
				settings := testSettings()
				settings.Rate = rate
				out := flatten(perform(t, name, settings, everySpanSteps))
				ids := map[string]bool{}
				end := testStart.Add(everySpanSteps * settings.interval()).UnixNano()
				total := map[string]int64{}
				for _, span := range out.spans {
					assert.Len(t, span.TraceID, 32)
					assert.Len(t, span.SpanID, 16)
					assert.False(t, ids[span.SpanID], "span id %s twice", span.SpanID)
					ids[span.SpanID] = true
					assert.GreaterOrEqual(t, span.EndUnixNano, span.StartUnixNano, span.Name)
					assert.LessOrEqual(t, span.EndUnixNano, end, span.Name)
					assert.NotEqual(t, "unspecified", span.Kind, span.Name)
					assert.NotEmpty(t, span.Scope.Name, span.Name)
					assert.NotEmpty(t, span.Resource["service.name"], span.Name)
					for _, e := range span.Events {
						assert.GreaterOrEqual(t, e.TimeUnixNano, span.StartUnixNano, "%s of %s", e.Name, span.Name)
						assert.LessOrEqual(t, e.TimeUnixNano, span.EndUnixNano, "%s of %s", e.Name, span.Name)
					}
					total[template(span.Name)]++
				}
				assert.Equal(t, total, out.truth.Spans)
			})
		}
	}
}

// TestNoSpanEndsBeforeItStarts sends at uneven times.
// On a busy machine a step can come late and the next one right behind it.
func TestNoSpanEndsBeforeItStarts(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s, err := New(name, testSettings())
			require.NoError(t, err)
			at := testStart
			var out []Batch
			for i := range everySpanSteps {
				gap := testSettings().interval()
				if i%3 != 0 {
					gap = time.Duration(i) * time.Microsecond
				}
				at = at.Add(gap)
				out = append(out, s.Step(at)...)
			}
			out = append(out, s.Finish(at)...)
			eachSpan(out, func(span ptrace.Span) {
				assert.GreaterOrEqual(t, span.EndTimestamp(), span.StartTimestamp(), span.Name())
			})
		})
	}
}

// TestParents checks that a child lies in its parent's time, where the client
// does not leave the parent early, and that no parent is missing.
func TestParents(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			out := send(t, name, 150)
			byID := map[string]*sentlog.Span{}
			for _, span := range out.spans {
				byID[span.SpanID] = span
			}
			for _, span := range out.spans {
				if span.ParentSpanID == "" {
					continue
				}
				parent := byID[span.ParentSpanID]
				require.NotNil(t, parent, "%s has a parent that was never sent", span.Name)
				assert.Equal(t, parent.TraceID, span.TraceID, span.Name)
				assert.GreaterOrEqual(t, span.StartUnixNano, parent.StartUnixNano, "%s below %s", span.Name, parent.Name)
				if parent.Kind != "server" && span.Name != "HeartbeatClient/SendPing" {
					assert.LessOrEqual(t, span.EndUnixNano, parent.EndUnixNano, "%s below %s", span.Name, parent.Name)
				}
			}
		})
	}
}

func TestMetricsAreCumulative(t *testing.T) {
	for _, name := range []string{"torchtel", "tuft", "snakepit", "taskweaver"} {
		t.Run(name, func(t *testing.T) {
			type seen struct {
				value       float64
				start, time int64
			}
			before := map[string]seen{}
			grew := 0
			for _, m := range send(t, name, 60).metrics {
				key := fmt.Sprint(m.Name, m.Resource, m.Attributes)
				old, known := before[key]
				value := m.Value
				if m.Kind == "histogram" {
					value = float64(m.Count)
					sum := uint64(0)
					for _, n := range m.Buckets {
						sum += n
					}
					assert.Equal(t, m.Count, sum, m.Name)
					assert.Len(t, m.Buckets, len(m.Bounds)+1, m.Name)
				}
				if m.Kind != "gauge" {
					assert.NotZero(t, m.StartUnixNano, m.Name)
				}
				if known {
					assert.Equal(t, old.start, m.StartUnixNano, m.Name)
					assert.GreaterOrEqual(t, m.TimeUnixNano, old.time, m.Name)
					if m.Monotonic || m.Kind == "histogram" {
						assert.GreaterOrEqual(t, value, old.value, m.Name)
						grew++
					}
				}
				before[key] = seen{value, m.StartUnixNano, m.TimeUnixNano}
			}
			assert.NotZero(t, grew)
		})
	}
}

func TestNew(t *testing.T) {
	_, err := New("nonsense", testSettings())
	require.EqualError(t, err, `unknown scenario "nonsense", want one of fx, snakepit, taskweaver, torchtel, tuft`)
	for _, name := range Names() {
		s, err := New(name, testSettings())
		require.NoError(t, err)
		for _, b := range s.Finish(testStart) {
			assert.Zero(t, b.Items()-int64(len(b.Entries())), "a scenario that never ran")
			assert.NotEqual(t, sentlog.SignalTraces, b.Signal, "a scenario that never ran has no spans")
		}
	}
}

// TestEverythingIsSimulated shows that each resource says so.
func TestEverythingIsSimulated(t *testing.T) {
	for _, name := range Names() {
		out := send(t, name, everySpanSteps)
		for _, span := range out.spans {
			require.Equal(t, true, span.Resource["ml.simulated"], span.Name)
		}
		for _, m := range out.metrics {
			require.Equal(t, true, m.Resource["ml.simulated"], m.Name)
		}
		for _, l := range out.logs {
			require.Equal(t, true, l.Resource["ml.simulated"], l.Body)
		}
	}
}

func TestTemplate(t *testing.T) {
	for name, want := range map[string]string{
		"epoch_12": "epoch_{n}", "batch_0": "batch_{n}", "loss_at_step_3": "loss_at_step_{n}",
		"validation": "validation", "_": "_", "": "", "a_1_2b": "a_{n}_{n}b", "load_plugin": "load_plugin",
	} {
		assert.Equal(t, want, template(name))
	}
}

// keys collects the attribute keys of spans, numbers in them replaced.
func keys(spans []*sentlog.Span) []string {
	set := map[string]bool{}
	for _, span := range spans {
		for k := range span.Attributes {
			set[template(k)] = true
		}
	}
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func names(spans []*sentlog.Span) []string {
	set := map[string]bool{}
	for _, span := range spans {
		set[template(span.Name)] = true
	}
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func metricNames(metrics []*sentlog.Metric) []string {
	set := map[string]bool{}
	for _, m := range metrics {
		set[m.Name+" "+m.Kind+" "+m.Unit] = true
	}
	var out []string
	for k := range set {
		out = append(out, strings.TrimSpace(k))
	}
	slices.Sort(out)
	return out
}
