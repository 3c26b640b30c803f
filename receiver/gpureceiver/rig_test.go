package gpureceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadatatest"
)

// rig is a scraper with a clock that the test moves.
type rig struct {
	scraper   *gpuScraper
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	clock     time.Time
}

// newRig starts a scraper. The test shuts it down itself, or else its end does.
func newRig(t testing.TB, cfg *Config) *rig {
	t.Helper()
	require.NoError(t, cfg.Validate())
	core, logs := observer.New(zap.DebugLevel)
	r := &rig{
		telemetry: componenttest.NewTelemetry(),
		logs:      logs,
		clock:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	t.Cleanup(func() { require.NoError(t, r.telemetry.Shutdown(context.Background())) })
	settings := metadatatest.NewSettings(r.telemetry)
	settings.Logger = zap.New(core)
	scraper := newScraper(cfg, settings, &monitors{})
	scraper.now = func() time.Time { return r.clock }
	r.scraper = scraper
	require.NoError(t, scraper.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, scraper.Shutdown(context.Background())) })
	return r
}

func (r *rig) scrape(t testing.TB) pmetric.Metrics {
	t.Helper()
	metrics, err := r.scraper.ScrapeMetrics(t.Context())
	require.NoError(t, err)
	return metrics
}

// after moves the clock and scrapes.
func (r *rig) after(t testing.TB, d time.Duration) pmetric.Metrics {
	t.Helper()
	r.clock = r.clock.Add(d)
	return r.scrape(t)
}

func (r *rig) logged() []string {
	var messages []string
	for _, entry := range r.logs.All() {
		messages = append(messages, entry.Message)
	}
	return messages
}

// points returns the points of a metric of the resource with this hw.id; of
// the driver's resource where it is "".
func pointsOf(metrics pmetric.Metrics, id, name string) []pmetric.NumberDataPoint {
	var found []pmetric.NumberDataPoint
	for _, resource := range metrics.ResourceMetrics().All() {
		if text(resource.Resource().Attributes(), "hw.id") != id {
			continue
		}
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if metric.Name() != name {
					continue
				}
				for _, point := range numberPoints(metric).All() {
					found = append(found, point)
				}
			}
		}
	}
	return found
}

// value returns the value of the only point of a metric.
func value(t *testing.T, metrics pmetric.Metrics, id, name string) float64 {
	t.Helper()
	found := pointsOf(metrics, id, name)
	require.Len(t, found, 1, "%s of %s", name, id)
	if found[0].ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(found[0].IntValue())
	}
	return found[0].DoubleValue()
}

// driverState returns the one state that is 1.
func driverState(t *testing.T, metrics pmetric.Metrics) string {
	t.Helper()
	states := []string{}
	for _, point := range pointsOf(metrics, "", "nvidia.gpu.driver.state") {
		if point.IntValue() == 1 {
			states = append(states, text(point.Attributes(), "nvidia.gpu.driver.state"))
		}
	}
	require.Len(t, states, 1)
	return states[0]
}

func text(attributes pcommon.Map, key string) string {
	value, found := attributes.Get(key)
	if !found {
		return ""
	}
	return value.AsString()
}
