package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// client uses no proxy and keeps no connections.
var client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get returns what a URL answers.
func get(ctx context.Context, url, accept string) (_ []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // The address is the user's own, as for any client.
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request) //nolint:gosec // The address is the user's own, as for any client.
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, 64<<20))
}

// state is the part of the page's state that says how complete it is.
type state struct {
	Runs, GPUs []struct{}
	Failures   []struct{ Replays bool }
}

// complete reports whether each part has data, and a command replays a failure.
func (s *state) complete() bool {
	return len(s.Runs) > 0 && len(s.GPUs) > 0 && slices.Contains(s.Failures, struct{ Replays bool }{true})
}

// readPage returns the page as a text of a width, and its state.
func readPage(ctx context.Context, url string, width int, color bool) (text string, s state, err error) {
	document, err := get(ctx, url+"api/v1/state", "application/json")
	if err == nil {
		err = json.Unmarshal(document, &s)
	}
	if err == nil {
		document, err = get(ctx, fmt.Sprintf("%s?width=%d&color=%t", url, width, color), "text/plain")
	}
	return string(document), s, err
}

// frame writes a text from a terminal's upper left corner on, as much of it as
// there is room for, and clears the rest.
func frame(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	// The last two lines are those that say what is left out and have the cursor.
	for i, room := 0, height-2; i < len(lines); i++ {
		if room -= 1 + max(0, utf8.RuneCountInString(lines[i])-1)/max(1, width); room < 0 {
			lines = append(lines[:i:i], fmt.Sprintf("… %d more lines", len(lines)-i))
			break
		}
	}
	return "\x1b[H" + strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J"
}
