package mlviewexporter

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/metadata"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// host has extensions.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// rig is a page with its instances of all signals.
type rig struct {
	exporter.Traces
	metrics exporter.Metrics
	logs    exporter.Logs
	// url is the page's address, without a slash at its end.
	url  string
	log  *observer.ObservedLogs
	tel  *componenttest.Telemetry
	once sync.Once
}

// newRig starts a page with the configuration. extensions are those of the
// collector.
func newRig(t *testing.T, text string, extensions host) *rig {
	t.Helper()
	r, err := tryRig(t, text, extensions)
	require.NoError(t, err)
	return r
}

func tryRig(t *testing.T, text string, extensions host) (*rig, error) {
	t.Helper()
	if !strings.Contains(text, "endpoint:") {
		text = "endpoint: 127.0.0.1:0\n" + text
	}
	cfg, err := load(t, text)
	require.NoError(t, err)
	r := &rig{tel: componenttest.NewTelemetry()}
	t.Cleanup(func() { require.NoError(t, r.tel.Shutdown(context.WithoutCancel(t.Context()))) })
	set := exportertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	core, log := observer.New(zapcore.InfoLevel)
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	set.Logger, r.log = zap.New(core), log

	f := NewFactory()
	r.Traces, err = f.CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	r.metrics, err = f.CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	r.logs, err = f.CreateLogs(t.Context(), set, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { r.stop(t) })
	for _, c := range []component.Component{r.Traces, r.metrics, r.logs} {
		if err := c.Start(t.Context(), extensions); err != nil {
			return r, err
		}
	}
	served := log.FilterMessage("The page is served.").All()
	require.Len(t, served, 1, "the instances of all signals share one page")
	r.url = served[0].ContextMap()["url"].(string)
	r.url = r.url[:len(r.url)-1]
	return r, nil
}

// stop shuts all instances down, as the Collector does: without a deadline.
func (r *rig) stop(t *testing.T) {
	t.Helper()
	r.once.Do(func() {
		for _, c := range []component.Component{r.Traces, r.metrics, r.logs} {
			assert.NoError(t, c.Shutdown(context.WithoutCancel(t.Context())))
		}
	})
}

// answer is what the page answers, besides the body.
type answer struct {
	StatusCode int
	Header     http.Header
}

// get asks the page and returns the answer and its body.
func (r *rig) get(t *testing.T, path string, change func(*http.Request)) (answer, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, http.NoBody)
	require.NoError(t, err)
	if change != nil {
		change(request)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, response.Header}, string(body)
}

// memory is a storage extension in memory, which outlives a page.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	values map[string][]byte
	// failing are the errors of the operations get, set and close.
	failing map[string]error
	open    int
}

var storageID = component.MustNewID("memory")

func (m *memory) GetClient(_ context.Context, kind component.Kind, id component.ID, _ string) (storage.Client, error) {
	if kind != component.KindExporter || id.Type() != metadata.Type {
		return nil, errors.New("not this exporter's")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open++
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.failing["get"]
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing["set"]; err != nil {
		return err
	}
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[key] = value
	return nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

func (m *memory) Batch(context.Context, ...*storage.Operation) error { return nil }

func (m *memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	return m.failing["close"]
}

func (m *memory) stored() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values)
}
