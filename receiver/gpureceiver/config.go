package gpureceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

const (
	// minInterval refuses a number without a unit, which is one of nanoseconds.
	minInterval = time.Millisecond
	// minCallTimeout and maxCallTimeout are the bounds of the default limit for the
	// calls about one GPU, some of which take tens of milliseconds.
	minCallTimeout, maxCallTimeout = time.Second, 5 * time.Second
)

// Source is the source of the receiver's values.
type Source string

const (
	// SourceAuto is SourceNVML if the collector was built with cgo, and reads AMD GPUs
	// from the kernel's files. Without cgo, the driver state is unsupported_build. It
	// never replays.
	SourceAuto Source = "auto"
	// SourceNVML reads this host's GPUs through NVML. A collector without cgo
	// does not start.
	SourceNVML Source = "nvml"
	// SourceReplay plays a recording.
	SourceReplay Source = "replay"
)

// Config is the configuration of the gpu receiver.
type Config struct {
	// ControllerConfig sets when the GPUs are read.
	//
	// collection_interval is the time between two readings, 10s by default.
	// It must be positive.
	//
	// initial_delay is the time from the start to the first reading, 1s by
	// default. Zero means no delay.
	//
	// timeout is the limit for the calls about one GPU. After it the receiver
	// abandons them and continues with the other GPUs. The default, 0, means
	// the collection interval, but at least 1s and at most 5s. It must not be
	// longer than the collection interval.
	scraperhelper.ControllerConfig `mapstructure:",squash"`

	// MetricsBuilderConfig enables and disables metrics and resource
	// attributes, under the keys metrics and resource_attributes.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`

	// LogsBuilderConfig enables and disables events and resource attributes,
	// under the keys events and resource_attributes.
	metadata.LogsBuilderConfig `mapstructure:",squash"`

	// Source is the source of the values: auto (the default), nvml or replay.
	Source Source `mapstructure:"source"`

	// NVML has the settings of the sources nvml and auto.
	NVML NVMLConfig `mapstructure:"nvml"`

	// Replay has the settings of the source replay.
	Replay ReplayConfig `mapstructure:"replay"`

	// KernelLog has the settings for reading errors from the kernel's log.
	KernelLog KernelLogConfig `mapstructure:"kernel_log"`

	// RootPath is the mount point of the host's root directory, for a collector
	// in a container. Below it the receiver reads proc for the workloads of
	// processes, sys for suspended GPUs and NUMA nodes, etc/hostname and etc/passwd, and finds the
	// kubelet's socket. Empty, the default, means that the collector runs on
	// the host itself.
	RootPath string `mapstructure:"root_path"`

	// UserNames adds user.name to workloads of processes outside of containers: the
	// name that etc/passwd below root_path has for user.id, else that of the user of
	// the Slurm job. The default is true. With false, workloads have user.id only.
	UserNames bool `mapstructure:"user_names"`

	// slowInterval is the least time between two readings with calls that take
	// milliseconds: the lists of processes and PCIe throughput. The readings between
	// them have their values. The kubelet is asked as often.
	slowInterval time.Duration

	// remember is how long an error (XID) affects hw.status, and how long a vanished
	// GPU is reported as failed.
	remember time.Duration
}

// NVMLConfig has the settings for reading GPUs through NVML.
type NVMLConfig struct {
	// LibraryPath is the NVML library to load. Empty, the default, means
	// libnvidia-ml.so.1. The dynamic linker searches for a name without a slash.
	// The receiver waits for a file that does not exist yet, or is no library.
	LibraryPath string `mapstructure:"library_path"`
}

// ReplayConfig has the settings for playing a recording.
type ReplayConfig struct {
	// Path is the recording's file. It is required when the source is replay
	// and has no effect otherwise.
	Path string `mapstructure:"path"`
}

// KernelLogConfig has the settings for reading errors of GPUs (XID) and NVSwitches
// (SXid) from the kernel's log.
type KernelLogConfig struct {
	// Enabled reads the log, in place of NVML's events, if the source is nvml or auto.
	// The default is true. The receiver takes no privilege for it: a log that it
	// may not read is a state of nvidia.gpu.kernel_log.state, and no error.
	Enabled bool `mapstructure:"enabled"`
	// Path is the log's device, an absolute path. The default is /dev/kmsg. It is
	// not below root_path, because a container gets a device under its own name.
	Path string `mapstructure:"path"`
}

func createDefaultConfig() component.Config {
	controller := scraperhelper.NewDefaultControllerConfig()
	controller.CollectionInterval = 10 * time.Second
	return &Config{
		ControllerConfig:     controller,
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
		Source:               SourceAuto,
		slowInterval:         30 * time.Second,
		remember:             time.Hour,
		UserNames:            true,
		KernelLog:            KernelLogConfig{Enabled: true, Path: "/dev/kmsg"},
	}
}

// Validate returns all errors of the configuration, with keys, values and what is
// allowed.
func (cfg *Config) Validate() error {
	errs := []error{
		shared.Check(cfg.CollectionInterval >= minInterval, `"collection_interval" is %s; it must be at least %s`, cfg.CollectionInterval, minInterval),
		shared.Check(cfg.InitialDelay >= 0, `"initial_delay" is %s; it must not be negative`, cfg.InitialDelay),
		shared.Check(cfg.Timeout >= 0 && cfg.Timeout <= cfg.CollectionInterval, `"timeout" is %s; it must be between 0 and "collection_interval", %s`, cfg.Timeout, cfg.CollectionInterval),
		shared.Check(slices.Contains([]Source{SourceAuto, SourceNVML, SourceReplay}, cfg.Source), `"source" is %q; allowed are %q, %q and %q`, cfg.Source, SourceAuto, SourceNVML, SourceReplay),
		shared.Check(!cfg.KernelLog.Enabled || filepath.IsAbs(cfg.KernelLog.Path), `"kernel_log::path" is %q; it must be an absolute path`, cfg.KernelLog.Path),
		shared.Check(cfg.RootPath == "" || filepath.IsAbs(cfg.RootPath), `"root_path" is %q; it must be an absolute path, or empty`, cfg.RootPath),
	}
	if cfg.Source == SourceReplay { // so that the validate command reports the errors of a recording
		_, err := cfg.loadReplay()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// loadReplay reads the recording to play.
func (cfg *Config) loadReplay() (*recording.Recording, error) {
	if cfg.Replay.Path == "" {
		return nil, fmt.Errorf(`"replay::path" is empty; with "source" %q it must name a recording`, cfg.Source)
	}
	rec, err := recording.Load(cfg.Replay.Path)
	if err != nil {
		return nil, fmt.Errorf(`"replay::path" is %q; it must name a recording: %w`, cfg.Replay.Path, err)
	}
	return rec, nil
}

// callTimeout returns the limit for the calls about one GPU.
func (cfg *Config) callTimeout() time.Duration {
	if cfg.Timeout > 0 {
		return cfg.Timeout
	}
	return min(max(cfg.CollectionInterval, minCallTimeout), maxCallTimeout)
}
