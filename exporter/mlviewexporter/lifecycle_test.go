package mlviewexporter

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/metadatatest"
)

func TestInstancesShareOnePage(t *testing.T) {
	r := newRig(t, "", nil)
	for _, mutates := range []bool{r.Capabilities().MutatesData, r.metrics.Capabilities().MutatesData, r.logs.Capabilities().MutatesData} {
		assert.False(t, mutates)
	}
	require.NoError(t, r.ConsumeTraces(t.Context(), ptrace.NewTraces()))
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), plog.NewLogs()))

	require.NoError(t, r.Shutdown(t.Context()))
	response, body := r.get(t, "/api/v1/state", nil)
	assert.Equal(t, http.StatusOK, response.StatusCode, "the other instances still serve it")
	assert.Contains(t, body, `"version":1`)
	r.stop(t)
	_, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	assert.Error(t, err, "the port is closed")
}

func TestPortInUse(t *testing.T) {
	r := newRig(t, "", nil)
	_, err := tryRig(t, "endpoint: "+strings.TrimPrefix(r.url, "http://"), nil)
	require.ErrorContains(t, err, `open "endpoint" "127.0.0.1:`)
	require.ErrorContains(t, err, "address already in use")
}

// TestShutdownEndsStreams has as many open streams as the page permits. Shutdown
// has no deadline: it would wait for them, if it did not end them first.
func TestShutdownEndsStreams(t *testing.T) {
	r := newRig(t, "", nil)
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var ended []chan struct{}
	for range 32 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/events", http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request) //nolint:bodyclose // The goroutine below closes it.
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		end := make(chan struct{})
		ended = append(ended, end)
		go func() {
			defer close(end)
			defer func() { _ = response.Body.Close() }()
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			}
		}()
	}
	r.stop(t)
	for _, end := range ended {
		<-end
	}
	assert.Zero(t, r.log.FilterLevelExact(zapcore.WarnLevel).Len(), "nothing was cut off")
}

// TestAStreamOutlivesTheWriteTimeout reads more than one event with a server whose
// answers may take no time at all.
func TestAStreamOutlivesTheWriteTimeout(t *testing.T) {
	r := newRig(t, "write_timeout: 1ns\ninterval: 100ms", nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/events", http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	events := 0
	for lines := bufio.NewScanner(response.Body); events < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: ") {
			events++
		}
	}
	assert.Equal(t, 3, events)
}

func TestStorageMustBeAStorageExtension(t *testing.T) {
	_, err := tryRig(t, "storage: memory", nil)
	require.ErrorContains(t, err, `"storage" is "memory", which is not among the extensions of the service`)
	_, err = tryRig(t, "storage: memory", host{storageID: struct{ component.Component }{}})
	require.ErrorContains(t, err, `"storage" is "memory", which is not a storage extension, such as file_storage`)
}

// What the page cannot read, because it is damaged or of a newer version, is kept
// beside what it writes.
func TestUnreadableStorageIsKept(t *testing.T) {
	for name, state := range map[string]string{"damaged": "\x00damaged", "newer": `{"version":2,"runs":{}}`} {
		t.Run(name, func(t *testing.T) {
			kept := &memory{values: map[string][]byte{"state": []byte(state)}}
			r := newRig(t, "storage: memory", host{storageID: kept})
			response, _ := r.get(t, "/api/v1/state", nil)
			assert.Equal(t, http.StatusOK, response.StatusCode)
			assert.Equal(t, 1, r.log.FilterMessageSnippet("It is kept there as state.backup").Len())
			metadatatest.AssertEqualExporterMlViewStorageErrors(t, r.tel, points(1, "operation", "decode"), ignoreTime...)
			r.stop(t)
			assert.Contains(t, kept.stored(), "state", "it is saved again")
			assert.Equal(t, state, string(kept.stored()["state.backup"]))
			assert.Zero(t, kept.open)
		})
	}
}

// TestTelemetryTakesNoState reads the collector's own metrics, for which the page
// computes nothing.
func TestTelemetryTakesNoState(t *testing.T) {
	r := newRig(t, "interval: 1m", nil)
	var read metricdata.ResourceMetrics
	require.NoError(t, r.tel.Reader.Collect(t.Context(), &read))
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("1")))
	assert.Len(t, r.state(t, t).Failures, 1, "the State of the first metrics would be kept for a minute")
}

func TestFailingStorageIsReported(t *testing.T) {
	kept := &memory{failing: map[string]error{"set": errors.New("disk full")}}
	r := newRig(t, "storage: memory", host{storageID: kept})
	r.stop(t)
	assert.Equal(t, 1, r.log.FilterMessageSnippet("could not be saved").Len())
	assert.Zero(t, kept.open)
}

// TestAStateThatCannotBeReadIsKept has a disk that is not ready at the start: what
// it has is not overwritten, but read before the next save.
func TestAStateThatCannotBeReadIsKept(t *testing.T) {
	kept := &memory{}
	r := newRig(t, "storage: memory", host{storageID: kept})
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("1")))
	r.stop(t)
	before := kept.stored()

	kept.failing = map[string]error{"get": errors.New("disk is not ready")}
	r = newRig(t, "storage: memory", host{storageID: kept})
	assert.Equal(t, 1, r.log.FilterMessageSnippet("could not be read from the storage").Len())
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("2")))
	r.stop(t)
	assert.Equal(t, before, kept.stored())

	r = newRig(t, "storage: memory", host{storageID: kept})
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("3")))
	kept.failing = nil
	r.stop(t)
	r = newRig(t, "storage: memory", host{storageID: kept})
	failures := r.state(t, t).Failures
	require.Len(t, failures, 1)
	assert.Equal(t, "3", failures[0].Version)
}

// TestShutdownDoesNotWaitForStorage has a disk that does not answer until the test
// is over.
func TestShutdownDoesNotWaitForStorage(t *testing.T) {
	kept := &stuck{memory: &memory{}, release: make(chan struct{}), closed: make(chan struct{})}
	r := newRig(t, "storage: memory", host{storageID: kept})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Shutdown(ctx))
	require.NoError(t, r.metrics.Shutdown(ctx))
	require.ErrorContains(t, r.logs.Shutdown(ctx), "did not answer in time")
	r.once.Do(func() {})
	close(kept.release)
	<-kept.closed
}

type stuck struct {
	*memory
	release, closed chan struct{}
}

func (s *stuck) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, nil
}

func (s *stuck) Set(context.Context, string, []byte) error {
	<-s.release
	return nil
}

func (s *stuck) Close(context.Context) error {
	close(s.closed)
	return nil
}
