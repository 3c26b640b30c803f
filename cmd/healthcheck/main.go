// Command healthcheck requests a health endpoint over HTTP. It exits with 0 if
// the endpoint answers 200, with 1 if it answers anything else or nothing
// within five seconds, and with 2 if the arguments are wrong. Container health
// checks use it, because the image has neither a shell nor an HTTP client.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// defaultEndpoint is the address of the health_check extension in the shipped
// configurations.
const defaultEndpoint = "http://127.0.0.1:13133/"

// timeout is far above the response time of a healthy collector, and below the
// timeout of container engines.
const timeout = 5 * time.Second

func main() {
	code, message := run(os.Args[1:])
	fmt.Fprintln(os.Stderr, "healthcheck: "+message)
	os.Exit(code)
}

// run returns the exit code and a message.
func run(arguments []string) (int, string) {
	endpoint, err := parse(arguments)
	if err != nil {
		return 2, fmt.Sprintf("%v; usage: healthcheck [URL], by default %s", err, defaultEndpoint)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := check(ctx, endpoint); err != nil {
		return 1, err.Error()
	}
	return 0, endpoint + " answers 200"
}

// parse returns the URL to request.
func parse(arguments []string) (string, error) {
	switch len(arguments) {
	case 0:
		return defaultEndpoint, nil
	case 1:
	default:
		return "", fmt.Errorf("%d arguments, want at most one URL", len(arguments))
	}
	parsed, err := url.Parse(arguments[0])
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return "", fmt.Errorf("%q is not a URL with http or https and a host", arguments[0])
	}
	return arguments[0], nil
}

// check returns nil if the endpoint answers 200. It uses no proxy and follows
// no redirect, which could report another server's health.
func check(ctx context.Context, endpoint string) (err error) {
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, http.NoBody) //nolint:gosec // to ask the URL of its command line is what the program is for
	if err != nil {
		return err
	}
	response, err := client.Do(request) //nolint:gosec // the same URL
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", endpoint, response.Status)
	}
	return nil
}
