package mllinesconnector

import (
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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

	// Storage is the id of a storage extension, such as "file_storage", that keeps over
	// restarts which step each program has taken, written each second. By default there is
	// none: after a restart, the steps of the next line of a program may be lost.
	Storage *component.ID `mapstructure:"storage"`
}

func createDefaultConfig() component.Config { return &Config{MaxStreams: 2048} }

// Validate returns an error that names the key, the value and what is allowed.
func (c *Config) Validate() error {
	if err := shared.Between("max_streams", c.MaxStreams, 1, 65_536); err != nil {
		return err
	}
	_, err := format.New(c.Formats)
	return err
}
