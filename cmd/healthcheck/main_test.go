package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		want   int
	}{
		"healthy":     {status: http.StatusOK, want: 0},
		"unavailable": {status: http.StatusServiceUnavailable, want: 1},
		"redirected":  {status: http.StatusFound, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					return
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
			}))
			defer server.Close()
			code, message := run([]string{server.URL})
			assert.Equal(t, test.want, code, message)
			assert.Contains(t, message, "answers "+strconv.Itoa(test.status))
		})
	}
}

func TestNobodyListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	code, message := run([]string{server.URL})
	assert.Equal(t, 1, code)
	assert.Contains(t, message, "refused")
}

func TestProxyIsNotAsked(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	code, message := run([]string{"http://healthcheck.invalid/"})
	assert.Equal(t, 1, code, message)
}

func TestWrongArguments(t *testing.T) {
	for _, arguments := range [][]string{{"127.0.0.1:13133"}, {"ftp://127.0.0.1"}, {"http://"}, {"-h"}, {"http://a", "http://b"}} {
		code, message := run(arguments)
		assert.Equal(t, 2, code, arguments)
		assert.Contains(t, message, "usage: healthcheck [URL]")
	}
}

func TestDefaultEndpoint(t *testing.T) {
	endpoint, err := parse(nil)
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:13133/", endpoint)
}
