package mlviewexporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/schema"
)

// serve opens the port and answers requests until closeServer.
func (v *view) serve(ctx context.Context, host component.Host) error {
	v.handler = page.NewHandler(v, page.Settings{
		Interval: v.cfg.Interval, MaxClients: maxClients, Hosts: v.hosts(), Schema: schema.State,
		Text: func(w io.Writer, s *api.State, width int, color bool) error {
			return text.Write(w, s, text.Options{Width: width, Color: color})
		},
	})
	handler := v.telemetry.traffic.count(v.handler, v.telemetry.refused)
	if v.cfg.Auth.HasValue() {
		handler = anyHost(handler)
	}
	server, err := v.cfg.ToServer(ctx, host.GetExtensions(), v.set.TelemetrySettings, handler,
		confighttp.WithErrorHandler(v.refuse))
	if err != nil {
		return fmt.Errorf("create the server: %w", err)
	}
	listener, err := v.cfg.ToListener(ctx)
	if err != nil {
		return fmt.Errorf(`open "endpoint" %q: %w`, v.cfg.NetAddr.Endpoint, err)
	}
	v.server = server
	v.set.Logger.Info("The page is served.", zap.String("url", v.url(listener.Addr())))
	if v.cfg.InsecureNoAuth && !v.cfg.Auth.HasValue() {
		v.set.Logger.Debug("Everybody who reaches the page reads it, because insecure_no_auth is true.")
	}
	v.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(fmt.Errorf("serve the page: %w", err)))
		}
	})
	return nil
}

// closeServer ends the streams first, because the server waits for them, then
// gives other requests a moment, and closes all connections.
func (v *view) closeServer(ctx context.Context) error {
	if v.handler != nil {
		v.handler.Close()
	}
	if v.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if err := v.server.Shutdown(ctx); err != nil {
		v.set.Logger.Warn("Requests to the page did not end in time and were cut off.", zap.Error(err))
		return v.server.Close()
	}
	return nil
}

// hosts returns the name of the endpoint, under which a browser may reach the page
// besides that of the machine and localhost.
func (v *view) hosts() []string {
	var names []string
	if host, _, err := net.SplitHostPort(v.cfg.NetAddr.Endpoint); err == nil && host != "" {
		names = append(names, host)
	}
	return names
}

// url returns the address of the page for a browser on this machine.
func (v *view) url(address net.Addr) string {
	scheme := "http"
	if v.cfg.TLS.HasValue() {
		scheme = "https"
	}
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("%s://127.0.0.1:%d/", scheme, tcp.Port)
	}
	return scheme + "://" + address.String() + "/"
}

// anyHost answers requests for any name. The check of names protects a page that
// needs no credentials from the pages of others in the same browser; these have
// no credentials of this page.
func anyHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local := *r
		local.Host = "localhost"
		next.ServeHTTP(w, &local)
	})
}

// refuse answers a request that the server's own checks refuse. A browser asks for
// a password only if the answer names a scheme.
func (v *view) refuse(w http.ResponseWriter, r *http.Request, message string, status int) {
	page.SetSecurityHeaders(w.Header())
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", v.challenge())
		v.telemetry.refused(r.Context(), status)
		// The authenticator's message may tell an attacker what was wrong.
		message = "This page needs credentials."
	}
	http.Error(w, message, status)
}

// challenge returns the scheme that the authenticator accepts, as far as its type
// says so. Browsers can only send Basic.
func (v *view) challenge() string {
	switch v.cfg.Auth.Get().AuthenticatorID.Type().String() {
	case "bearertokenauth", "oidc":
		return `Bearer realm="otelcol-ml"`
	default:
		return `Basic realm="otelcol-ml", charset="UTF-8"`
	}
}
