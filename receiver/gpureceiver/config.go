package gpureceiver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const (
	defaultCollectionInterval = 10 * time.Second
	// maxCallTimeout is how long a call into the driver may take by default.
	maxCallTimeout = 5 * time.Second
)

// Source says where the receiver's values come from.
type Source string

const (
	// SourceAuto is SourceNVML where the collector was built with cgo. Where
	// it was not, the receiver says so and emits nothing but the driver's
	// state. It never replays.
	SourceAuto Source = "auto"
	// SourceNVML reads this host's GPUs through NVML. A collector that was
	// built without cgo refuses to start.
	SourceNVML Source = "nvml"
	// SourceReplay plays a recording.
	SourceReplay Source = "replay"
)

// Config is the configuration of the gpu receiver.
type Config struct {
	// ControllerConfig holds when the GPUs are read.
	//
	// collection_interval is the time between two readings, 10s by default.
	// It must be positive.
	//
	// initial_delay is the time from the start to the first reading, 1s by
	// default. Zero means none.
	//
	// timeout is how long the receiver waits for a call into the driver
	// before it gives the call up and goes on with the other GPUs. The
	// default, 0, means the collection interval, but at most 5s. It must not
	// be longer than the collection interval.
	scraperhelper.ControllerConfig `mapstructure:",squash"`

	// MetricsBuilderConfig switches metrics and resource attributes on and
	// off, under the keys metrics and resource_attributes.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`

	// Source says where values come from: auto (the default), nvml or replay.
	Source Source `mapstructure:"source"`

	// NVML has the settings of the sources nvml and auto.
	NVML NVMLConfig `mapstructure:"nvml"`

	// Replay has the settings of the source replay.
	Replay ReplayConfig `mapstructure:"replay"`

	// RootPath is where the host's root directory is mounted, for a collector
	// in a container. Below it the receiver reads proc, to tell what a
	// process belongs to, and etc/hostname. Empty, the default, means that
	// the collector runs on the host itself.
	RootPath string `mapstructure:"root_path"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NVMLConfig has the settings for reading GPUs through NVML.
type NVMLConfig struct {
	// LibraryPath is the NVML library to load. Empty, the default, means
	// libnvidia-ml.so.1 as the dynamic linker finds it. A file that does not
	// exist yet is waited for; a directory is refused.
	LibraryPath string `mapstructure:"library_path"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ReplayConfig has the settings for playing a recording.
type ReplayConfig struct {
	// Path is the recording's file. It is required when the source is replay
	// and has no effect otherwise.
	Path string `mapstructure:"path"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func createDefaultConfig() component.Config {
	controller := scraperhelper.NewDefaultControllerConfig()
	controller.CollectionInterval = defaultCollectionInterval
	return &Config{
		ControllerConfig:     controller,
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		Source:               SourceAuto,
	}
}

// Validate says everything that is wrong with the configuration, with keys,
// values and what is allowed.
func (cfg *Config) Validate() error {
	var errs []error
	if cfg.CollectionInterval <= 0 {
		errs = append(errs, fmt.Errorf(`"collection_interval" is %s; it must be positive`, cfg.CollectionInterval))
	}
	if cfg.Timeout < 0 || cfg.Timeout > cfg.CollectionInterval {
		errs = append(errs, fmt.Errorf(`"timeout" is %s; it must be between 0 and "collection_interval", %s`, cfg.Timeout, cfg.CollectionInterval))
	}
	switch cfg.Source {
	case SourceAuto, SourceNVML:
	case SourceReplay:
		if cfg.Replay.Path == "" {
			errs = append(errs, fmt.Errorf(`"replay::path" is empty; with "source" %q it must name a recording`, cfg.Source))
		}
	default:
		errs = append(errs, fmt.Errorf(`"source" is %q; allowed are %q, %q and %q`, cfg.Source, SourceAuto, SourceNVML, SourceReplay))
	}
	if isDirectory(cfg.Replay.Path) {
		errs = append(errs, fmt.Errorf(`"replay::path" is the directory %q; it must be a file`, cfg.Replay.Path))
	}
	if isDirectory(cfg.NVML.LibraryPath) {
		errs = append(errs, fmt.Errorf(`"nvml::library_path" is the directory %q; it must be the library's file`, cfg.NVML.LibraryPath))
	}
	if cfg.RootPath != "" && !filepath.IsAbs(cfg.RootPath) {
		errs = append(errs, fmt.Errorf(`"root_path" is %q; it must be an absolute path, or empty`, cfg.RootPath))
	}
	return errors.Join(errs...)
}

// callTimeout returns how long a call into the driver may take.
func (cfg *Config) callTimeout() time.Duration {
	if cfg.Timeout > 0 {
		return cfg.Timeout
	}
	return min(cfg.CollectionInterval, maxCallTimeout)
}

func isDirectory(path string) bool {
	if path == "" {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
