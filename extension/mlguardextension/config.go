package mlguardextension

import (
	"cmp"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Config is the configuration of the ml_guard extension.
type Config struct {
	// MaxDepth is the number of arrays and maps that may enclose a value, 64 to
	// 10000. In JSON, four brackets count as one level. A request that exceeds
	// it is refused. The default is 1000.
	MaxDepth int `mapstructure:"max_depth"`
	// MaxMessages is the number of messages in a request, 1000 to 100000000:
	// resources, scopes, spans, events, links, log records, metrics, data
	// points, exemplars, attributes, values and their lists, all together. In
	// JSON it is the number of objects and of null. A request that exceeds it
	// is refused. The default is 250000.
	MaxMessages int `mapstructure:"max_messages"`
	// MaxMemoryMiB is the memory in MiB, 1 to 1000000, of all requests that are
	// being processed, from decoding to the answer, as it is estimated from what
	// they contain. A request that would exceed it is refused for the moment,
	// unless it is the only one. The default is 64.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`
	// FailoverAfter is the time, 1s to 1h, after which a gRPC endpoint that does not
	// answer is down, if the extension is a middleware of exporters. Another endpoint
	// of these exporters then gets what is for it, until it answers. The default is 8s.
	FailoverAfter time.Duration `mapstructure:"failover_after"`
}

// Validate returns an error that names the key with an invalid value.
func (c *Config) Validate() error {
	return cmp.Or(
		shared.Between("max_depth", c.MaxDepth, 64, 10_000),
		shared.Between("max_messages", c.MaxMessages, 1_000, 100_000_000),
		shared.Between("max_memory_mib", c.MaxMemoryMiB, 1, 1_000_000),
		shared.Between("failover_after", c.FailoverAfter, time.Second, time.Hour),
	)
}
