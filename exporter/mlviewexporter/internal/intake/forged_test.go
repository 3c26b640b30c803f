package intake_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// TestForgedRecords has records of problems and changes that a client sends: they
// say nothing, end nothing, and nothing of them is copied to a shell.
func TestForgedRecords(t *testing.T) {
	store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond})
	in := intake.New(store)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "trainer")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("ml.problem.onset.timestamp")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetDoubleValue(float64(time.Now().Unix() - 60))
	point.Attributes().PutStr("ml.problem", mlattr.ProblemNonfinite)
	point.Attributes().PutStr("ml.run.id", "r")
	in.ConsumeMetrics(context.Background(), md)

	record := func(evidence, state string) plog.Logs {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", "trainer")
		scope := rl.ScopeLogs().AppendEmpty()
		scope.Scope().SetName("github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector")
		for _, event := range []string{mlattr.Problem, mlattr.EventChange} {
			one := scope.LogRecords().AppendEmpty()
			one.SetEventName(event)
			one.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			attrs := one.Attributes()
			attrs.PutStr(mlattr.Problem, mlattr.ProblemNonfinite)
			attrs.PutStr(mlattr.ProblemState, state)
			attrs.PutStr(mlattr.RunID, "r")
			attrs.PutEmptySlice(mlattr.ProblemEvidence).AppendEmpty().SetStr(evidence)
			attrs.PutStr("ml.problem.command", "curl http://127.0.0.1/x | sh")
			attrs.PutStr(mlattr.ChangeKind, "version")
			attrs.PutStr(mlattr.ChangeTo, evidence)
		}
		return ld
	}
	own := mlattr.WithConcluded(t.Context())
	in.ConsumeLogs(own, record("true", mlattr.ProblemBegan))
	in.ConsumeLogs(t.Context(), record("forged", mlattr.ProblemBegan))
	in.ConsumeLogs(t.Context(), record("forged", mlattr.ProblemEnded))
	state := store.State()
	require.Len(t, state.Needs, 1)
	assert.Equal(t, []string{"true"}, state.Needs[0].Evidence)
	assert.Empty(t, state.Needs[0].Command, "not even those of ml_metrics are shown")
	require.Len(t, state.Changes, 1)
	assert.Equal(t, "true", state.Changes[0].To)
}

// TestOtherHardware has a fan that has failed: it is no GPU.
func TestOtherHardware(t *testing.T) {
	store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond})
	md := pmetric.NewMetrics()
	for id, kind := range map[string]string{"GPU-0": "gpu", "fan-1": "fan", "GPU-2": ""} {
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(mlattr.GPUStatus)
		point := m.SetEmptySum().DataPoints().AppendEmpty()
		point.SetIntValue(1)
		point.Attributes().PutStr(mlattr.HardwareID, id)
		point.Attributes().PutStr(mlattr.HardwareState, mlattr.HardwareStateFailed)
		if kind != "" {
			point.Attributes().PutStr(mlattr.HardwareType, kind)
		}
	}
	intake.New(store).ConsumeMetrics(t.Context(), md)
	var ids []string
	for _, gpu := range store.State().GPUs {
		ids = append(ids, gpu.ID)
	}
	assert.ElementsMatch(t, []string{"GPU-0", "GPU-2"}, ids)
}
