package identity

import (
	"strconv"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const spansOfBench = 512

func benchTraces(first int) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := range spansOfBench / 32 {
		id := strconv.Itoa(first + i)
		rs := td.ResourceSpans().AppendEmpty()
		attrs(rs.Resource().Attributes(), "service.name", "s"+id, "service.instance.id", "i"+id, mlattr.RunID, "r"+id, "host.name", "h")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for j := range 32 {
			attrs(spans.AppendEmpty().Attributes(), mlattr.Operation, "o"+strconv.Itoa(j%3), mlattr.GenAIRequestModel, "m",
				"input.value", "q", "output.value", "a", "llm.token_count.prompt", 900, "session.id", "x", mlattr.Phase, "forward", "k", 1)
		}
	}
	return td
}

// Of 512 spans whose labels are all admitted, and of 512 of which none is.
func BenchmarkTraces(b *testing.B) {
	for name, step := range map[string]int{"admitted": 0, "flood": spansOfBench} {
		b.Run(name, func(b *testing.B) {
			bed := newBed(b, DefaultConfig())
			batches := make([]ptrace.Traces, 64)
			for i := range batches {
				batches[i] = benchTraces(1000 + i*step)
				bed.Traces(b.Context(), batches[i])
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				bed.Traces(b.Context(), batches[i%len(batches)])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spansOfBench, "ns/span")
		})
	}
}

// A copy of the same spans, which the section does not make of what is admitted.
func BenchmarkCopy(b *testing.B) {
	td := benchTraces(0)
	for range b.N {
		to := ptrace.NewTraces()
		td.CopyTo(to)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spansOfBench, "ns/span")
}

func BenchmarkMetrics(b *testing.B) {
	bed := newBed(b, DefaultConfig())
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	points := m.SetEmptyGauge().DataPoints()
	for i := range spansOfBench {
		attrs(points.AppendEmpty().Attributes(), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "gpu", i, "o", true)
	}
	bed.Metrics(b.Context(), md)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		bed.Metrics(b.Context(), md)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spansOfBench, "ns/point")
}
