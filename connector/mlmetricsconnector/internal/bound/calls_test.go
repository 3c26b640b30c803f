package bound_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
)

func TestDivide(t *testing.T) {
	const unknown = -1
	idle := bound.Span{Seconds: 10, Utilization: unknown, Cores: unknown}
	with := func(change func(*bound.Span)) bound.Span {
		s := idle
		change(&s)
		return s
	}
	for name, tt := range map[string]struct {
		span bound.Span
		want bound.Times
	}{
		"nothing is known": {idle, bound.Times{bound.NotKnown: 10}},
		"the client measured": {
			with(func(s *bound.Span) { s.Queue, s.Serialize = 2, 1 }),
			bound.Times{bound.Queue: 2, bound.Serialize: 1, bound.NotKnown: 7},
		},
		"it measured more than there is": {
			with(func(s *bound.Span) { s.Queue, s.Serialize = 8, 8 }),
			bound.Times{bound.Queue: 8, bound.Serialize: 2},
		},
		"it measured what a span below shows": {
			with(func(s *bound.Span) { s.Queue, s.Below = 3, bound.Times{bound.Queue: 2} }),
			bound.Times{bound.Queue: 3, bound.NotKnown: 7},
		},
		"a busy GPU": {
			with(func(s *bound.Span) { s.Utilization, s.Cores = 0.71, 1 }),
			bound.Times{bound.OnGPU: 10},
		},
		"a busy core beside a GPU that is not": {
			with(func(s *bound.Span) { s.Utilization, s.Cores = 0.7, 0.7 }),
			bound.Times{bound.OnCPU: 10},
		},
		"neither is busy": {
			with(func(s *bound.Span) { s.Utilization, s.Cores = 0.1, 0.69 }),
			bound.Times{bound.NotKnown: 10},
		},
		"a wait": {with(func(s *bound.Span) { s.Kind, s.Cores = bound.Waits, 1 }), bound.Times{bound.Queue: 10}},
		"a wait before the work": {
			with(func(s *bound.Span) { s.Kind, s.Below = bound.ContainsWait, bound.Times{bound.OnGPU: 4} }),
			bound.Times{bound.Queue: 6, bound.OnGPU: 4},
		},
		"a wait before work that is not known": {
			with(func(s *bound.Span) { s.Kind = bound.ContainsWait }), bound.Times{bound.NotKnown: 10},
		},
		"a function in another process": {
			with(func(s *bound.Span) { s.Queue, s.Function, s.Cores = 1, 6, 1 }),
			bound.Times{bound.Queue: 1, bound.OnCPU: 6, bound.Network: 3},
		},
		"a function that a span below shows": {
			with(func(s *bound.Span) { s.Function, s.Below = 6, bound.Times{bound.OnGPU: 5} }),
			bound.Times{bound.OnGPU: 5, bound.NotKnown: 1, bound.Network: 4},
		},
		"data":                       {with(func(s *bound.Span) { s.Kind = bound.Loads }), bound.Times{bound.Loading: 10}},
		"a model in another process": {with(func(s *bound.Span) { s.Kind = bound.Asks }), bound.Times{bound.ModelServer: 10}},
		"a model's server that is known": {
			with(func(s *bound.Span) { s.Kind, s.Below = bound.Asks, bound.Times{bound.ModelServer: 9} }),
			bound.Times{bound.ModelServer: 9, bound.Network: 1},
		},
		"another process": {with(func(s *bound.Span) { s.Kind = bound.CallsOut }), bound.Times{bound.Network: 10}},
		"spans below at the same time": {
			with(func(s *bound.Span) { s.Below = bound.Times{bound.ModelServer: 15, bound.OnCPU: 5} }),
			bound.Times{bound.ModelServer: 7.5, bound.OnCPU: 2.5},
		},
		"no time":       {bound.Span{Below: bound.Times{bound.Queue: 1}}, bound.Times{}},
		"negative time": {bound.Span{Seconds: -1}, bound.Times{}},
		"no number":     {bound.Span{Seconds: math.NaN()}, bound.Times{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.span.Divide())
		})
	}
}

func TestCausesHaveNames(t *testing.T) {
	names := make(map[string]bool)
	for cause := range bound.Causes {
		assert.NotEmpty(t, cause.String())
		names[cause.String()] = true
	}
	assert.Len(t, names, int(bound.Causes))
}

func FuzzDivide(f *testing.F) {
	f.Add(10.0, 2.0, 1.0, 3.0, 4.0, 0.5, 0.5, uint8(0))
	f.Fuzz(func(t *testing.T, seconds, queue, serialize, server, cpu, utilization, cores float64, kind uint8) {
		const most = 31 * 24 * 3600
		if !(seconds >= 0 && seconds <= most) || !(server >= 0 && server <= most) || !(cpu >= 0 && cpu <= most) {
			return
		}
		s := bound.Span{
			Seconds: seconds, Below: bound.Times{bound.ModelServer: server, bound.OnCPU: cpu}, Queue: queue, Serialize: serialize,
			Kind: bound.Kind(kind % 6), Utilization: utilization, Cores: cores,
		}
		times := s.Divide()
		for _, part := range times {
			assert.GreaterOrEqual(t, part, 0.0)
		}
		assert.InDelta(t, seconds, times.Sum(), 1e-6)
	})
}
