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

	// CallAttributes names the attributes in which clients send the call.
	CallAttributes CallAttributesConfig `mapstructure:"call_attributes"`

	// AllowedCommands lists the training programs that scripts may start
	// because telemetry names them: "/srv/train.py" permits that file, "-m
	// pkg.train" that module. The file is the one of the machine where the
	// script runs; it gets the recorded arguments. It is stamped into each
	// script of the kind train_step. Default: empty; a script then runs the
	// program that its user names by --script.
	AllowedCommands []string `mapstructure:"allowed_commands"`

	// CaptureContent keeps what the failed program worked on: arguments,
	// conversations, code, statements, messages of errors and stack traces,
	// with secrets redacted. False keeps shapes, types, statistics, names of
	// code, ids and numbers of the training alone; the script then exits 5
	// until the values that its call needs are given with --set. Default:
	// true.
	CaptureContent bool `mapstructure:"capture_content"`

	// AllowedHosts lists the servers that scripts may send recorded requests
	// and conversations to because telemetry names them: "models.internal"
	// permits that host's ports 80 and 443, "models.internal:8000" that port.
	// Link-local addresses and metadata services are refused all the same, and
	// no key is sent there. It is stamped into each script of the kinds
	// http_request and genai_chat. Default: empty; a script then sends to the
	// address that its user names by --base-url.
	AllowedHosts []string `mapstructure:"allowed_hosts"`

	// SiblingWait is how long a failure waits, after it was first seen, for
	// the rest of its story: a deeper error or one with a payload, the
	// exception's log record, the call that another process recorded, the
	// other ranks of the job, the spans above. Then its artefact is written.
	// Zero writes at once what one batch tells. At most enrich_window.
	// Default: 10s.
	SiblingWait time.Duration `mapstructure:"sibling_wait"`

	// EnrichWindow is how long after a failure the spans above it are still
	// added to its trace.json. Zero adds none. Default: 30m.
	EnrichWindow time.Duration `mapstructure:"enrich_window"`

	// Traces bounds what is kept in memory of the traces that failed.
	Traces TracesConfig `mapstructure:"traces"`

	// QueueSize is the number of failures that may wait to be written, those
	// within sibling_wait included. A failure that finds the queue full is
	// counted in its group and gets no artefact. It must be at least 1.
	// Default: 256.
	QueueSize int `mapstructure:"queue_size"`

	// Workers is the number of artefacts that are written at the same time.
	// It must be 1 to 64. Default: 2.
	Workers int `mapstructure:"workers"`

	// RateLimit bounds how many artefacts are written over time.
	RateLimit RateLimitConfig `mapstructure:"rate_limit"`

	// MaxGroups is the number of groups whose counts are kept in memory. Where
	// there are more, a sixteenth makes room: the least recently seen groups of
	// the sender or service with more than its share. What a group's folder says is read
	// again when it comes back. It must be at least 1. Default: 10000.
	MaxGroups int `mapstructure:"max_groups"`

	// MaxPayloadBytes is the size up to which a recorded call is read, in
	// bytes. A larger one makes its failure a context. It must be 1024 to
	// 1048576 (1 MiB). Default: 262144 (256 KiB).
	MaxPayloadBytes int `mapstructure:"max_payload_bytes"`

	// MaxArtifactBytes is the size up to which an artefact is written, its
	// three files together, in bytes. What would pass it is written without
	// the call. It must be 524288 (512 KiB) to 16777216 (16 MiB). Default:
	// 1048576 (1 MiB).
	MaxArtifactBytes int `mapstructure:"max_artifact_bytes"`

	// Retention bounds what the directory holds.
	Retention RetentionConfig `mapstructure:"retention"`

	// MinFreeBytes is the room on the directory's disk that is left to
	// others, in bytes: where there is less, nothing is written. Zero does not
	// ask the disk. Default: 1073741824 (1 GiB).
	MinFreeBytes int64 `mapstructure:"min_free_bytes"`

	// EmitLog also sends each artefact as a log record into the logs pipeline
	// that names this processor, for collectors whose disk nobody reaches.
	// Its files are in the record's body, up to 256 KiB together; what does
	// not fit is left out and named. Default: false.
	EmitLog bool `mapstructure:"emit_log"`
}

// TracesConfig bounds what is kept in memory of the traces that failed and of
// what may belong to them. A trace without a failure is not kept.
type TracesConfig struct {
	// Held is the number of traces. When there are more, the oldest traces of the
	// sender or service with more than its share make room: their failures are
	// written then, and their later spans are not waited for. It must be at least 1. Default:
	// 10000.
	Held int `mapstructure:"held"`

	// SpansPerTrace is the number of spans kept of one trace, the last ones
	// and always the failed one and those above it. It must be at least 1.
	// Default: 500.
	SpansPerTrace int `mapstructure:"spans_per_trace"`

	// Bytes is what all of them take together, in bytes. It must be at least
	// 1048576 (1 MiB). Default: 67108864 (64 MiB).
	Bytes int64 `mapstructure:"bytes"`

	// AttributeBytes is the length to which an attribute's value is cut, in
	// bytes, its middle left out. Stack traces have four times as much; the
	// recorded call has max_payload_bytes. It must be 256 to 65536. Default:
	// 4096.
	AttributeBytes int `mapstructure:"attribute_bytes"`
}

// RateLimitConfig bounds the artefacts written, over all services. One
// service gets at most half of the burst, one sender three quarters, and all
// services that are not established together half, where others are. First
// examples go first: the second and third example of a known failure are
// written only if at least half of what the service may have is left.
type RateLimitConfig struct {
	// PerMinute is the number of artefacts a minute in the long run. Those who
	// fail share it evenly. It must be at least 1. Default: 10.
	PerMinute int `mapstructure:"per_minute"`

	// Burst is the number of artefacts that may be written at once after a
	// quiet time. It must be at least 1; below 4, a failure gets no second
	// and third example. Default: 20.
	Burst int `mapstructure:"burst"`
}

// RetentionConfig bounds the directory. When a limit is passed, the sender or
// service with more than its share loses artefacts: the oldest of a group that
// has several goes first, and a group's last one only when none of its groups has
// more than one. Zero lifts a limit.
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
		Directory:        "reproductions",
		CallAttributes:   defaultCallAttributes(),
		CaptureContent:   true,
		SiblingWait:      10 * time.Second,
		EnrichWindow:     30 * time.Minute,
		Traces:           TracesConfig{Held: 10_000, SpansPerTrace: 500, Bytes: 64 << 20, AttributeBytes: maxValueBytes},
		QueueSize:        256,
		Workers:          2,
		RateLimit:        RateLimitConfig{PerMinute: 10, Burst: 20},
		MaxGroups:        10_000,
		MaxPayloadBytes:  256 << 10,
		MaxArtifactBytes: 1 << 20,
		Retention:        RetentionConfig{Artifacts: 1000, Bytes: 512 << 20, Age: 30 * 24 * time.Hour},
		MinFreeBytes:     1 << 30,
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
	for i, entry := range c.AllowedCommands {
		if err := gate.CheckCommand(entry); err != nil {
			errs = append(errs, fmt.Errorf(`"allowed_commands[%d]": %w`, i, err))
		}
	}
	for i, entry := range c.AllowedHosts {
		if err := gate.CheckHost(entry); err != nil {
			errs = append(errs, fmt.Errorf(`"allowed_hosts[%d]": %w`, i, err))
		}
	}
	if c.SiblingWait < 0 {
		errs = append(errs, fmt.Errorf(`"sibling_wait" is %s: it must be at least 0, where 0 means not to wait`, c.SiblingWait))
	}
	if c.EnrichWindow < 0 {
		errs = append(errs, fmt.Errorf(`"enrich_window" is %s: it must be at least 0, where 0 means to add nothing`, c.EnrichWindow))
	}
	if c.EnrichWindow > 0 && c.SiblingWait > c.EnrichWindow {
		errs = append(errs, fmt.Errorf(`"sibling_wait" is %s: it must be at most "enrich_window", %s`, c.SiblingWait, c.EnrichWindow))
	}
	errs = append(errs,
		within("queue_size", int64(c.QueueSize), 1, 0),
		within("workers", int64(c.Workers), 1, 64),
		within("max_groups", int64(c.MaxGroups), 1, 0),
		within("max_payload_bytes", int64(c.MaxPayloadBytes), 1<<10, 1<<20),
		within("max_artifact_bytes", int64(c.MaxArtifactBytes), 512<<10, 16<<20))
	if c.MinFreeBytes < 0 {
		errs = append(errs, fmt.Errorf(`"min_free_bytes" is %d: it must be at least 0, where 0 means not to ask`, c.MinFreeBytes))
	}
	return errors.Join(errs...)
}

// within returns an error that names the key and the range, unless the value
// lies in it; a limit of zero is none.
func within(key string, value, least, most int64) error {
	switch {
	case most == 0 && value < least:
		return fmt.Errorf("%q is %d: it must be at least %d", key, value, least)
	case most != 0 && (value < least || value > most):
		return fmt.Errorf("%q is %d: it must be %d to %d", key, value, least, most)
	}
	return nil
}

// Validate reports bounds in which nothing could be kept.
func (c *TracesConfig) Validate() error {
	return errors.Join(
		within("held", int64(c.Held), 1, 0),
		within("spans_per_trace", int64(c.SpansPerTrace), 1, 0),
		within("bytes", c.Bytes, 1<<20, 0),
		within("attribute_bytes", int64(c.AttributeBytes), 256, 64<<10))
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
