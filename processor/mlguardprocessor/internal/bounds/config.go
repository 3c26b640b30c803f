package bounds

import (
	"errors"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Config is the section bounds of ml_guard's configuration. Each limit has a
// minimum and a maximum; zero is not allowed. Whatever exceeds a limit is cut
// or dropped, and counted in otelcol_processor_ml_guard_values_cut.
type Config struct {
	// MaxDepth is the number of arrays and maps that may enclose a value, 1 to
	// 1000. A deeper value is replaced by a text that says so. The default is
	// 64.
	MaxDepth int `mapstructure:"max_depth"`
	// MaxValueBytes is the size of a text or of bytes, in bytes, at least 64. A
	// longer text is cut and ends with its original size; longer bytes become a
	// text with their size. The default is 262144, the size of the calls that
	// repro_gen reads.
	MaxValueBytes int `mapstructure:"max_value_bytes"`
	// MaxNameBytes is the size of a name, key, version, unit, schema URL or
	// trace state, in bytes, at least 64. An attribute with a longer key is
	// dropped. The default is 1024.
	MaxNameBytes int `mapstructure:"max_name_bytes"`
	// MaxItemBytes is the size of all attributes of an item together, in bytes,
	// at least 64. An item is a resource, scope, span, event, link, log record
	// (including its body), metric, data point or exemplar. The value that
	// exceeds the limit is cut, and the attributes after it are dropped. The
	// default is 1048576.
	MaxItemBytes int `mapstructure:"max_item_bytes"`
	// MaxAttributes is the number of attributes of an item, at least 1. Further
	// ones are dropped. The default is 1024.
	MaxAttributes int `mapstructure:"max_attributes"`
	// MaxElements is the number of elements of an array or map, buckets of a
	// histogram, quantiles of a summary and exemplars of a data point, at least
	// 1. A histogram with more buckets keeps only its count and sum; a point of
	// an exponential histogram is dropped. The default is 8192.
	MaxElements int `mapstructure:"max_elements"`
	// MaxEvents is the number of events of a span, at least 1. Further ones are
	// dropped. The default is 1024.
	MaxEvents int `mapstructure:"max_events"`
	// MaxLinks is the number of links of a span, at least 1. Further ones are
	// dropped. The default is 1024.
	MaxLinks int `mapstructure:"max_links"`
	// MaxItems is the number of items of a request, at least 1. Further ones
	// are dropped. The default is 100000; a request of 4 MiB has more only if
	// they are smaller than 42 bytes. A scrape may need a higher limit.
	MaxItems int `mapstructure:"max_items"`
}

// Default returns the default limits.
func Default() Config {
	return Config{
		MaxDepth:      64,
		MaxValueBytes: 256 << 10,
		MaxNameBytes:  1 << 10,
		MaxItemBytes:  1 << 20,
		MaxAttributes: 1024,
		MaxElements:   8192,
		MaxEvents:     1024,
		MaxLinks:      1024,
		MaxItems:      100_000,
	}
}

// Validate returns an error that names each key with an invalid value.
func (c *Config) Validate() error {
	const most = 1 << 30
	return errors.Join(
		// ml_guard and the components after it recurse by depth.
		shared.Between("max_depth", c.MaxDepth, 1, 1000),
		shared.Between("max_value_bytes", c.MaxValueBytes, 64, most),
		shared.Between("max_name_bytes", c.MaxNameBytes, 64, most),
		shared.Between("max_item_bytes", c.MaxItemBytes, 64, most),
		shared.Between("max_attributes", c.MaxAttributes, 1, most),
		shared.Between("max_elements", c.MaxElements, 1, most),
		shared.Between("max_events", c.MaxEvents, 1, most),
		shared.Between("max_links", c.MaxLinks, 1, most),
		shared.Between("max_items", c.MaxItems, 1, most),
	)
}
