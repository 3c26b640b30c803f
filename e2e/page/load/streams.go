package main

import (
	"bufio"
	"bytes"
	"net/http"
	"sync"
	"testing"
)

// streams are open pages without a browser: they read the event stream.
type streams struct {
	mu      sync.Mutex
	initial counts
	updates counts
	failed  error
}

// counts are events and their bytes.
type counts struct {
	events int
	bytes  float64
}

func (c counts) since(before counts) counts {
	return counts{events: c.events - before.events, bytes: c.bytes - before.bytes}
}

// mean returns the bytes of one event.
func (c counts) mean() float64 { return c.bytes / float64(max(c.events, 1)) }

// open opens n streams. They close with the test.
func open(tb testing.TB, url string, n int) *streams {
	tb.Helper()
	s := &streams{}
	for range n {
		request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url+"/api/v1/events", http.NoBody)
		if err != nil {
			tb.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			tb.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			tb.Fatalf("the stream answers %s", response.Status)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.read(bufio.NewReaderSize(response.Body, 1<<20))
		}()
		tb.Cleanup(func() {
			_ = response.Body.Close()
			<-done
		})
	}
	return s
}

// read counts the events of one stream until it ends.
func (s *streams) read(from *bufio.Reader) {
	size, kind := 0, ""
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = err
			return
		}
		size += len(line)
		if rest, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			kind = string(bytes.TrimSpace(rest))
		}
		if len(bytes.TrimSpace(line)) > 0 {
			continue
		}
		s.mu.Lock()
		switch kind {
		case "state":
			s.initial.events++
			s.initial.bytes += float64(size)
		case "rows":
			s.updates.events++
			s.updates.bytes += float64(size)
		}
		s.mu.Unlock()
		size, kind = 0, ""
	}
}

// counts returns the updates so far.
func (s *streams) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates
}

// first returns the bytes of the first event of a stream.
func (s *streams) first() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initial.mean()
}
