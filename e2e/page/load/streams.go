package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// streams are open pages without a browser: they read the event stream.
type streams struct {
	mu      sync.Mutex
	initial counts
	updates counts
	// failed is why a stream ended before it was closed.
	failed error
	// close ends all streams.
	close func()
}

// counts are events, their bytes, and their bytes compressed, as they are sent.
type counts struct {
	events      int
	bytes, sent float64
}

func (c counts) since(before counts) counts {
	return counts{events: c.events - before.events, bytes: c.bytes - before.bytes, sent: c.sent - before.sent}
}

func (c counts) and(other counts) counts {
	return counts{events: c.events + other.events, bytes: c.bytes + other.bytes, sent: c.sent + other.sent}
}

// mean returns the bytes of one event as text.
func (c counts) mean() string {
	events := float64(max(c.events, 1))
	return fmt.Sprintf("%.0f kB, uncompressed %.0f kB", c.sent/events/1e3, c.bytes/events/1e3)
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n int
}

// Read counts what was read.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

// open opens n streams. They close with the test.
func open(tb testing.TB, url string, n int) *streams {
	tb.Helper()
	s := &streams{}
	ctx, cancel := context.WithCancel(tb.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := s.follow(ctx, url+"/api/v1/events")
			if ctx.Err() == nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = err
			}
		})
	}
	s.close = func() {
		cancel()
		all.Wait()
	}
	tb.Cleanup(s.close)
	return s
}

// follow counts the events of one stream until it ends.
func (s *streams) follow(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "gzip") // as browsers do
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	sent := &counted{Reader: response.Body}
	plain, err := gzip.NewReader(sent)
	if err != nil {
		return err
	}
	from := bufio.NewReaderSize(plain, 1<<16)
	size, before, kind := 0, 0, ""
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return err
		}
		size += len(line)
		if rest, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			kind = string(bytes.TrimSpace(rest))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			s.add(kind, size, sent.n-before)
			size, before, kind = 0, sent.n, ""
		}
	}
}

func (s *streams) add(kind string, size, sent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.updates
	switch kind {
	case "state":
		c = &s.initial
	case "rows":
	default:
		return
	}
	c.events++
	c.bytes += float64(size)
	c.sent += float64(sent)
}

// counts returns the updates so far. The test fails if a stream has ended.
func (s *streams) counts(tb testing.TB) counts {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		tb.Fatalf("a stream ended: %v", s.failed)
	}
	return s.updates
}

// first returns the first events of the streams.
func (s *streams) first() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initial
}
