package mlviewexporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/exporter"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/archive"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/reproductions"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// shutdownTimeout limits each wait of Shutdown, because the Collector gives it
	// no deadline.
	shutdownTimeout = 2 * time.Second
	// saveInterval is the time between two saves to the storage extension.
	saveInterval = time.Minute
)

// view is the page of a component id. All instances with the id share it.
type view struct {
	set       exporter.Settings
	cfg       *Config
	telemetry *telemetry

	*model.Store
	// saved keeps the state over restarts, nil if nothing does. withdraw ends the publication
	// of what it says. collector is what the collector's components tell each other.
	saved     *saved.State
	withdraw  func()
	collector *shared.State

	intake *intake.Intake
	// Reader reads the directory of reproductions, nil if these are not shown.
	*reproductions.Reader
	unreadable lastError
	// asked reports whether somebody has looked at the page since the directory was read.
	asked atomic.Bool

	server *http.Server
	// archive has the reports of runs, nil if none are written. done are when the runs settled
	// whose report is there.
	archive   *archive.Archive
	done      map[string]time.Time
	unwritten lastError

	// cancel ends the saves, and running counts the goroutines besides the loops.
	cancel           context.CancelFunc
	running          sync.WaitGroup
	reading, writing shared.Loop
}

var _ page.Source = (*view)(nil)

func newView(set exporter.Settings, cfg *Config) (*view, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	v := &view{set: set, cfg: cfg, telemetry: telemetry, withdraw: func() {}, cancel: func() {}}
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
		v.Reader = reproductions.Open(cfg.Reproductions)
	}
	return v, nil
}

// Start loads what the storage extension has kept, opens the port and serves the
// page. After an error, Shutdown cleans up.
func (v *view) Start(ctx context.Context, host component.Host) error {
	// The context of Start ends with Start, that of the saves with Shutdown.
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
	if v.Reader != nil {
		var read time.Time
		v.reading.Start(0, v.cfg.Interval, func(ctx context.Context) {
			if v.asked.Swap(false) || time.Since(read) >= saveInterval {
				v.readReproductions(ctx)
				read = time.Now()
			}
		})
	}
	if v.cfg.Reports.Directory != "" {
		directory, err := archive.Open(v.cfg.Reports.Directory, v.cfg.Reports.Keep)
		if err != nil {
			return fmt.Errorf(`open "reports::directory": %w`, err)
		}
		v.archive = directory
		v.writing.Start(0, v.cfg.Interval, v.writeReports)
	}
	return v.serve(ctx, host)
}

// Shutdown ends the streams, then the server and the goroutines, and saves the
// state. It waits a few seconds at most, because the Collector gives it no
// deadline.
func (v *view) Shutdown(ctx context.Context) error {
	defer v.telemetry.builder.Shutdown()
	v.withdraw()
	err := v.closeServer(ctx)
	v.cancel()
	ctx, cancel := context.WithTimeout(ctx, 2*shutdownTimeout)
	defer cancel()
	over, end := context.WithCancel(ctx)
	end()
	_, _ = v.writing.Stop(over), v.reading.Stop(over) // both end, and are waited for below
	late := shared.Await(ctx, func() {
		_ = v.writing.Stop(context.Background())
		_ = v.reading.Stop(context.Background())
		v.running.Wait()
		if v.archive != nil {
			v.closeReports()
		}
		if v.saved != nil {
			v.saved.Close()
		}
	})
	if late != nil {
		err = errors.Join(err, fmt.Errorf("the page's storage or directory did not answer in time: %w", late))
	}
	return err
}

// State returns what the page shows now.
func (v *view) State() *api.State {
	v.asked.Store(true)
	return v.Store.State()
}

// readReproductions reads the groups of failures from repro_gen's directory, as
// far as they can be read. It logs an error when it changes.
func (v *view) readReproductions(ctx context.Context) {
	failures, err := v.Failures(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		v.telemetry.builder.ExporterMlViewReproductionsErrors.Add(ctx, 1, v.telemetry.own)
	}
	if v.unreadable.differs(err) {
		v.set.Logger.Warn("Some reproductions could not be read. The page shows the others.", zap.Error(err))
	}
	v.SetFailures(failures)
}

// serve opens the port and answers requests until closeServer.
func (v *view) serve(ctx context.Context, host component.Host) error {
	// A browser may reach the page under the name of the endpoint, too. An empty one permits nothing.
	name, _, _ := net.SplitHostPort(v.cfg.NetAddr.Endpoint)
	handler := page.NewHandler(v, page.Settings{
		Interval: v.cfg.Interval, Hosts: []string{name}, AnyHost: v.cfg.Auth.HasValue(),
	})
	server, err := v.cfg.ToServer(ctx, host.GetExtensions(), v.set.TelemetrySettings, handler,
		confighttp.WithErrorHandler(v.refuse))
	if err != nil {
		return fmt.Errorf("create the server: %w", err)
	}
	listener, err := v.cfg.ToListener(ctx)
	if err != nil {
		return fmt.Errorf(`open "endpoint" %q: %w`, v.cfg.NetAddr.Endpoint, err)
	}
	// The server waits for the streams, so they end first.
	server.RegisterOnShutdown(handler.Close)
	v.server = server
	v.set.Logger.Info("The page is served.", zap.String("url", v.url(listener.Addr())))
	v.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(fmt.Errorf("serve the page: %w", err)))
		}
	})
	return nil
}

// closeServer ends the streams, gives other requests a moment, and closes all connections.
func (v *view) closeServer(ctx context.Context) error {
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

// refuse answers a request that the server's own checks refuse. A browser asks for
// a password only if the answer names a scheme.
func (v *view) refuse(w http.ResponseWriter, _ *http.Request, message string, status int) {
	page.SetSecurityHeaders(w.Header())
	if status == http.StatusUnauthorized {
		// Browsers can only send Basic.
		scheme := `Basic realm="otelcol-ml", charset="UTF-8"`
		if kind := v.cfg.Auth.Get().AuthenticatorID.Type().String(); kind == "bearertokenauth" || kind == "oidc" {
			scheme = `Bearer realm="otelcol-ml"`
		}
		w.Header().Set("WWW-Authenticate", scheme)
		// The authenticator's message may tell an attacker what was wrong.
		message = "This page needs credentials."
	}
	http.Error(w, message, status)
}

// storageFailures say what a failed operation of the storage extension means.
var storageFailures = map[string]string{
	saved.Read:   "The state of the page could not be read from the storage. The page reads it again in a minute.",
	saved.Decode: "The state of the page in the storage is damaged, or a newer version wrote it. It is kept there as state.backup, and the page begins empty.",
	saved.Encode: "The state of the page could not be saved.",
	saved.Write:  "The state of the page could not be saved. The page saves it again in a minute.",
}

// openState loads what was kept, if anything is.
func (v *view) openState(ctx context.Context, host component.Host) (err error) {
	place := saved.Place{Kind: component.KindExporter, Owner: v.set.ID, Storage: v.cfg.Storage, Directory: v.cfg.StateDirectory}
	if v.saved, err = place.Load(ctx, host, "", v.Store, v.storageFailed); err != nil {
		return err
	}
	v.collector = shared.StateOf(host)
	v.withdraw = v.collector.PublishNotices(v.set.ID.String(), v.ownNotices)
	return nil
}

// storageFailed reports a failed operation of the storage.
func (v *view) storageFailed(ctx context.Context, operation string, err error, again bool) {
	v.telemetry.builder.ExporterMlViewStorageErrors.Add(ctx, 1, v.telemetry.with("operation", operation))
	if !again {
		v.set.Logger.Warn(storageFailures[operation], zap.Error(err))
	}
}

// ownNotices say what a restart loses, and why.
func (v *view) ownNotices() []shared.Notice {
	lost := shared.Notice{
		Key: "state", Kind: "storage", What: "Runs and curves after a restart",
		Why: "Nothing keeps them.", Fix: v.set.ID.String() + ": {state_directory: <directory>}",
	}
	if v.saved != nil {
		err := v.saved.Err()
		if err == nil {
			return nil
		}
		lost.Why = "They are not kept: " + err.Error() + "."
	}
	return []shared.Notice{lost}
}

// reported returns what the collector's components have left out, by component.
func (v *view) reported() (rows []api.Missing) {
	all := v.collector.Notices()
	for _, owner := range slices.Sorted(maps.Keys(all)) {
		for _, notice := range all[owner] {
			rows = append(rows, api.Missing{
				Key: owner + ":" + notice.Key, Kind: notice.Kind, What: notice.What, Why: notice.Why,
				Count: notice.Count, Fix: notice.Fix, Since: api.TimeOf(notice.Since),
			})
		}
	}
	return rows
}
