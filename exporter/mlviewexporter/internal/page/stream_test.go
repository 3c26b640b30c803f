package page

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// fleet is a source with a new State at each call.
type fleet struct {
	*Fixture
	mu    sync.Mutex
	calls int
}

func (f *fleet) State() *api.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return FleetData(4, 4, f.calls).State
}

func (f *fleet) called() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// viewer is a client's connection. Blocked, it takes nothing until its deadline.
type viewer struct {
	mu        sync.Mutex
	header    http.Header
	status    int
	got       bytes.Buffer
	blocked   bool
	deadline  time.Time
	deadlines int
	changed   chan struct{}
	cancel    context.CancelFunc
	done      chan struct{}
}

func (v *viewer) Header() http.Header { return v.header }

func (v *viewer) WriteHeader(status int) { v.status = status }

func (v *viewer) SetWriteDeadline(t time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deadline = t
	v.deadlines++
	close(v.changed)
	v.changed = make(chan struct{})
	return nil
}

func (v *viewer) FlushError() error { return nil }

func (v *viewer) Write(b []byte) (int, error) {
	for {
		v.mu.Lock()
		left, changed := time.Until(v.deadline), v.changed
		if v.deadline.IsZero() {
			v.mu.Unlock()
			return 0, os.ErrNoDeadline
		}
		if !v.blocked && left > 0 {
			defer v.mu.Unlock()
			return v.got.Write(b)
		}
		v.mu.Unlock()
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-time.After(left):
		case <-changed:
		}
	}
}

func (v *viewer) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.got.String()
}

// events returns the names of the events and comments that have arrived.
func (v *viewer) events() []string {
	var names []string
	for line := range strings.Lines(v.text()) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
		if strings.HasPrefix(line, ":") {
			names = append(names, "heartbeat")
		}
	}
	return names
}

// watch opens a stream.
func watch(h http.Handler, blocked bool) *viewer {
	ctx, cancel := context.WithCancel(context.Background())
	v := &viewer{header: make(http.Header), blocked: blocked, changed: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/events", nil).WithContext(ctx)
	r.Host = "localhost"
	go func() {
		defer close(v.done)
		h.ServeHTTP(v, r)
	}()
	synctest.Wait()
	return v
}

// unblock lets a client take what is written.
func (v *viewer) unblock() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.blocked = false
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *viewer) leave(t *testing.T) {
	t.Helper()
	v.cancel()
	v.ended(t)
}

// ended waits until the request is answered.
func (v *viewer) ended(t *testing.T) {
	t.Helper()
	select {
	case <-v.done:
	case <-time.After(time.Hour):
		require.Fail(t, "the stream does not end")
	}
}

func TestAStreamHasTheWholeStateAndThenWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&fleet{}, Settings{Interval: 2 * time.Second})
		first := watch(h, false)
		time.Sleep(5 * time.Second)
		second := watch(h, false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"state", "rows", "rows", "rows"}, first.events())
		require.Equal(t, []string{"state", "rows"}, second.events())
		last := func(v *viewer) string { return v.text()[strings.LastIndex(v.text(), "event: "):] }
		assert.Equal(t, last(first), last(second))
		assert.Equal(t, "text/event-stream", first.header.Get("Content-Type"))

		// Who joins later has the state that the later updates start from.
		var whole, update struct{ Time time.Time }
		lines := strings.Split(second.text(), "\n")
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines[1], "data: ")), &whole))
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines[4], "data: ")), &update))
		assert.Equal(t, 2*time.Second, update.Time.Sub(whole.Time))
		first.leave(t)
		second.leave(t)
		h.Close()
	})
}

// Intervals are counted on the monotonic clock: with that of the machine, one that is set back
// by an hour would stop all streams for an hour.
func TestASetClockStopsNoStream(t *testing.T) {
	now, _ := newStream(&fleet{}, time.Second, 1).after(time.Time{})
	assert.Contains(t, now.String(), " m=")
}

func TestWithoutClientsNothingIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fleet{}
		h := NewHandler(source, Settings{Interval: time.Second})
		time.Sleep(time.Hour)
		assert.Zero(t, source.called())
		v := watch(h, false)
		time.Sleep(1500 * time.Millisecond)
		v.leave(t)
		calls := source.called()
		time.Sleep(time.Hour)
		assert.Equal(t, calls, source.called())

		again := watch(h, false)
		assert.Equal(t, []string{"state"}, again.events(), "the stream starts again")
		again.leave(t)
		h.Close()
	})
}

func TestASlowClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&fleet{}, Settings{Interval: time.Second})
		slow, fast := watch(h, true), watch(h, false)
		start := time.Now()
		slow.ended(t)
		assert.Equal(t, writeTimeout, time.Since(start))
		synctest.Wait()
		assert.Len(t, fast.events(), 11, "others are served meanwhile")
		fast.leave(t)
		h.Close()
	})
}

func TestEachEventHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&fleet{}, Settings{Interval: 20 * time.Second})
		v := watch(h, false)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		assert.Equal(t, len(v.events()), v.deadlines)
		assert.Equal(t, []string{"state", "heartbeat", "rows", "heartbeat", "rows", "heartbeat", "rows"}, v.events())
		v.leave(t)
		h.Close()
	})
}

func TestMoreClientsThanTheLimitAreAskedToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&fleet{}, Settings{MaxClients: 2})
		first, second, third := watch(h, false), watch(h, false), watch(h, false)
		third.ended(t)
		assert.Equal(t, http.StatusServiceUnavailable, third.status)
		assert.NotEmpty(t, third.header.Get("Retry-After"))
		first.leave(t)
		fourth := watch(h, false)
		assert.Equal(t, []string{"state"}, fourth.events())
		second.leave(t)
		fourth.leave(t)
		h.Close()
	})
}

// A client that has missed an update gets the whole State again.
func TestAClientThatLagsBehindGetsTheWholeState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&fleet{}, Settings{Interval: 2 * time.Second})
		v, other := watch(h, true), watch(h, false)
		time.Sleep(5 * time.Second)
		v.unblock()
		synctest.Wait()
		assert.Equal(t, []string{"state", "state"}, v.events())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"state", "state", "rows"}, v.events())
		v.leave(t)
		other.leave(t)
		h.Close()
	})
}

func TestCloseEndsAllStreamsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&fleet{}, Settings{})
		start := time.Now()
		reading, blocked := watch(h, false), watch(h, true)
		h.Close()
		reading.ended(t)
		blocked.ended(t)
		assert.Zero(t, time.Since(start))
		late := watch(h, false)
		late.ended(t)
		assert.Equal(t, http.StatusServiceUnavailable, late.status)
		h.Close()
	})
}

// unencodable is a State with a number that JSON does not have.
type unencodable struct{ *Fixture }

func (unencodable) State() *api.State {
	nan := 0.0
	nan /= nan
	return &api.State{Runs: []api.Run{{Key: "a", Loss: &nan}}}
}

func TestAStateThatCannotBeEncodedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(unencodable{}, Settings{})
		v := watch(h, false)
		assert.Equal(t, []string{"failed"}, v.events())
		v.leave(t)
		h.Close()
	})
}

// TestAServerKeepsAStreamOpen runs a real server, whose write timeout is shorter
// than the time between two events.
func TestAServerKeepsAStreamOpen(t *testing.T) {
	h := NewHandler(&fleet{}, Settings{Interval: 250 * time.Millisecond})
	server := httptest.NewUnstartedServer(h)
	server.Config.WriteTimeout, server.Config.ReadTimeout = 200*time.Millisecond, 200*time.Millisecond
	server.Start()
	defer server.Close()
	for _, encoding := range []string{"gzip", "identity"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/events", nil)
		require.NoError(t, err)
		r.Header.Set("Accept-Encoding", encoding)
		answer, err := server.Client().Do(r)
		require.NoError(t, err)
		lines := bufio.NewReader(answer.Body)
		if encoding == "gzip" {
			require.Equal(t, "gzip", answer.Header.Get("Content-Encoding"))
			plain, err := gzip.NewReader(answer.Body)
			require.NoError(t, err)
			lines = bufio.NewReader(plain)
		}
		for _, want := range []string{"state", "rows", "rows", "rows", "rows"} {
			name, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "event: "+want+"\n", name)
			data, err := lines.ReadBytes('\n')
			require.NoError(t, err)
			require.True(t, json.Valid(bytes.TrimPrefix(data, []byte("data: "))))
			_, err = lines.ReadString('\n')
			require.NoError(t, err)
		}
		require.NoError(t, answer.Body.Close())
	}
	h.Close()
	server.CloseClientConnections()
}
