package mllinesconnector

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
)

const (
	minMaxStreams, maxMaxStreams   = 1, 65_536
	minIdleTimeout, maxIdleTimeout = time.Minute, 7 * 24 * time.Hour
)

// Config is the configuration of the ml_lines connector.
type Config struct {
	// Formats are formats of the user's own programs. They go before the shipped formats,
	// and one with the name of a shipped format replaces it. The default is none.
	Formats []format.Format `mapstructure:"formats"`

	// MaxStreams is the number of files and streams whose lines are remembered, 2048 by
	// default. Beyond it, one that was not used for a minute is forgotten; if there is none,
	// the lines of further ones are not read and counted. Each takes about 1 KiB, and 200
	// KiB at most. It must be between 1 and 65536.
	MaxStreams int `mapstructure:"max_streams"`

	// IdleTimeout is the time after which a file or stream without lines is forgotten, 12h
	// by default. It must be between 1m and 168h.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// Storage is the id of a storage extension, such as "file_storage", that keeps over
	// restarts which step each program has taken, written each second. By default there is
	// none: after a restart, the steps of the next line of a program may be lost.
	Storage *component.ID `mapstructure:"storage"`
}

func createDefaultConfig() component.Config {
	return &Config{MaxStreams: 2048, IdleTimeout: 12 * time.Hour}
}

// Validate returns an error that names the key, the value and what is allowed.
func (c *Config) Validate() error {
	if c.MaxStreams < minMaxStreams || c.MaxStreams > maxMaxStreams {
		return fmt.Errorf("max_streams: %d must be between %d and %d", c.MaxStreams, minMaxStreams, maxMaxStreams)
	}
	if c.IdleTimeout < minIdleTimeout || c.IdleTimeout > maxIdleTimeout {
		return fmt.Errorf("idle_timeout: %s must be between %s and %s", c.IdleTimeout, minIdleTimeout, maxIdleTimeout)
	}
	_, err := format.New(c.Formats)
	return err
}
