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

// client is one open stream. It gets its events with a deadline for each: the server's own
// write timeout would end the stream.
type client struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	gzip  bool
	queue chan *encoded
	// gone is closed when the client is dropped.
	gone chan struct{}

	mu   sync.Mutex
	done bool
}

// serve sends events until the client goes away, is too slow, or the stream is
// closed.
func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if r.Method == http.MethodHead {
		header.Set("Content-Type", "text/event-stream")
		return
	}
	c := &client{
		w: w, rc: http.NewResponseController(w), gzip: acceptsGzip(r),
		queue: make(chan *encoded, maxQueued), gone: make(chan struct{}),
	}
	if !s.join(c) {
		header.Set("Retry-After", "10")
		http.Error(w, "Too many pages are open. Close one, or try again later.", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(c)
	}()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	header.Add("Vary", "Accept-Encoding")
	if c.gzip {
		header.Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipHeader) // The first event tells whether the client is there.
	}
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
		if err := c.write(next); err != nil {
			return
		}
		quiet.Reset(heartbeat)
	}
}

// write sends one event. It fails if the client does not take it in time.
func (c *client) write(m *encoded) error {
	c.limit(writeTimeout, false)
	body := m.plain
	if c.gzip {
		body = m.zip()
	}
	if _, err := c.w.Write(body); err != nil {
		return err
	}
	return c.rc.Flush()
}

// limit sets the time that a write may take: the one that runs, too. At the end that is none,
// for all later ones as well. It must not be called after the request is answered.
func (c *client) limit(within time.Duration, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.done = end
		// A writer that has no deadlines has no timeouts either.
		_ = c.rc.SetWriteDeadline(time.Now().Add(within))
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
	c.limit(0, true)
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
