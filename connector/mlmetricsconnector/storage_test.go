package mlmetricsconnector

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	zaplogged "go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// memory is a storage extension.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	mu      sync.Mutex
	values  map[string][]byte
	failing error
	open    int
}

func (m *memory) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{memoryID: m}
}

var memoryID = component.MustNewID("memory")

func (m *memory) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	if kind != component.KindConnector || id.Type() != metadata.Type {
		return nil, errors.New("not this connector's")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open++
	if name != "" {
		return &named{m, name + "."}, nil
	}
	return m, nil
}

// named is a client with keys of its own.
type named struct {
	*memory
	prefix string
}

func (n *named) Get(ctx context.Context, key string) ([]byte, error) {
	return n.memory.Get(ctx, n.prefix+key)
}

func (n *named) Set(ctx context.Context, key string, value []byte) error {
	return n.memory.Set(ctx, n.prefix+key, value)
}

func (n *named) Delete(ctx context.Context, key string) error {
	return n.memory.Delete(ctx, n.prefix+key)
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.failing
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values = maps.Clone(m.values)
	if m.values == nil {
		m.values = make(map[string][]byte)
	}
	m.values[key] = value
	return m.failing
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return m.failing
}

func (*memory) Batch(context.Context, ...*storage.Operation) error { return nil }

func (m *memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	return nil
}

// life is a connector with a storage from its start to its shutdown. It returns the
// records of changes after a request of each version, and what it logged.
func life(t *testing.T, kept *memory, versions ...string) (changes []string, warnings []string) {
	t.Helper()
	return lifeIn(t, "", kept, versions...)
}

// lifeIn is life with a directory in place of the storage, unless it is "".
func lifeIn(t *testing.T, directory string, kept *memory, versions ...string) (changes []string, warnings []string) {
	t.Helper()
	core, logged := zaplogged.New(zap.WarnLevel)
	set := connectortest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	set.Logger = zap.New(core)
	cfg := createDefaultConfig().(*Config)
	cfg.Storage, cfg.FlushInterval = &memoryID, time.Second
	if directory != "" {
		cfg.Storage, cfg.StateDirectory = nil, directory
	}
	factory, logs := NewFactory(), new(consumertest.LogsSink)
	metrics, err := factory.CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	records, err := factory.CreateTracesToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	require.NoError(t, metrics.Start(t.Context(), kept))
	require.NoError(t, records.Start(t.Context(), kept))
	for n, version := range versions {
		td := chat("agent", uint16(n)) // #nosec G115 -- few
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.version", version)
		require.NoError(t, metrics.ConsumeTraces(t.Context(), td))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	}
	require.NoError(t, metrics.Shutdown(t.Context()))
	require.NoError(t, records.Shutdown(t.Context()))
	for _, record := range recordsOf(logs, "ml.change") {
		changes = append(changes, record.Body().Str())
	}
	for _, entry := range logged.All() {
		warnings = append(warnings, entry.Message)
	}
	return changes, warnings
}

// What changes are compared with outlives a restart.
func TestStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{}
		changes, warnings := life(t, kept, "1", "2")
		assert.Equal(t, []string{"version 2 (was 1)"}, changes)
		assert.Empty(t, warnings)
		assert.Zero(t, kept.open)
		changes, _ = life(t, kept, "2", "3")
		assert.Equal(t, []string{"version 3 (was 2)"}, changes)
		changes, _ = life(t, kept, "4")
		assert.Equal(t, []string{"version 4 (was 3)"}, changes)
	})
}

// A directory does, too. One that cannot be used is said once, and nothing else fails.
func TestStateDirectory(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		_, warnings := lifeIn(t, directory, nil, "1", "2")
		assert.Empty(t, warnings)
		changes, _ := lifeIn(t, directory, nil, "3")
		assert.Equal(t, []string{"version 3 (was 2)"}, changes)
		changes, warnings = lifeIn(t, file, nil, "1", "2")
		assert.Equal(t, []string{"version 2 (was 1)"}, changes)
		assert.Len(t, warnings, 2, "one of the changes, one of the counts")
	})
}

// A problem that was open before a restart is told again within seconds after it.
func TestOpenProblemsAreToldSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{}
		live := func(send int, wait time.Duration) (states []string) {
			cfg := createDefaultConfig().(*Config)
			cfg.Storage = &memoryID
			set, factory, logs := connectortest.NewNopSettings(metadata.Type), NewFactory(), new(consumertest.LogsSink)
			metrics, err := factory.CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
			require.NoError(t, err)
			records, err := factory.CreateTracesToLogs(t.Context(), set, cfg, logs)
			require.NoError(t, err)
			require.NoError(t, metrics.Start(t.Context(), kept))
			require.NoError(t, records.Start(t.Context(), kept))
			for n := range send {
				td := chat("agent", uint16(n)) // #nosec G115 -- few
				td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(2)
				require.NoError(t, metrics.ConsumeTraces(t.Context(), td))
			}
			time.Sleep(wait)
			synctest.Wait()
			for _, record := range recordsOf(logs, "ml.problem") {
				states = append(states, textOf(t, record, "ml.problem.state")+" "+textOf(t, record, "ml.problem.id"))
			}
			require.NoError(t, metrics.Shutdown(t.Context()))
			require.NoError(t, records.Shutdown(t.Context()))
			return states
		}
		began := live(3, 20*time.Second)
		require.Len(t, began, 1)
		assert.Equal(t, began, live(0, 2*time.Second))
		assert.Empty(t, live(0, 100*time.Millisecond), "it stops too soon to tell")
		assert.Equal(t, began, live(0, 2*time.Second))
	})
}

// What cannot be read, because it is damaged or of a newer version, is kept beside
// what is written. A storage that does not work is said so, and nothing else fails.
func TestStorageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, state := range []string{"{", `{"version":2,"items":{}}`, `{"version":2}`} {
			kept := &memory{values: map[string][]byte{"state": []byte(state)}}
			changes, warnings := life(t, kept, "1", "2")
			assert.Equal(t, []string{"version 2 (was 1)"}, changes)
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], "It is kept as state.backup")
			assert.Equal(t, state, string(kept.values["state.backup"]))
		}

		kept := &memory{failing: errors.New("disk full")}
		changes, warnings := life(t, kept, "1", "2")
		assert.Equal(t, []string{"version 2 (was 1)"}, changes)
		assert.NotEmpty(t, warnings)
		assert.Contains(t, warnings[0], "could not be read")
		assert.Empty(t, kept.values, "what cannot be read is not overwritten")
	})
}
