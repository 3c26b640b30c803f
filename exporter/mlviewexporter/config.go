package mlviewexporter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const defaultEndpoint = "127.0.0.1:8890"

// Config is the configuration of the ml_view exporter.
type Config struct {
	// ServerConfig has the address of the page, TLS, authentication and the
	// limits and timeouts of the HTTP server. The default of endpoint is
	// 127.0.0.1:8890. An endpoint that other machines can reach needs auth, or
	// insecure_no_auth.
	confighttp.ServerConfig `mapstructure:",squash"`

	// Interval is the time between two updates of open pages, such as "2s". The
	// default is 2 s, the minimum 100 ms, the maximum 1 min. Without an open page
	// nothing is updated.
	Interval time.Duration `mapstructure:"interval"`

	// History is how long curves and ended runs are kept, such as "12h". Curves
	// have a point for each interval of the last 10 minutes, and before that for
	// each minute. The default is 12 h, the minimum 1 min, the maximum 7 days.
	History time.Duration `mapstructure:"history"`

	// Storage is the id of a storage extension, such as "file_storage", that
	// keeps over restarts a week of state changes, failures, changes and good runs, and
	// the runs of history with their curves, as far as 16 MiB have room. By
	// default there is none. It takes precedence over state_directory.
	Storage *component.ID `mapstructure:"storage"`

	// StateDirectory is a directory that keeps the same without an extension, in a file
	// of at most 16 MiB that is written each minute. It is created if need be, and must
	// not be writable for others. If it cannot be used, the page starts nevertheless and
	// says so. By default there is none, and the page begins empty after a restart.
	StateDirectory string `mapstructure:"state_directory"`

	// MaxRuns is the largest number of runs on the page. Beyond it, a new run
	// replaces one of a sender or service that has more than its share: one that came
	// only once, else one that has ended, else one that is silent; a run that takes steps
	// or looks hung is never replaced. The page says how many runs are not shown. The
	// default is 1000, the minimum 1, the maximum 100000.
	MaxRuns int `mapstructure:"max_runs"`

	// MaxGPUs is the largest number of GPUs on the page. The page says how many
	// are not shown. The default is 1024, the minimum 1, the maximum 100000.
	MaxGPUs int `mapstructure:"max_gpus"`

	// Traces limits the traces that the page holds to show them as a waterfall.
	Traces TracesConfig `mapstructure:"traces"`

	// Content shows whole messages of errors, and the text of attributes and events of
	// spans, which may be prompts, completions and arguments. The default is false: the
	// page then shows the first 200 characters of messages, and of other text only words,
	// names, ids and paths, as the key says.
	Content bool `mapstructure:"content"`

	// Owners gives the owner of a run or of a service a name to show: from a user's
	// number or name, the name of a pod, a hash of ml.user, or else a service.name, to
	// the name. By default the page shows what the data has.
	Owners map[string]string `mapstructure:"owners"`

	// JaegerURL is the address of Jaeger's web interface as the reader's browser
	// reaches it, such as "http://127.0.0.1:16686". Traces then link to it. By
	// default there are no links.
	JaegerURL string `mapstructure:"jaeger_url"`

	// Reproductions is the directory of the repro_gen processor. The page then
	// shows its reports and the commands that reproduce a failure, if its endpoint is
	// on the loopback interface or has auth. By default the page shows only failures
	// that it saw as spans.
	Reproductions string `mapstructure:"reproductions"`

	// InsecureReproductions shows Reproductions also where InsecureNoAuth lets everybody
	// read the page. Reports have arguments and prompts, so the default is false.
	InsecureReproductions bool `mapstructure:"insecure_reproductions"`

	// Fleet says that all data comes from other collectors: log records of problems,
	// changes and reproductions count that arrive by OTLP, and the page tells the
	// collectors apart, takes the newest evidence of a run that several of them have
	// seen, and lists them with those that are silent. Set it only where nobody else
	// can send, because a sender is believed. The default is false.
	Fleet bool `mapstructure:"fleet"`

	// Reports writes the report of each run that ends, looks hung or is silent.
	Reports ReportsConfig `mapstructure:"reports"`

	// InsecureNoAuth permits an endpoint that other machines can reach without
	// auth: everybody who reaches it then reads the page. The default is false:
	// such a configuration is refused.
	InsecureNoAuth bool `mapstructure:"insecure_no_auth"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TracesConfig limits the traces that the page holds.
type TracesConfig struct {
	// Held is the largest number of traces. Beyond it, the oldest one is dropped. If
	// there are more new traces in 20 seconds, the page holds so many of them, and twice as
	// many that failed or have a slow call. The default is 200, the minimum 1, the maximum 100000.
	Held int `mapstructure:"held"`

	// Bytes is the largest size of all held traces together, in bytes. Beyond
	// it, the oldest trace is dropped. The default is 67108864 (64 MiB), the
	// minimum 1, the maximum 16 GiB.
	Bytes int64 `mapstructure:"bytes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ReportsConfig says where the reports of runs are written.
type ReportsConfig struct {
	// Directory is the directory for the reports, which is created if need be and
	// must not be writable for others. Each run has one report in three files, with
	// the key of the run and the ending html, json or md, and a later report of a run
	// replaces an earlier one. It is written when the run has ended, and when it has
	// looked hung or been silent for 10 minutes. By default there is none, and
	// nothing is written.
	Directory string `mapstructure:"directory"`

	// Keep is the largest number of runs whose reports are kept. Beyond it, and
	// beyond 1 GiB in all, the oldest reports of senders and services that have more than
	// their share are removed, but first those of runs that show next to nothing. The default is 100, the minimum 1, the maximum 10000.
	Keep int `mapstructure:"keep"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = defaultEndpoint
	return &Config{
		ServerConfig: server, Interval: 2 * time.Second, History: 12 * time.Hour, MaxRuns: 1000, MaxGPUs: 1024,
		Traces:  TracesConfig{Held: 200, Bytes: 64 << 20},
		Reports: ReportsConfig{Keep: 100},
	}
}

// Validate returns an error that names each key with an invalid value and what
// the key accepts.
func (c *Config) Validate() error {
	return errors.Join(
		// The least interval refuses a mistyped unit ("2ms" for "2s"). The largest history bounds
		// the memory of curves, which have a point a minute.
		shared.Between("interval", c.Interval, 100*time.Millisecond, time.Minute),
		shared.Between("history", c.History, time.Minute, 7*24*time.Hour),
		// The page is made for one screen. The limits bound its memory and the size of its state.
		shared.Between("max_runs", c.MaxRuns, 1, 100_000), shared.Between("max_gpus", c.MaxGPUs, 1, 100_000),
		shared.Between("traces::held", c.Traces.Held, 1, 100_000),
		shared.Between("traces::bytes", c.Traces.Bytes, 1, 16<<30), shared.Between("reports::keep", c.Reports.Keep, 1, 10_000),
		checkJaegerURL(c.JaegerURL), c.checkAccess())
}

// checkJaegerURL returns an error if links to the address would not work, or
// would run a script.
func checkJaegerURL(address string) error {
	u, err := url.Parse(address)
	return shared.Check(address == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil,
		`"jaeger_url" is %.200q, must be an address with http or https and without a password, such as "http://127.0.0.1:16686"`, address)
}

// checkAccess returns an error if the endpoint is missing, or if other machines
// can reach the page without authentication.
func (c *Config) checkAccess() error {
	endpoint := c.NetAddr.Endpoint
	if _, _, err := net.SplitHostPort(endpoint); err != nil && c.NetAddr.Transport != confignet.TransportTypeUnix {
		return fmt.Errorf(`"endpoint" is %.200q, must be a host and a port, such as %q`, endpoint, defaultEndpoint)
	}
	return shared.Check(c.protected() || c.InsecureNoAuth, `"endpoint" is %.200q, which other machines can reach: set "auth" to an authentication extension such as basicauth, or an endpoint on the loopback interface such as %q, or permit everybody to read the page with "insecure_no_auth: true"`, endpoint, defaultEndpoint)
}

// protected reports whether nobody on another machine reads the page without
// authentication.
func (c *Config) protected() bool {
	if c.NetAddr.Transport == confignet.TransportTypeUnix || c.Auth.HasValue() || c.TLS.HasValue() && c.TLS.Get().ClientCAFile != "" {
		return true
	}
	// Only this machine reaches a loopback address. A name other than localhost may mean any
	// interface.
	host, _, _ := net.SplitHostPort(c.NetAddr.Endpoint)
	address, _ := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || address.IsLoopback()
}

// showsReproductions reports whether the page shows what repro_gen has written.
func (c *Config) showsReproductions() bool {
	return c.Reproductions != "" && (c.protected() || c.InsecureReproductions)
}
