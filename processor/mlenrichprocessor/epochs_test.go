package mlenrichprocessor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// fxSpan is a span of the FX toolkit, a trace of its own. Times are seconds.
type fxSpan struct {
	name       string
	start, end float64
	attrs      map[string]any
}

// fxProcess is spans of a process, each a trace of its own by its place.
func fxProcess(resource map[string]any, spans ...fxSpan) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	if err := rs.Resource().Attributes().FromRaw(resource); err != nil {
		panic(err)
	}
	ss := rs.ScopeSpans().AppendEmpty().Spans()
	for _, s := range spans {
		span := ss.AppendEmpty()
		span.SetName(s.name)
		// Ids by what the span is, so that one that is sent again is the same.
		id := fmt.Sprintf("%s %v %v %v", s.name, s.start, s.end, s.attrs)
		var trace pcommon.TraceID
		for i, c := range []byte(id) {
			trace[i%16] = trace[i%16]*31 + c
		}
		span.SetTraceID(trace)
		span.SetSpanID(pcommon.SpanID(trace[:8]))
		span.SetStartTimestamp(pcommon.Timestamp(1e18 + s.start*1e9))
		span.SetEndTimestamp(pcommon.Timestamp(1e18 + s.end*1e9))
		if err := span.Attributes().FromRaw(s.attrs); err != nil {
			panic(err)
		}
	}
	return td
}

var fxResource = map[string]any{"service.name": "unknown_service:python", "service.instance.id": "i-1"}

func fxBatch(name string, start, end float64) fxSpan {
	return fxSpan{name, start, end, map[string]any{"step": 1, "loss": 0.5, "task.direction": 0.5}}
}

func fxEpoch(n int64, start, end float64) fxSpan {
	return fxSpan{"epoch_" + strconv.FormatInt(n, 10), start, end, map[string]any{"epoch": n}}
}

func TestEpochsByTime(t *testing.T) {
	loop := []fxSpan{
		fxBatch("batch_1", 0, 1), fxBatch("batch_2", 1, 2), fxEpoch(7, 0, 3),
		fxBatch("batch_3", 3, 4), fxBatch("batch_4", 4, 6), fxEpoch(8, 3, 6),
	}
	for name, test := range map[string]struct {
		spans []fxSpan
		want  map[string]string // by the name of a batch
	}{
		"each in its own": {loop, map[string]string{"batch_1": "7", "batch_2": "7", "batch_3": "8", "batch_4": "8"}},
		"across two epochs": {
			[]fxSpan{fxEpoch(7, 0, 3), fxEpoch(8, 3, 6), fxBatch("batch_1", 2, 4)}, nil,
		},
		"before and after": {
			[]fxSpan{fxBatch("batch_1", 0, 1), fxEpoch(7, 2, 3), fxBatch("batch_2", 4, 5)}, nil,
		},
		"between two epochs": {
			[]fxSpan{fxEpoch(7, 0, 1), fxBatch("batch_1", 2, 3), fxEpoch(8, 4, 5)}, nil,
		},
		"no epoch": {[]fxSpan{fxBatch("batch_1", 0, 1)}, nil},
		"epochs that overlap bind nothing": {
			[]fxSpan{fxEpoch(7, 0, 4), fxEpoch(1, 2, 6), fxBatch("batch_1", 0, 1), fxBatch("batch_2", 2, 3), fxBatch("batch_3", 5, 6)}, nil,
		},
		"an epoch within another binds nothing, and those after them do": {
			[]fxSpan{fxEpoch(7, 0, 5), fxEpoch(1, 1, 2), fxEpoch(2, 3, 4), fxEpoch(8, 5, 6), fxBatch("batch_1", 1, 2), fxBatch("batch_2", 5, 6)},
			map[string]string{"batch_2": "8"},
		},
		"its own epoch stays": {
			[]fxSpan{fxEpoch(7, 0, 4), {"batch_1", 0, 1, map[string]any{"step": 1, "loss": 0.5, "ml.epoch": 3}}},
			map[string]string{"batch_1": "3"},
		},
		"an epoch that cannot be read stays": {
			[]fxSpan{fxEpoch(7, 0, 4), {"batch_1", 0, 1, map[string]any{"step": 1, "loss": 0.5, "ml.epoch": "third"}}},
			map[string]string{"batch_1": "third"},
		},
		"an epoch delivered twice is one": {
			[]fxSpan{fxEpoch(7, 0, 4), fxEpoch(7, 0, 4), fxBatch("batch_1", 0, 1)},
			map[string]string{"batch_1": "7"},
		},
		"an epoch that ends before it starts is none": {
			[]fxSpan{fxEpoch(7, 4, 0), fxBatch("batch_1", 2, 3)}, nil,
		},
		"a stranger's batch": {[]fxSpan{fxEpoch(7, 0, 4), {"batch_1", 0, 1, nil}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if want == nil {
				want = map[string]string{}
			}
			for seed := range uint64(10) {
				spans := slices.Clone(test.spans)
				r := rand.New(rand.NewPCG(seed, 0))
				r.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
				assert.Equal(t, want, epochsOfBatches(startDefault(t).sendTraces(t, fxProcess(fxResource, spans...))), "in one request, seed %d", seed)
			}
			p := startDefault(t)
			var late []fxSpan
			for _, s := range test.spans {
				if s.name[:5] == "epoch" {
					p.sendTraces(t, fxProcess(fxResource, s))
				} else {
					late = append(late, s)
				}
			}
			out := p.sendTraces(t, fxProcess(fxResource, late...))
			assert.Equal(t, want, epochsOfBatches(out), "late")
			assert.Equal(t, want, epochsOfBatches(p.sendTraces(t, out)), "a second pass")
		})
	}
}

// epochsOfBatches returns ml.epoch by the names of batches.
func epochsOfBatches(td ptrace.Traces) map[string]string {
	found := keysByName(td, "ml.epoch")
	for name := range found {
		if name[:5] != "batch" {
			delete(found, name)
		}
	}
	return found
}

// TestEpochIsMarked says of a validation without a number how its epoch was
// found.
func TestEpochIsMarked(t *testing.T) {
	out := startDefault(t).sendTraces(t, fxProcess(fxResource, fxEpoch(7, 0, 4), fxBatch("batch_1", 0, 1),
		fxSpan{"validation", 2, 3, map[string]any{"val_loss": 0.5, "val_metric": 0.5}}))
	assert.Equal(t, map[string]string{"epoch_7": "7", "batch_1": "7", "validation": "7"}, keysByName(out, "ml.epoch"))
	assert.Equal(t, map[string]string{"batch_1": "epoch=time", "validation": "epoch=time"}, keysByName(out, "ml.correlation.source"))
}

// TestBatchesAheadOfTheirEpoch shows what is not possible: a batch that left
// before its epoch ended has none, and nothing is waited for.
func TestBatchesAheadOfTheirEpoch(t *testing.T) {
	p := startDefault(t)
	assert.Empty(t, epochsOfBatches(p.sendTraces(t, fxProcess(fxResource, fxBatch("batch_1", 0, 1)))))
	p.sendTraces(t, fxProcess(fxResource, fxEpoch(7, 0, 2)))
	assert.Equal(t, map[string]string{"batch_2": "7"}, epochsOfBatches(p.sendTraces(t, fxProcess(fxResource, fxBatch("batch_2", 1, 2)))))
}

// TestEpochsOfOtherProcesses has processes that only their instance, and some
// that nothing tells from each other.
func TestEpochsOfOtherProcesses(t *testing.T) {
	p := startDefault(t)
	p.sendTraces(t, fxProcess(fxResource, fxEpoch(7, 0, 4)))
	other := map[string]any{"service.name": "unknown_service:python", "service.instance.id": "i-2"}
	assert.Empty(t, epochsOfBatches(p.sendTraces(t, fxProcess(other, fxBatch("batch_1", 0, 1)))))

	unnamed := map[string]any{"service.name": "fx", "host.name": "n1"}
	assert.Empty(t, epochsOfBatches(p.sendTraces(t, fxProcess(unnamed, fxEpoch(7, 0, 4), fxBatch("batch_1", 0, 1)))),
		"two processes of the service on a host look alike")
	process := map[string]any{"service.name": "fx", "host.name": "n1", "process.pid": 12}
	assert.Len(t, epochsOfBatches(p.sendTraces(t, fxProcess(process, fxEpoch(7, 0, 4), fxBatch("batch_1", 0, 1)))), 1)
}

// TestNestedBatchIsOfItsOwnTrace has a batch with a parent fall into the time
// of another trace's epoch.
func TestNestedBatchIsOfItsOwnTrace(t *testing.T) {
	nest := func(batch fxSpan) ptrace.Traces {
		td := fxProcess(fxResource, fxEpoch(7, 0, 4), batch)
		spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		spans.At(1).SetParentSpanID(pcommon.SpanID{1})
		return td
	}
	assert.Empty(t, epochsOfBatches(startDefault(t).sendTraces(t, nest(fxBatch("batch_1", 0, 1)))))
	own := nest(fxBatch("batch_1", 0, 1))
	spans := own.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	spans.At(1).SetTraceID(spans.At(0).TraceID())
	spans.At(1).SetParentSpanID(spans.At(0).SpanID())
	assert.Equal(t, map[string]string{"batch_1": "7"}, epochsOfBatches(startDefault(t).sendTraces(t, own)))
}
