package detect

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// A run does not go on whose GPU has failed, of however many GPUs.
func TestSuspectOfAFailedGPU(t *testing.T) {
	s := &State{GPUs: &gpus.Facts{Hit: map[string]bool{"a": true}}}
	assert.True(t, suspect(s, &runs.Run{Key: streams.RunKey{ID: "a"}}))
	assert.False(t, suspect(s, &runs.Run{Key: streams.RunKey{ID: "b"}}))
}

// While no host is silent, nothing is made of the runs for that.
func TestNoSilentHostCostsNothing(t *testing.T) {
	s := &State{GPUs: &gpus.Facts{Hosts: map[string]gpus.Host{"h": {}}}}
	for range 100 {
		s.Runs = append(s.Runs, &runs.Run{})
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() { silentHosts(s, func(problem.Problem) {}) }))
}
