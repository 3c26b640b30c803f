package ncclreceiver

import (
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/metadata"
)

const (
	// defaultEndpoint is that of NCCL.
	defaultEndpoint = "localhost:28028"
	// A query asks every process of a job, which takes seconds if it is large.
	minCollectionInterval, maxCollectionInterval = 15 * time.Second, time.Hour
)

// Config is the configuration of the nccl receiver.
type Config struct {
	// MetricsBuilderConfig enables and disables metrics and resource
	// attributes, under the keys metrics and resource_attributes.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`

	// LogsBuilderConfig enables and disables events and resource attributes,
	// under the keys events and resource_attributes.
	metadata.LogsBuilderConfig `mapstructure:",squash"`

	// Endpoint is host:port of NCCL's RAS service, localhost:28028 by default, as
	// NCCL's variable NCCL_RAS_ADDR. The service has no authentication and no
	// encryption.
	Endpoint string `mapstructure:"endpoint"`

	// CollectionInterval is the time between two queries, 30s by default. Each
	// query asks every process of the job. It must be between 15s and 1h.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// FlightRecorder are the patterns of the paths of Flight Recorder dumps, in the
	// syntax of Go's path/filepath.Match, below root_path. They must be absolute.
	// The default has the names that PyTorch gives them in /tmp and in root's cache.
	// Dumps on a disk that hosts share are reported by each collector. Those of one name
	// but for the rank at its end are compared. With an empty list there are no events of
	// dumps.
	FlightRecorder []string `mapstructure:"flight_recorder"`

	// RootPath is the mount point of the host's root directory, for a collector in
	// a container. Below it the receiver reads proc for the run and the rank of
	// processes, and etc/hostname, and looks for dumps. Empty, the default, means
	// that the collector runs on the host itself.
	RootPath string `mapstructure:"root_path"`

	// initialDelay is the time from the start to the first query.
	initialDelay time.Duration
	// maxCommunicators is the number of communicators of a job that have series.
	maxCommunicators int
}

func createDefaultConfig() component.Config {
	return &Config{
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
		Endpoint:             defaultEndpoint,
		CollectionInterval:   30 * time.Second,
		initialDelay:         time.Second,
		maxCommunicators:     64,
		FlightRecorder: []string{
			"/tmp/nccl_trace_rank_*", "/tmp/comm_lib_trace_rank_*", "/root/.cache/torch/comm_lib_trace_rank_*",
		},
	}
}

// Validate returns all errors of the configuration, with keys, values and what is
// allowed.
func (cfg *Config) Validate() error {
	host, port, err := net.SplitHostPort(cfg.Endpoint)
	number, _ := strconv.ParseUint(port, 10, 16)
	errs := []error{
		shared.Check(err == nil && host != "" && number > 0, `"endpoint" is %q; it must be host:port, such as %s`, cfg.Endpoint, defaultEndpoint),
		shared.Between("collection_interval", cfg.CollectionInterval, minCollectionInterval, maxCollectionInterval),
		shared.Check(cfg.RootPath == "" || filepath.IsAbs(cfg.RootPath), `"root_path" is %q; it must be an absolute path, or empty`, cfg.RootPath),
	}
	for _, pattern := range cfg.FlightRecorder {
		_, err := filepath.Match(pattern, "")
		errs = append(errs, shared.Check(err == nil && filepath.IsAbs(pattern),
			`"flight_recorder" has %q; it must be an absolute path, in which *, ? and [] stand for other characters`, pattern))
	}
	return errors.Join(errs...)
}
