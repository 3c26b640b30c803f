package reprogenprocessor

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
)

// Config is the configuration of repro_gen. Every field has a usable default.
type Config struct {
	// Directory is the folder that artifacts are written to. It is created at
	// start with mode 0700. An existing one must be a folder (not a symbolic link)
	// that belongs to the collector's user and that nobody else may write to. A
	// relative path starts at the collector's working directory. Default:
	// "reproductions".
	Directory string `mapstructure:"directory"`

	// AllowedModules lists what the scripts may call. "pkg.mod" permits what that
	// module itself defines, "pkg.mod.*" the module and all below it,
	// "pkg.mod:name" that one callable. The list is written into each script.
	// Default: empty; every script then refuses to call anything (exit 4) until
	// its user allows a module on its command line.
	AllowedModules []string `mapstructure:"allowed_modules"`

	// CaptureContent keeps what the failed program worked on, with secrets
	// redacted: arguments, conversations, code, statements, error messages and
	// stack traces. False keeps names of code, ids and numbers of the training, and
	// no call: the script then exits 5. Default: true.
	CaptureContent bool `mapstructure:"capture_content"`

	// SiblingWait is how long a failure waits, from when it was first seen, for
	// what belongs to it: a deeper error or one with a payload, the exception's
	// log record, the call that another process recorded, the spans above. Then its artifact is written. 0 writes what one batch
	// has at once. At most 30m. Default: 10s.
	SiblingWait time.Duration `mapstructure:"sibling_wait"`

	// ArtifactsPerMinute is the number of artifacts a minute in the long run,
	// shared evenly by the services that fail. After a quiet time twice as many
	// may be written at once. It must be 1 to 100000. Default: 10.
	ArtifactsPerMinute int `mapstructure:"artifacts_per_minute"`

	// Retention bounds what the directory holds.
	Retention RetentionConfig `mapstructure:"retention"`

	// MinFreeBytes is the free space to keep on the disk, in bytes; below it
	// nothing is written. 0 disables the check. Default: 1073741824 (1 GiB).
	MinFreeBytes int64 `mapstructure:"min_free_bytes"`

	// EmitLog also sends each artifact as a log record into the logs pipeline that
	// has this processor, for collectors whose disk nobody can read. Its files are
	// in the record's body, up to 256 KiB together; the record names the files that
	// do not fit. Default: false.
	EmitLog bool `mapstructure:"emit_log"`

	// Evidence says what is gathered when a run hangs. It takes a logs pipeline with the
	// records of ml_metrics.
	Evidence EvidenceConfig `mapstructure:"evidence"`

	limits limits
}

// limits are bounds that no operator needs to choose. Tests choose smaller ones.
type limits struct {
	// workers is the number of artifacts that are written at the same time.
	workers int
	// queue is the number of failures that may wait to be written, those within
	// SiblingWait included.
	queue int
	// bytes is the memory for the traces that failed. Half as much again is for calls
	// and exceptions whose failure has not arrived yet.
	bytes int64
	// groups is the number of groups whose counts are kept in memory. Those that have an artifact
	// stay, as many as RetentionConfig allows.
	groups int
	// spans is the number of spans of a trace.
	spans int
	// burst is the number of artifacts at once after a quiet time; 0 is twice
	// ArtifactsPerMinute.
	burst int
	// ask is the time between two questions to a gateway. The first one comes within it, so
	// that the collectors of a fleet do not ask at once.
	ask time.Duration
	// later is the time between two looks for what comes after a hang's evidence was written.
	later time.Duration
}

// EvidenceConfig says what is gathered of the processes of a run that hangs.
type EvidenceConfig struct {
	// RootPath is where the host's root directory is mounted. Default: empty, which
	// is /.
	RootPath string `mapstructure:"root_path"`

	// FlightRecorder lists patterns of files with PyTorch's Flight Recorder dumps, below
	// RootPath. Those written since an hour before the hang are copied, at most 64 MiB, and as
	// much of those of the hour after. Default: empty, which copies none.
	FlightRecorder []string `mapstructure:"flight_recorder"`

	// Gateway is the client of an ml_view that shows what gateways conclude: it is asked
	// every 10s which runs hang, and the evidence of those on this host is gathered. The
	// endpoint is the address of the page, such as https://page.example:8890. Its default
	// is empty, which asks nobody. The timeout of a question is 5s by default.
	Gateway confighttp.ClientConfig `mapstructure:"gateway"`
}

// RetentionConfig bounds the directory. When a limit is exceeded, the sender or
// service with more than its share loses artifacts: first the oldest of groups that
// have several, and a group's last one only when none of its groups has more than
// one. 0 lifts a limit.
type RetentionConfig struct {
	// MaxArtifacts is the number of artifacts kept. Default: 1000.
	MaxArtifacts int `mapstructure:"max_artifacts"`

	// MaxBytes is the size of all artifacts together, in bytes. Default:
	// 536870912 (512 MiB).
	MaxBytes int64 `mapstructure:"max_bytes"`

	// MaxAge is how long an artifact is kept after it was written. Default: 720h
	// (30 days).
	MaxAge time.Duration `mapstructure:"max_age"`
}

// maxWait is the longest sibling_wait.
const maxWait = 30 * time.Minute

func createDefaultConfig() component.Config {
	gateway := confighttp.NewDefaultClientConfig()
	gateway.Timeout = 5 * time.Second
	return &Config{
		Directory:          "reproductions",
		CaptureContent:     true,
		SiblingWait:        10 * time.Second,
		ArtifactsPerMinute: 10,
		Retention:          RetentionConfig{MaxArtifacts: 1000, MaxBytes: 512 << 20, MaxAge: 30 * 24 * time.Hour},
		MinFreeBytes:       1 << 30,
		Evidence:           EvidenceConfig{Gateway: gateway},
		limits:             limits{workers: 2, queue: 256, bytes: 64 << 20, groups: 10_000, spans: 500, ask: 10 * time.Second, later: 10 * time.Second},
	}
}

// Validate returns an error for each value that cannot be used, which says what is
// allowed.
func (c *Config) Validate() error {
	endpoint := c.Evidence.Gateway.Endpoint
	at, err := url.Parse(endpoint)
	errs := []error{
		shared.Check(c.Directory != "", `"directory" is empty: it must be the path of a folder, such as "reproductions"`),
		shared.Check(endpoint == "" || err == nil && at.Host != "" && (at.Scheme == "http" || at.Scheme == "https"),
			`"evidence::gateway::endpoint" is %q: it must be an address with http or https, such as "https://page.example:8890"`, endpoint),
		shared.Check(c.SiblingWait == 0 || c.SiblingWait >= time.Millisecond && c.SiblingWait <= maxWait,
			`"sibling_wait" is %s: it must be 0s, or 1ms to 30m0s`, c.SiblingWait),
		// More is more than any disk takes.
		shared.Between("artifacts_per_minute", c.ArtifactsPerMinute, 1, 100_000),
		shared.Check(c.MinFreeBytes >= 0, `"min_free_bytes" is %v: it must be at least 0`, c.MinFreeBytes),
		shared.Check(c.Retention.MaxArtifacts >= 0, `"retention::max_artifacts" is %v: it must be at least 0`, c.Retention.MaxArtifacts),
		shared.Check(c.Retention.MaxBytes >= 0, `"retention::max_bytes" is %v: it must be at least 0`, c.Retention.MaxBytes),
		shared.Check(c.Retention.MaxAge >= 0, `"retention::max_age" is %v: it must be at least 0s`, c.Retention.MaxAge),
	}
	for i, entry := range c.AllowedModules {
		if err := pythoncall.CheckEntry(entry); err != nil {
			errs = append(errs, fmt.Errorf(`"allowed_modules[%d]": %w`, i, err))
		}
	}
	for i, pattern := range c.Evidence.FlightRecorder {
		_, err := filepath.Match(pattern, "")
		errs = append(errs, shared.Check(err == nil && filepath.IsAbs(pattern),
			`"evidence::flight_recorder[%d]" is %q: it must be a pattern that begins with "/", such as "/tmp/nccl_trace_rank_*"`, i, pattern))
	}
	return errors.Join(errs...)
}
