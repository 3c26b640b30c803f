package bound_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
)

func TestOf(t *testing.T) {
	unknown := math.NaN()
	for name, tt := range map[string]struct {
		evidence bound.Evidence
		want     bound.Bound
	}{
		"checkpoint before all":     {bound.Evidence{Checkpoint: 0.21, DataLoad: 0.5, Utilization: 0.9}, bound.Checkpoint},
		"input before GPU":          {bound.Evidence{DataLoad: 0.21, Utilization: 0.9}, bound.Input},
		"at the limits":             {bound.Evidence{Checkpoint: 0.2, DataLoad: 0.2, Productive: 0.6, Utilization: 0.71}, bound.GPU},
		"launch":                    {bound.Evidence{Productive: 0.51, Utilization: 0.39}, bound.Launch},
		"GPUs that do nothing":      {bound.Evidence{Productive: 0.51}, bound.Launch},
		"the program does not work": {bound.Evidence{Productive: 0.5, Utilization: 0.1}, bound.Unknown},
		"between":                   {bound.Evidence{Productive: 0.9, Utilization: 0.5}, bound.Unknown},
		"no GPU known":              {bound.Evidence{Productive: 0.9, Utilization: unknown}, bound.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, bound.Of(tt.evidence))
			assert.Contains(t, bound.All, tt.want)
		})
	}
}
