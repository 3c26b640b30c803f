package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client talks to the servers under test and never to a proxy.
var client = &http.Client{
	Transport: &http.Transport{MaxIdleConnsPerHost: 16},
	Timeout:   30 * time.Second,
}

// maxResponse bounds what a server may answer; the largest real answer is the
// trace of a whole training process.
const maxResponse = 256 << 20

// do sends a request and returns the status and the body of the answer.
func do(request *http.Request) (status int, body []byte, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", request.Method, request.URL, err)
	}
	return response.StatusCode, body, nil
}

// Get returns the body of a GET that answers 200, as text.
func Get(ctx context.Context, url string) (string, error) {
	body, err := fetch(ctx, url)
	return string(body), err
}

// fetch returns the body of a GET that answers 200.
func fetch(ctx context.Context, url string) ([]byte, error) {
	status, body, err := fetchStatus(ctx, url)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d: %.500s", url, status, body)
	}
	return body, nil
}

// fetchStatus returns the status and the body of a GET.
func fetchStatus(ctx context.Context, url string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	return do(request)
}

// expectOK returns an error unless a GET of the URL answers 200.
func expectOK(ctx context.Context, url string) error {
	_, err := fetch(ctx, url)
	return err
}
