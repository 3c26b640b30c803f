package identity

import (
	"errors"
	"reflect"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const maxLimit = 1_000_000

// Config is the section identities of ml_guard's configuration.
type Config struct {
	// Expiration is how long an identity stays admitted after it was last seen,
	// 1m to 720h. It must be at least as long as any later component shows a
	// series that has ended; otherwise more series are shown than the limits
	// allow. The default is 1h, the metrics_expiration of ml_metrics.
	Expiration time.Duration `mapstructure:"expiration"`
	// Limits are the largest numbers of admitted identities, by kind.
	Limits Limits `mapstructure:"limits"`
	// ScrapeBytes is the largest size in bytes of the text that Prometheus gets for
	// all admitted streams, and of that for all admitted combinations, from 1048576
	// to 17179869184. The default is 134217728 (128 MiB).
	ScrapeBytes int64 `mapstructure:"scrape_bytes"`
}

// Limits are the largest numbers of identities that are admitted at one time,
// each from 1 to 1000000.
type Limits struct {
	// Service limits the services: service.namespace and service.name. The
	// default is 500.
	Service int `mapstructure:"service"`
	// Instance limits the instances of all services: service.instance.id. The
	// default is 1000.
	Instance int `mapstructure:"instance"`
	// Run limits the runs of spans, and the values of each label for runs or
	// jobs. The default is 500.
	Run int `mapstructure:"run"`
	// Rank limits the ranks: combinations of run, job, rank and host. The
	// default is 5000.
	Rank int `mapstructure:"rank"`
	// Session limits the values of each label for sessions. The default is
	// 1000.
	Session int `mapstructure:"session"`
	// Model limits the values of each label for models. The default is 1000.
	Model int `mapstructure:"model"`
	// Operation limits the values of each label for operations: ml.operation,
	// gen_ai.operation.name, http.route, rpc.method. The default is 1000.
	Operation int `mapstructure:"operation"`
	// User limits the values of each label for users. The default is 1000.
	User int `mapstructure:"user"`
	// Process limits the values of each label for processes, such as those on
	// GPUs. The default is 5000.
	Process int `mapstructure:"process"`
	// Label limits the values of each other label. The default is 2000.
	Label int `mapstructure:"label"`
	// Combination limits the combinations of service, instance and all other
	// labels of a span. The default is 5000.
	Combination int `mapstructure:"combination"`
	// Stream limits the streams of clients' metrics: combinations of service,
	// instance, metric and labels. The default is 100000.
	Stream int `mapstructure:"stream"`
}

// DefaultConfig returns the defaults of the section.
func DefaultConfig() Config {
	return Config{
		Expiration: time.Hour,
		Limits: Limits{
			Service: 500, Instance: 1000, Run: 500, Rank: 5000,
			Session: 1000, Model: 1000, Operation: 1000, User: 1000, Process: 5000, Label: 2000,
			Combination: 5000, Stream: 100_000,
		},
		ScrapeBytes: 128 << 20,
	}
}

// of returns the limits by kind, in whose order the fields are.
func (l *Limits) of() (limits [kindCount]int) {
	for k := range limits {
		limits[k] = int(reflect.ValueOf(*l).Field(k).Int())
	}
	return limits
}

// Validate returns an error that names each key with an invalid value.
func (c *Config) Validate() error {
	errs := []error{
		shared.Between("expiration", c.Expiration, time.Minute, 30*24*time.Hour),
		shared.Between("scrape_bytes", c.ScrapeBytes, 1<<20, 16<<30),
	}
	for k, limit := range c.Limits.of() {
		errs = append(errs, shared.Between("limits::"+kindNames[k], limit, 1, maxLimit))
	}
	return errors.Join(errs...)
}
