package gpujoin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// seeIn notes a process of a run in a container.
func seeIn(t *testing.T, ix *Index, run, container string) {
	t.Helper()
	attrs := pcommon.NewMap()
	require.NoError(t, attrs.FromRaw(map[string]any{"service.name": "trainer", "container.id": container}))
	facts, _ := vocabulary.Classify(attrs, "", ptrace.NewSpan())
	var p Process
	ix.Describe(&p, attrs, facts, run, false, run, new(Allocator))
	ix.See(&p)
}

// joinIn returns the run and the rule of a workload in a container.
func joinIn(ix *Index, container string) (run, rule string) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(mlattr.GPUWorkloadMemory)
	attrs := m.SetEmptySum().DataPoints().AppendEmpty().Attributes()
	attrs.PutStr(mlattr.HardwareID, "GPU-a")
	attrs.PutStr("container.id", container)
	ix.Join(md, func(int) string { return "n1" })
	return mlattr.IDAt(attrs, mlattr.RunID), mlattr.IDAt(attrs, mlattr.GPUJoin)
}

func TestAWorkloadGetsTheOnlyRunOfItsContainer(t *testing.T) {
	ix, now := newTestIndex()
	seeIn(t, ix, "r1", "c1")
	run, rule := joinIn(ix, "c1")
	assert.Equal(t, "r1", run)
	assert.Equal(t, "container", rule)
	run, _ = joinIn(ix, "c2")
	assert.Empty(t, run, "another container")
	seeIn(t, ix, "r2", "c1")
	run, _ = joinIn(ix, "c1")
	assert.Empty(t, run, "two runs")
	*now = now.Add(liveAge + 1)
	run, _ = joinIn(ix, "c1")
	assert.Empty(t, run, "they have ended")
}
