package mlviewexporter

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
)

var ignoreTime = []metricdatatest.Option{metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()}

// points are those of a counter with one more attribute than the exporter's id.
func points(value int64, key, of string) []metricdata.DataPoint[int64] {
	return []metricdata.DataPoint[int64]{{Value: value, Attributes: attribute.NewSet(
		attribute.String("exporter", "ml_view"), attribute.String(key, of))}}
}

// password is an authentication extension that wants one header.
type password struct {
	component.StartFunc
	component.ShutdownFunc
}

func (password) Authenticate(ctx context.Context, sources map[string][]string) (context.Context, error) {
	if strings.Join(sources["Authorization"], "") != "Basic secret" {
		return ctx, errors.New("user ada exists, but the password is wrong")
	}
	return ctx, nil
}

func TestCredentials(t *testing.T) {
	for _, test := range []struct{ authenticator, challenge string }{
		{"basicauth", `Basic realm="otelcol-ml", charset="UTF-8"`},
		{"bearertokenauth", `Bearer realm="otelcol-ml"`},
		{"oidc", `Bearer realm="otelcol-ml"`},
		{"corporate", `Basic realm="otelcol-ml", charset="UTF-8"`},
	} {
		t.Run(test.authenticator, func(t *testing.T) {
			r := newRig(t, "auth: {authenticator: "+test.authenticator+"}", host{component.MustNewID(test.authenticator): password{}})
			for _, path := range []string{"/", "/api/v1/state", "/api/v1/events", "/reproductions/0123456789abcdef"} {
				response, body := r.get(t, path, nil)
				assert.Equal(t, http.StatusUnauthorized, response.StatusCode, path)
				assert.Equal(t, test.challenge, response.Header.Get("WWW-Authenticate"), "a browser asks for a password")
				assert.NotEmpty(t, response.Header.Get("Content-Security-Policy"))
				assert.NotContains(t, body, "ada")
			}
			response, _ := r.get(t, "/api/v1/state", func(r *http.Request) { r.Header.Set("Authorization", "Basic secret") })
			assert.Equal(t, http.StatusOK, response.StatusCode)
			response, _ = r.get(t, "/api/v1/state", func(r *http.Request) {
				r.Header.Set("Authorization", "Basic secret")
				r.Host = "gpu-01.example.org"
			})
			assert.Equal(t, http.StatusOK, response.StatusCode, "with credentials the page has any name")
		})
	}
}

func TestAuthenticatorMustExist(t *testing.T) {
	_, err := tryRig(t, "auth: {authenticator: basicauth}", host{})
	require.ErrorContains(t, err, `failed to resolve authenticator "basicauth"`)
}

// TestForeignNamesAreRefused is the page of somebody else, whose name was made to
// point to this machine.
func TestForeignNamesAreRefused(t *testing.T) {
	r := newRig(t, "", nil)
	machine, err := os.Hostname()
	require.NoError(t, err)
	for name, status := range map[string]int{
		"localhost:8890": http.StatusOK, "127.0.0.1": http.StatusOK, "10.1.2.3:8890": http.StatusOK, machine: http.StatusOK,
		"rebound.example.org:8890": http.StatusForbidden,
	} {
		response, _ := r.get(t, "/api/v1/state", func(r *http.Request) { r.Host = name })
		assert.Equal(t, status, response.StatusCode, name)
	}
}
