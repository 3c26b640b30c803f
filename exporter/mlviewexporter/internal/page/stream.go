package page

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

const (
	// writeTimeout is how long one event may take to reach a client.
	writeTimeout = 10 * time.Second
	// heartbeat is the longest silence of a stream, so that proxies keep it and
	// clients that have gone are noticed.
	heartbeat = 15 * time.Second
)

// stream sends each client the whole State first, then what changed. All clients get it at
// the same moments, so that a change is found, encoded and compressed once for all.
// Without clients it does nothing.
type stream struct {
	source   Source
	interval time.Duration
	// began is when the first interval began. Each begins a multiple of interval later by the
	// monotonic clock, so that no interval gets longer when the clock is set.
	began time.Time
	// clients has a place for each client.
	clients chan struct{}
	// open ends with close, which ends all clients at once and refuses new ones.
	open  context.Context
	close context.CancelFunc

	mu sync.Mutex
	// state is that of the interval that began at taken, and whole its event. changes is
	// the event for those who have the State of the interval that began at before.
	state          *api.State
	taken, before  time.Time
	whole, changes *encoded
}

// newStream returns a stream of a source for at most maxClients clients.
func newStream(source Source, interval time.Duration, maxClients int) *stream {
	s := &stream{source: source, interval: interval, began: time.Now(), clients: make(chan struct{}, maxClients)}
	s.open, s.close = context.WithCancel(context.Background())
	return s
}

// serve sends events until the client goes away or is too slow, or the stream is closed.
func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if r.Method == http.MethodHead {
		header.Set("Content-Type", "text/event-stream")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.open, cancel)()
	select {
	case s.clients <- struct{}{}:
		defer func() { <-s.clients }()
	default:
		cancel()
	}
	if ctx.Err() != nil || s.open.Err() != nil {
		header.Set("Retry-After", "10")
		http.Error(w, "Too many pages are open. Close one, or try again later.", http.StatusServiceUnavailable)
		return
	}
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	header.Add("Vary", "Accept-Encoding")
	zipped := acceptsGzip(r)
	if zipped {
		header.Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipHeader) // The first event tells whether the client is there.
	}
	has, next := s.after(time.Time{})
	for send(ctx, w, next, zipped) == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(heartbeat, time.Until(has.Add(s.interval)))):
		}
		next = heartbeatMessage
		if time.Until(has.Add(s.interval)) <= 0 {
			has, next = s.after(has)
		}
	}
}

// send writes an event. It fails if the client does not take it in time, or when ctx ends.
// The deadline is that of the event: the server's own write timeout would end the stream.
func send(ctx context.Context, w http.ResponseWriter, event *encoded, zipped bool) error {
	// A writer that has no deadlines has no timeouts either.
	controller, cut := http.NewResponseController(w), make(chan struct{})
	_ = controller.SetWriteDeadline(time.Now().Add(writeTimeout))
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = controller.SetWriteDeadline(time.Now())
	})
	defer func() {
		if !stop() {
			<-cut // The deadline must not be set after the request is answered.
		}
	}()
	body := event.plain
	if zipped {
		body = event.zip()
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	return controller.Flush()
}

// after returns the State of this interval as an event, and when the interval began: what
// changed for a client that has the State of the one before, else the whole.
func (s *stream) after(has time.Time) (now time.Time, next *encoded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now = s.began.Add(time.Since(s.began).Truncate(s.interval)); !now.Equal(s.taken) {
		state := s.source.State()
		s.whole, s.changes = nil, nil
		if s.state != nil {
			s.changes = event("rows", diff(s.state, state))
		}
		s.before, s.taken, s.state = s.taken, now, state
	}
	if s.changes != nil && has.Equal(s.before) {
		return now, s.changes
	}
	if s.whole == nil {
		s.whole = event("state", s.state)
	}
	return now, s.whole
}

// heartbeatMessage is a comment, which the page ignores.
var heartbeatMessage = newEncoded([]byte(":\n\n"), deflate)

// event returns the message with the name and the data as JSON. What cannot be
// encoded becomes an event failed, and the page asks anew.
func event(name string, data any) *encoded {
	body, err := json.Marshal(data)
	if err != nil {
		name, body = "failed", []byte("{}")
	}
	return newEncoded(slices.Concat([]byte("event: "+name+"\ndata: "), body, []byte("\n\n")), deflate)
}

// gzipHeader is the header of a gzip stream without name and time (RFC 1952).
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// deflate compresses b to whole blocks that refer to nothing before them, so that
// each client's gzip stream can have the same bytes.
func deflate(b []byte) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.DefaultCompression) // The level is valid.
	_, _ = w.Write(b)                                       // A buffer takes everything.
	_ = w.Flush()
	return out.Bytes()
}
