package harness

import (
	"context"
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
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return 0, nil, fmt.Errorf("GET %s: %w", url, err)
	}
	return response.StatusCode, body, nil
}
