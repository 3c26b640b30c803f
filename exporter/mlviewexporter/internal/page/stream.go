package page

import (
	"bytes"
	"compress/flate"
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
	// maxQueued is the number of events that a client may lag behind.
	maxQueued = 4
)

// stream sends each State to all clients: the whole of it first, then what
// changed. A change is found, encoded and compressed once for all. Without
// clients it does nothing.
type stream struct {
	source     Source
	interval   time.Duration
	maxClients int

	mu      sync.Mutex
	clients map[*client]struct{}
	// base is the State that all clients have, or are about to have, and whole
	// its event.
	base  *api.State
	whole *encoded
	// stop ends the goroutine that sends; nil without clients.
	stop    chan struct{}
	closed  bool
	running sync.WaitGroup
}

// client is one open stream.
type client struct {
	queue chan *encoded
	// gone is closed when the client is dropped.
	gone chan struct{}
	// cut fails the write that the client's request may be in.
	cut func()
}

func newStream(source Source, interval time.Duration, maxClients int) *stream {
	return &stream{source: source, interval: interval, maxClients: maxClients, clients: make(map[*client]struct{})}
}

// serve sends events until the client goes away, is too slow, or the stream is
// closed.
func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	out := &eventWriter{w: w, rc: http.NewResponseController(w), gzip: acceptsGzip(r)}
	c := &client{queue: make(chan *encoded, maxQueued), gone: make(chan struct{}), cut: out.cut}
	if !s.join(c) {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many pages are open. Close one, or try again later.", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(c)
	}()
	out.start()
	quiet := time.NewTimer(heartbeat)
	defer quiet.Stop()
	for {
		next := heartbeatMessage
		select {
		case <-r.Context().Done():
			return
		case <-c.gone:
			return
		case next = <-c.queue:
		case <-quiet.C:
		}
		if err := out.write(next); err != nil {
			return
		}
		quiet.Reset(heartbeat)
	}
}

// join adds a client, which gets the whole State first. It reports whether there
// was room.
func (s *stream) join(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.clients) >= s.maxClients {
		return false
	}
	if len(s.clients) == 0 {
		s.base, s.whole = s.source.State(), nil
		stop := make(chan struct{})
		s.stop = stop
		s.running.Go(func() { s.run(stop) })
	}
	if s.whole == nil {
		s.whole = event("state", s.base)
	}
	c.queue <- s.whole
	s.clients[c] = struct{}{}
	return true
}

// drop ends a client. The caller holds the lock.
func (s *stream) drop(c *client) {
	if _, ok := s.clients[c]; !ok {
		return
	}
	delete(s.clients, c)
	close(c.gone)
	c.cut()
	if len(s.clients) == 0 {
		close(s.stop)
		s.stop, s.base, s.whole = nil, nil, nil
	}
}

// close ends all clients and waits for the goroutine that sends.
func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.clients {
		s.drop(c)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// run sends what changed after each interval until stop is closed.
func (s *stream) run(stop chan struct{}) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			s.send(stop)
		}
	}
}

// send sends what changed to all clients and drops those that lag behind.
func (s *stream) send(stop chan struct{}) {
	next := s.source.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != stop {
		return
	}
	changes := event("rows", diff(s.base, next))
	s.base, s.whole = next, nil
	for c := range s.clients {
		select {
		case c.queue <- changes:
		default:
			s.drop(c)
		}
	}
}

// heartbeatMessage is a comment, which the page ignores.
var heartbeatMessage = newMessage([]byte(":\n\n"))

// newMessage returns an event of the stream, encoded once for all clients.
func newMessage(plain []byte) *encoded { return new(newEncoded(plain, deflate)) }

// event returns the message with the name and the data as JSON. What cannot be
// encoded becomes an event failed, and the page asks anew.
func event(name string, data any) *encoded {
	body, err := json.Marshal(data)
	if err != nil {
		name, body = "failed", []byte("{}")
	}
	return newMessage(slices.Concat([]byte("event: "+name+"\ndata: "), body, []byte("\n\n")))
}

// gzipHeader is the header of a gzip stream without name and time (RFC 1952).
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic(err) // The level is valid.
	}
	return w
}}

// deflate compresses b to whole blocks that refer to nothing before them, so that
// each client's gzip stream can have the same bytes.
func deflate(b []byte) []byte {
	var out bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(b) // A buffer takes everything.
	_ = w.Flush()
	return out.Bytes()
}

// eventWriter writes events with a deadline for each: the server's own write
// timeout would end the stream.
type eventWriter struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	gzip bool

	mu   sync.Mutex
	done bool
}

// start writes the header of the answer.
func (e *eventWriter) start() {
	header := e.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	header.Add("Vary", "Accept-Encoding")
	if e.gzip {
		header.Set("Content-Encoding", "gzip")
		_, _ = e.w.Write(gzipHeader) // The first event tells whether the client is there.
	}
}

// write sends one event. It fails if the client does not take it in time.
func (e *eventWriter) write(m *encoded) error {
	e.limit(writeTimeout, false)
	body := m.plain
	if e.gzip {
		body = m.zip()
	}
	if _, err := e.w.Write(body); err != nil {
		return err
	}
	return e.rc.Flush()
}

// cut ends a write that waits, and all later ones. It may be called while one
// runs, but not after the request is answered.
func (e *eventWriter) cut() { e.limit(0, true) }

// limit sets the time that a write may take, for the last time if that is the end.
func (e *eventWriter) limit(within time.Duration, end bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.done {
		e.done = end
		// A writer that has no deadlines has no timeouts either.
		_ = e.rc.SetWriteDeadline(time.Now().Add(within))
	}
}
