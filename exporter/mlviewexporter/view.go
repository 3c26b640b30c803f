package mlviewexporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/exporter"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/reproductions"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/schema"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// maxClients is the largest number of streams at the same time.
	maxClients = 32
	// shutdownTimeout limits each wait of Shutdown, because the Collector gives it
	// no deadline.
	shutdownTimeout = 2 * time.Second
	// saveInterval is the time between two saves to the storage extension.
	saveInterval = time.Minute
)

// view is the page of a component id. All instances with the id share it.
type view struct {
	set exporter.Settings
	cfg *Config
	*model.Store
	intake    *intake.Intake
	reports   *reproductions.Reader
	telemetry *telemetry
	// unreadable is the last error of reports, "" for none.
	unreadable string

	// asked reports whether somebody has looked at the page since the directory of
	// reproductions was read.
	asked atomic.Bool

	handler *page.Handler
	server  *http.Server
	saved   *saved.State
	written *reportWriter
	// collector is what the collector's components tell each other.
	collector *shared.State
	// withdraw ends the publication of the page's own notices.
	withdraw func()

	// cancel ends the goroutines, which running counts.
	cancel  context.CancelFunc
	running sync.WaitGroup
}

var _ page.Source = (*view)(nil)

func newView(set exporter.Settings, cfg *Config) (*view, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	v := &view{set: set, cfg: cfg, telemetry: telemetry}
	v.Store = model.NewStore(input.Settings{
		Interval: cfg.Interval, History: cfg.History,
		MaxRuns: cfg.MaxRuns, MaxGPUs: cfg.MaxGPUs,
		MaxTraces: cfg.Traces.Held, TraceBytes: cfg.Traces.Bytes,
		Content: cfg.Content, Owners: cfg.Owners, JaegerURL: cfg.JaegerURL,
		Reproductions: cfg.showsReproductions(), Withheld: cfg.Reproductions != "" && !cfg.showsReproductions(), Fleet: cfg.Fleet,
		Version: set.BuildInfo.Version, Reported: v.reported, Now: time.Now,
	})
	v.intake = intake.New(v.Store)
	if cfg.showsReproductions() {
		v.reports = reproductions.Open(cfg.Reproductions)
	}
	return v, nil
}

// Start loads what the storage extension has kept, opens the port and serves the
// page. After an error, Shutdown cleans up.
func (v *view) Start(ctx context.Context, host component.Host) error {
	// The context of Start ends with Start, that of the goroutines with Shutdown.
	background, cancel := context.WithCancel(context.Background())
	v.cancel = cancel
	if err := v.telemetry.observe(v.Store); err != nil {
		return fmt.Errorf("register the exporter's telemetry: %w", err)
	}
	if err := v.openState(ctx, host); err != nil {
		return err
	}
	if kept := v.saved; kept != nil {
		v.running.Go(func() { kept.SaveEvery(background, saveInterval) })
	}
	if v.reports != nil {
		v.running.Go(func() {
			v.readReproductions(background)
			read := time.Now()
			every(background, v.cfg.Interval, func(ctx context.Context) {
				if v.asked.Swap(false) || time.Since(read) >= saveInterval {
					v.readReproductions(ctx)
					read = time.Now()
				}
			})
		})
	}
	if v.cfg.Reports.Directory != "" {
		written, err := v.openReports()
		if err != nil {
			return err
		}
		v.written = written
		v.running.Go(func() { every(background, v.cfg.Interval, written.write) })
	}
	return v.serve(ctx, host)
}

// Shutdown ends the streams, then the server and the goroutines, and saves the
// state. It waits a few seconds at most, because the Collector gives it no
// deadline.
func (v *view) Shutdown(ctx context.Context) error {
	defer v.telemetry.builder.Shutdown()
	if v.withdraw != nil {
		v.withdraw()
	}
	err := v.closeServer(ctx)
	if v.cancel != nil {
		v.cancel()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.running.Wait()
		if v.written != nil {
			v.written.close()
		}
		if v.saved != nil {
			v.saved.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*shutdownTimeout)
	defer cancel()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("the page's storage or directory did not answer in time: %w", ctx.Err()))
	}
}

// State returns what the page shows now.
func (v *view) State() *api.State {
	v.asked.Store(true)
	return v.Store.State()
}

// Report returns the report of a reproduction.
func (v *view) Report(fingerprint string) ([]byte, bool) {
	if v.reports == nil {
		return nil, false
	}
	return v.reports.Report(fingerprint)
}

// readReproductions reads the groups of failures from repro_gen's directory, as
// far as they can be read. It logs an error when it changes.
func (v *view) readReproductions(ctx context.Context) {
	failures, err := v.reports.Failures(ctx)
	if ctx.Err() != nil {
		return
	}
	was := v.unreadable
	v.unreadable = ""
	if err != nil {
		v.telemetry.builder.ExporterMlViewReproductionsErrors.Add(ctx, 1, v.telemetry.own)
		if v.unreadable = err.Error(); v.unreadable != was {
			v.set.Logger.Warn("Some reproductions could not be read. The page shows the others.", zap.Error(err))
		}
	}
	v.SetFailures(failures)
}

// every calls f at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f(ctx)
		}
	}
}

// serve opens the port and answers requests until closeServer.
func (v *view) serve(ctx context.Context, host component.Host) error {
	// A browser may reach the page under the name of the endpoint, too. An empty one permits nothing.
	name, _, _ := net.SplitHostPort(v.cfg.NetAddr.Endpoint)
	v.handler = page.NewHandler(v, page.Settings{
		Interval: v.cfg.Interval, MaxClients: maxClients, Hosts: []string{name}, Schema: schema.State,
	})
	handler := http.Handler(v.handler)
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
func (v *view) refuse(w http.ResponseWriter, _ *http.Request, message string, status int) {
	page.SetSecurityHeaders(w.Header())
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", v.challenge())
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
