package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
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

// counts are events and their bytes.
type counts struct {
	events int
	bytes  float64
}

func (c counts) since(before counts) counts {
	return counts{events: c.events - before.events, bytes: c.bytes - before.bytes}
}

func (c counts) and(other counts) counts {
	return counts{events: c.events + other.events, bytes: c.bytes + other.bytes}
}

// mean returns the bytes of one event.
func (c counts) mean() float64 { return c.bytes / float64(max(c.events, 1)) }

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
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	from := bufio.NewReaderSize(response.Body, 1<<16)
	size, kind := 0, ""
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
			s.add(kind, size)
			size, kind = 0, ""
		}
	}
}

func (s *streams) add(kind string, size int) {
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
