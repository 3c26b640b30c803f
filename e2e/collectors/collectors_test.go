// Package collectors tests that collectors in one process share nothing.
package collectors

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter"
	"github.com/otelcol-ml/otelcol-ml/extension/mlstateextension"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor"
)

// collector is a host with its components. Each has factories of its own, as the
// Collector does, and the same ids.
type collector struct {
	extensions map[component.ID]component.Component
	guard      processor.Traces
	started    []component.Component
	derived    consumertest.MetricsSink
	address    string
}

func (c *collector) GetExtensions() map[component.ID]component.Component { return c.extensions }

// start starts an ml_view, an ml_metrics and an ml_guard after which everything is
// refused.
func start(t *testing.T, extensions ...extension.Factory) *collector {
	t.Helper()
	c := &collector{extensions: make(map[component.ID]component.Component), address: freeAddress(t)}
	for _, f := range extensions {
		made, err := f.Create(t.Context(), extensiontest.NewNopSettings(f.Type()), f.CreateDefaultConfig())
		require.NoError(t, err)
		c.extensions[component.NewID(f.Type())] = made
		c.started = append(c.started, made)
	}
	view, guard, metrics := mlviewexporter.NewFactory(), mlguardprocessor.NewFactory(), mlmetricsconnector.NewFactory()
	cfg := view.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": c.address}).Unmarshal(cfg))
	pageSet, countsSet := exportertest.NewNopSettings(view.Type()), connectortest.NewNopSettings(metrics.Type())
	pageSet.ID, countsSet.ID = component.NewID(view.Type()), component.NewID(metrics.Type())
	page, err := view.CreateTraces(t.Context(), pageSet, cfg)
	require.NoError(t, err)
	refuse := consumertest.NewErr(errors.New("sending queue is full"))
	c.guard, err = guard.CreateTraces(t.Context(), processortest.NewNopSettings(guard.Type()), guard.CreateDefaultConfig(), refuse)
	require.NoError(t, err)
	counts, err := metrics.CreateTracesToMetrics(t.Context(), countsSet, metrics.CreateDefaultConfig(), &c.derived)
	require.NoError(t, err)
	for _, one := range []component.Component{page, c.guard, counts} {
		require.NoError(t, one.Start(t.Context(), c))
		c.started = append(c.started, one)
	}
	return c
}

// stop stops the components. The last emission of ml_metrics comes before the others
// withdraw their notices.
func (c *collector) stop(t *testing.T) {
	t.Helper()
	for _, one := range slices.Backward(c.started) {
		require.NoError(t, one.Shutdown(t.Context()))
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// missing returns what the page says of other components than itself.
func (c *collector) missing(t *testing.T) (keys []string) {
	t.Helper()
	response, err := http.Get("http://" + c.address + "/api/v1/state") //nolint:noctx // the server is in this process
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	var state struct{ Missing []struct{ Key string } }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&state))
	for _, row := range state.Missing {
		if strings.HasPrefix(row.Key, "ml_") && !strings.HasPrefix(row.Key, "ml_view") {
			keys = append(keys, row.Key)
		}
	}
	return keys
}

// losses returns what ml_metrics has reported that the collector loses.
func (c *collector) losses() (kinds []string) {
	for _, md := range c.derived.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
				if metric.Name() == "ml.collector.notice.timestamp" {
					for _, point := range metric.Gauge().DataPoints().All() {
						kind, _ := point.Attributes().Get("ml.notice")
						kinds = append(kinds, kind.Str())
					}
				}
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func refused(t *testing.T, c *collector) {
	t.Helper()
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	require.Error(t, c.guard.ConsumeTraces(t.Context(), td))
}

// What one collector refuses is on its own page and in its own metrics.
func TestTwoCollectorsShareNothing(t *testing.T) {
	one, other := start(t, mlstateextension.NewFactory()), start(t, mlstateextension.NewFactory())
	refused(t, one)
	assert.Equal(t, []string{"ml_guard:refused traces", "ml_metrics:withheld"}, one.missing(t))
	assert.Empty(t, other.missing(t))
	other.stop(t)
	one.stop(t)
	assert.Equal(t, []string{"refused", "withheld"}, one.losses())
	assert.Empty(t, other.losses())
}

// Without the extension, components work alone, and the page says so once.
func TestACollectorWithoutTheExtension(t *testing.T) {
	c := start(t)
	refused(t, c)
	assert.Equal(t, []string{"ml_state:missing"}, c.missing(t))
	c.stop(t)
	assert.Empty(t, c.losses())
}
