package mllinesconnector

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// memory is a storage extension.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	values map[string][]byte
}

var memoryID = component.MustNewID("memory")

func (m *memory) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{memoryID: m}
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, nil
}
func (m *memory) Get(_ context.Context, key string) ([]byte, error) { return m.values[key], nil }
func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.values[key] = value
	return nil
}
func (m *memory) Delete(_ context.Context, key string) error {
	delete(m.values, key)
	return nil
}
func (*memory) Batch(context.Context, ...*storage.Operation) error { return nil }
func (*memory) Close(context.Context) error                        { return nil }

// A collector that starts again goes on with the step, the attempt and the time of each
// program, and of each of its ranks.
func TestRestartOfTheCollector(t *testing.T) {
	kept := &memory{values: map[string][]byte{}}
	life := func(t *testing.T, at time.Time, with func(r *rig)) {
		t.Run("", func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Storage = &memoryID })
			r.at = at
			require.NoError(t, r.lines.openStorage(t.Context(), kept))
			with(r)
			r.lines.look(true)
			r.lines.saved.Close()
		})
	}
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var before, after []string
	life(t, begun, func(r *rig) {
		for _, rank := range []string{"[rank0]:", "[rank1]:"} {
			r.print(time.Second, rank+" iter 210: loss 2.5000, time 100.00ms, mfu 1.00%")
			r.print(10*time.Second, rank+" iter 220: loss 2.5000, time 100.00ms, mfu 1.00%")
		}
		r.spans()
		for _, rank := range []string{"[rank0]:", "[rank1]:"} {
			r.print(time.Second, rank+" iter 230: loss 2.5000, time 100.00ms, mfu 1.00%")
		}
		before = r.describe()
	})
	life(t, begun.Add(time.Minute), func(r *rig) {
		for _, rank := range []string{"[rank0]:", "[rank1]:"} {
			r.print(time.Second, rank+" iter 240: loss 2.5000, time 100.00ms, mfu 1.00%")
		}
		spans := r.spans()
		assert.Len(t, spans, 20, "ten of each")
		for _, s := range spans {
			assert.GreaterOrEqual(t, s.StartTimestamp().AsTime(), begun.Add(20*time.Second))
			after = append(after, s.TraceID().String())
		}
	})
	assert.NotEmpty(t, before)
	assert.NotEqual(t, after[0], after[10])
	// What is not read again goes on, too, until it is older than idleTimeout.
	life(t, begun.Add(time.Hour), func(*rig) {})
	life(t, begun.Add(2*time.Hour), func(r *rig) {
		r.print(time.Second, "[rank1]: iter 250: loss 2.5000, time 100.00ms, mfu 1.00%")
		spans := r.spans()
		require.Len(t, spans, 10)
		assert.Equal(t, after[10], spans[0].TraceID().String(), "the same attempt")
	})
	life(t, begun.Add(24*time.Hour), func(r *rig) {
		r.print(time.Second, "[rank1]: iter 260: loss 2.5000, time 100.00ms, mfu 1.00%")
		assert.Len(t, r.spans(), 1, "it is older than idleTimeout")
	})
}

// A state of which nothing but the second of the newest line has changed is not written again.
func TestStateOfOtherLines(t *testing.T) {
	r := newRig(t, nil)
	r.print(0, "iter 1: loss 2.5000, time 100.00ms, mfu 1.00%")
	before, err := r.lines.Export()
	require.NoError(t, err)
	exported := func(after time.Duration) string {
		r.print(after, "some other line")
		now, err := r.lines.Export()
		require.NoError(t, err)
		return string(now)
	}
	assert.Equal(t, string(before), exported(time.Second))
	assert.NotEqual(t, string(before), exported(time.Minute), "it is not forgotten while it prints")
}

// The first line after a restart is as long as the time that it states, since the one of the
// state, if there was one.
func TestStateWithAndWithoutElapsed(t *testing.T) {
	const llama = `{"current_steps": 10, "total_steps": 120, "loss": 1.2345, "lr": 4.9e-05, "epoch": 0.25, "percentage": 8.33, "elapsed_time": "0:00:30", "remaining_time": "0:05:30"}`
	for name, of := range map[string]struct {
		elapsed string
		took    float64
	}{
		"none":  {"", 60},
		"zero":  {`"elapsed":0,`, 30},
		"later": {`"elapsed":20,`, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			require.NoError(t, r.lines.Import([]byte(`{"version":1,"processes":{"/data/exp7/train":{"format":"llama_factory","step":9,"interval":1,`+of.elapsed+
				`"began":"2026-03-01T11:59:00Z","from":"2026-03-01T11:59:59Z","end":"2026-03-01T11:59:59Z","seen":"2026-03-01T11:59:59Z"}}}`)))
			r.print(59*time.Second, llama)
			spans := r.spans()
			require.Len(t, spans, 1)
			assert.InDelta(t, of.took, spans[0].EndTimestamp().AsTime().Sub(spans[0].StartTimestamp().AsTime()).Seconds(), 1e-6)
		})
	}
}

func TestStorageThatIsNone(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Storage = &memoryID })
	require.ErrorContains(t, r.lines.Start(t.Context(), componenttest.NewNopHost()), `"storage" is "memory"`)
	for _, text := range []string{"", "{}", `{"version":2}`, `{"version":1,"processes":{"a":1}}`} {
		require.Error(t, r.lines.Import([]byte(text)), text)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(`{"version":1,"processes":{"/data/exp7/train":{"format":"nanogpt","step":7,"interval":1,"elapsed":1,"end":"2026-03-01T11:59:00Z","seen":"2026-03-01T12:00:00Z"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r := newRig(t, nil)
		if r.lines.Import([]byte(text)) != nil {
			return
		}
		for key := range r.lines.programs.restored {
			r.path = key + ".log"
			r.print(time.Second, "iter 8: loss 2.5000, time 100.00ms, mfu 1.00%")
		}
		_, err := r.lines.Export()
		require.NoError(t, err)
	})
}
