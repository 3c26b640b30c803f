package reprogenprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gate"
)

// Config is the configuration of repro_gen. Every field has a default that
// can be used as it is.
type Config struct {
	// Directory is the folder that artefacts are written to. It is created
	// at start with mode 0700; one that exists must be a real folder (no
	// symbolic link) that belongs to the collector's user and that nobody
	// else may write to. A relative path starts at the collector's working
	// directory. Default: "reproductions".
	Directory string `mapstructure:"directory"`

	// AllowedModules lists what the scripts may call. "pkg.mod" permits
	// what that module itself defines, "pkg.mod.*" the module and all below
	// it, "pkg.mod:name" that one callable. It is stamped into each script.
	// Default: empty; every script then refuses to call anything (exit 4)
	// until its user allows a module on its command line.
	AllowedModules []string `mapstructure:"allowed_modules"`

	// QueueSize is the number of failures that may wait to be written. A
	// failure that finds the queue full is counted in its group and gets no
	// artefact. It must be at least 1. Default: 256.
	QueueSize int `mapstructure:"queue_size"`

	// RateLimit bounds how many artefacts are written over time.
	RateLimit RateLimitConfig `mapstructure:"rate_limit"`

	// Retention bounds what the directory holds.
	Retention RetentionConfig `mapstructure:"retention"`
}

// RateLimitConfig bounds the artefacts written, over all services. One
// service gets at most half of either number, and at least one artefact.
// First examples go first: the second and third example of a known failure
// are written only if at least half of the burst is left afterwards, both of
// the service's and of all.
type RateLimitConfig struct {
	// PerMinute is the number of artefacts a minute in the long run. It must
	// be at least 1. Default: 10.
	PerMinute int `mapstructure:"per_minute"`

	// Burst is the number of artefacts that may be written at once after a
	// quiet time. It must be at least 1; below 4, a failure gets no second
	// and third example. Default: 20.
	Burst int `mapstructure:"burst"`
}

// RetentionConfig bounds the directory. Where a limit is passed, the oldest
// artefact of a group that has several goes first, and a group's last one
// only when no group has more than one. Zero lifts a limit.
type RetentionConfig struct {
	// Artifacts is the number of artefacts kept. Default: 1000.
	Artifacts int `mapstructure:"artifacts"`

	// Bytes is the size of all artefacts together, in bytes. Default:
	// 536870912 (512 MiB).
	Bytes int64 `mapstructure:"bytes"`

	// Age is how long an artefact is kept after it was written. Default:
	// 720h (30 days).
	Age time.Duration `mapstructure:"age"`
}

func createDefaultConfig() component.Config {
	return &Config{
		Directory: "reproductions",
		QueueSize: 256,
		RateLimit: RateLimitConfig{PerMinute: 10, Burst: 20},
		Retention: RetentionConfig{Artifacts: 1000, Bytes: 512 << 20, Age: 30 * 24 * time.Hour},
	}
}

// Validate reports every value that cannot be used, with what is allowed.
func (c *Config) Validate() error {
	var errs []error
	if c.Directory == "" {
		errs = append(errs, errors.New(`"directory" is empty: it must be the path of a folder, such as "reproductions"`))
	}
	for i, entry := range c.AllowedModules {
		if err := gate.CheckEntry(entry); err != nil {
			errs = append(errs, fmt.Errorf(`"allowed_modules[%d]": %w`, i, err))
		}
	}
	if c.QueueSize < 1 {
		errs = append(errs, fmt.Errorf(`"queue_size" is %d: it must be at least 1`, c.QueueSize))
	}
	return errors.Join(errs...)
}

// Validate reports limits that would let nothing through.
func (c *RateLimitConfig) Validate() error {
	var errs []error
	if c.PerMinute < 1 {
		errs = append(errs, fmt.Errorf(`"per_minute" is %d: it must be at least 1`, c.PerMinute))
	}
	if c.Burst < 1 {
		errs = append(errs, fmt.Errorf(`"burst" is %d: it must be at least 1`, c.Burst))
	}
	return errors.Join(errs...)
}

// Validate reports limits below zero.
func (c *RetentionConfig) Validate() error {
	var errs []error
	if c.Artifacts < 0 {
		errs = append(errs, fmt.Errorf(`"artifacts" is %d: it must be at least 0, where 0 means no limit`, c.Artifacts))
	}
	if c.Bytes < 0 {
		errs = append(errs, fmt.Errorf(`"bytes" is %d: it must be at least 0, where 0 means no limit`, c.Bytes))
	}
	if c.Age < 0 {
		errs = append(errs, fmt.Errorf(`"age" is %s: it must be at least 0, where 0 means no limit`, c.Age))
	}
	return errors.Join(errs...)
}
