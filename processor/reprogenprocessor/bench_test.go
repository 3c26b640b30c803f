package reprogenprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// BenchmarkConsumeTraces measures a batch of 1000 spans; with errors, of one
// group whose exemplars are complete, as in a flood.
func BenchmarkConsumeTraces(b *testing.B) {
	for name, every := range map[string]int{"no errors": 0, "1 percent": 100, "all": 1} {
		b.Run(name, func(b *testing.B) {
			p, sink := startTraces(b, testConfig(b), processortest.NewNopSettings(metadata.Type))
			td := ptrace.NewTraces()
			for i := range 1000 {
				s := mean().appendTo(td)
				s.SetTraceID(pcommon.TraceID{byte(i >> 8), byte(i)})
				if every == 0 || i%every != 0 {
					s.Status().SetCode(ptrace.StatusCodeUnset)
					s.Events().RemoveIf(func(ptrace.SpanEvent) bool { return true })
				}
			}
			serial := uint64(0)
			for b.Loop() {
				for _, s := range spans(td) { // a failure counts once a trace
					serial++
					id := s.TraceID()
					for i := range 8 {
						id[8+i] = byte(serial >> (8 * i))
					}
					s.SetTraceID(id)
				}
				require.NoError(b, p.ConsumeTraces(b.Context(), td))
				sink.Reset()
			}
			b.StopTimer()
			require.NoError(b, p.Shutdown(b.Context()))
		})
	}
}
