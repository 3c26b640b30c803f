package mlmetricsconnector

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/admission"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
)

// unadmitting admits every service but "many", and every operation but "new".
type unadmitting struct{}

func (unadmitting) Admit(_ context.Context, td ptrace.Traces) (replaced admission.Replaced) {
	for i, rs := range td.ResourceSpans().All() {
		if name, _ := rs.Resource().Attributes().Get(mlattr.ServiceName); name.Str() == "many" {
			replaced.CopyResource(i, rs.Resource().Attributes()).PutStr(mlattr.ServiceName, mlattr.Other)
		}
		for j, ss := range rs.ScopeSpans().All() {
			for k, span := range ss.Spans().All() {
				if name, _ := span.Attributes().Get(mlattr.GenAIRequestModel); name.Str() == "new" {
					replaced.CopySpan(admission.Position{Resource: i, Scope: j, Span: k}, span).Attributes().PutStr(mlattr.GenAIRequestModel, mlattr.Other)
				}
			}
		}
	}
	return replaced
}

// TestIdentities has the labels that ml_guard admits, though the spans are not changed.
func TestIdentities(t *testing.T) {
	id := component.MustNewIDWithName("ml_guard", "identities")
	td := ptrace.NewTraces()
	for _, service := range []string{"one", "many"} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(mlattr.ServiceName, service)
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for i, model := range []string{"known", "new"} {
			span := spans.AppendEmpty()
			span.SetTraceID([16]byte{service[0], byte(i)})
			span.SetSpanID([8]byte{1})
			span.SetName("chat")
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-time.Second)))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			span.Attributes().PutStr(mlattr.GenAIOperationName, "chat")
			span.Attributes().PutStr(mlattr.GenAIRequestModel, model)
		}
	}
	td.MarkReadOnly()
	labels := func(t *testing.T, host component.Host) (pairs map[[2]string]bool, logged *observer.ObservedLogs) {
		core, logs := observer.New(zap.ErrorLevel)
		set := connectortest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		cfg := createDefaultConfig().(*Config)
		cfg.Identities = &id
		next := new(consumertest.MetricsSink)
		c, err := NewFactory().CreateTracesToMetrics(t.Context(), set, cfg, next)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), host))
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
		require.NoError(t, c.Shutdown(context.WithoutCancel(t.Context())))
		pairs = make(map[[2]string]bool)
		for _, md := range next.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				service, _ := rm.Resource().Attributes().Get(mlattr.ServiceName)
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						if m.Name() == "ml.requests" {
							for _, p := range m.Sum().DataPoints().All() {
								model, _ := p.Attributes().Get(mlattr.GenAIRequestModel)
								pairs[[2]string{service.Str(), model.Str()}] = true
							}
						}
					}
				}
			}
		}
		return pairs, logs
	}
	host := new(statetest.Host)
	withdraw := host.State().PublishIdentities(id, unadmitting{})
	got, logged := labels(t, host)
	assert.Equal(t, map[[2]string]bool{{"one", "known"}: true, {"one", "_OTHER"}: true, {"_OTHER", "known"}: true, {"_OTHER", "_OTHER"}: true}, got)
	assert.Zero(t, logged.Len())

	withdraw()
	got, logged = labels(t, host)
	assert.Len(t, got, 4)
	assert.Contains(t, got, [2]string{"many", "new"}, "nothing admits identities")
	require.Equal(t, 1, logged.Len())
	assert.Contains(t, logged.All()[0].Message, `"identities" is "ml_guard/identities", must be the id of an ml_guard`)
}

// hiding hides the run of each second span.
type hiding struct{}

func (hiding) Admit(_ context.Context, td ptrace.Traces) (replaced admission.Replaced) {
	for k := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().Len() {
		if k%2 == 1 {
			replaced.HideRun(admission.Position{Span: k}, int64(k))
		}
	}
	return replaced
}

// TestAHiddenRun has the series of spans whose attributes say the same.
func TestAHiddenRun(t *testing.T) {
	id, now := component.MustNewIDWithName("ml_guard", "identities"), time.Now()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr(mlattr.ServiceName, "trainer")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for k := range 6 {
		span := spans.AppendEmpty()
		span.SetTraceID([16]byte{1, byte(k)})
		span.SetSpanID([8]byte{1})
		span.SetName("step")
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Second)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		span.Attributes().PutStr(mlattr.Phase, mlattr.PhaseOptimizer)
		span.Attributes().PutStr(mlattr.TrainingRunID, "run-"+string(rune('a'+k)))
		if k > 2 {
			span.Attributes().PutStr(mlattr.HostName, "node-1")
			span.Attributes().PutInt(mlattr.RankGlobal, int64(k))
		}
	}
	series := func(identities admission.Identities) (out []string) {
		cfg, host, next := createDefaultConfig().(*Config), new(statetest.Host), new(consumertest.MetricsSink)
		if identities != nil {
			cfg.Identities = &id
			host.State().PublishIdentities(id, identities)
		}
		c, err := NewFactory().CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, next)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), host))
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
		require.NoError(t, c.Shutdown(context.WithoutCancel(t.Context())))
		for _, md := range next.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						if m.Name() == "ml.steps" {
							for _, p := range m.Sum().DataPoints().All() {
								out = append(out, fmt.Sprint(p.Attributes().AsRaw(), rm.Resource().Attributes().AsRaw(), p.IntValue(), p.DoubleValue()))
							}
						}
					}
				}
			}
		}
		slices.Sort(out)
		return out
	}
	hidden := series(hiding{})
	assert.NotEqual(t, series(nil), hidden)
	assert.Contains(t, fmt.Sprint(hidden), mlattr.Overflow)
	for k := 1; k < spans.Len(); k += 2 {
		admission.Hide(spans.At(k).Attributes(), int64(k))
	}
	assert.Equal(t, series(nil), hidden)
}
