package bounds

import (
	"errors"
	"fmt"
)

// Config is the section bounds of ml_guard's configuration. Each limit has a
// least and a greatest value; zero is not allowed. What exceeds a limit is cut
// and counted in otelcol_processor_ml_guard_values_cut.
type Config struct {
	// MaxDepth is the number of arrays and maps that may enclose a value. What
	// is nested deeper is replaced by a text that says so. The default is 64.
	MaxDepth int `mapstructure:"max_depth"`
	// MaxValueBytes is the size of a text or of bytes, in bytes. A longer text
	// ends with its former size; longer bytes become a text that says their
	// size. The default is 262144, the size of the calls that repro_gen reads.
	MaxValueBytes int `mapstructure:"max_value_bytes"`
	// MaxNameBytes is the size of a name, a key, a version, a unit, a schema URL
	// or a trace state, in bytes. Attributes with longer keys are dropped. The
	// default is 1024.
	MaxNameBytes int `mapstructure:"max_name_bytes"`
	// MaxItemBytes is the size of all attributes of a resource, scope, span,
	// event, link, log record (with its body), metric, data point or exemplar,
	// in bytes. The values that exceed it are cut, and the attributes behind
	// them are dropped. The default is 1048576.
	MaxItemBytes int `mapstructure:"max_item_bytes"`
	// MaxAttributes is the number of attributes of a resource, scope, span,
	// event, link, log record, metric, data point or exemplar. Those beyond it
	// are dropped. The default is 1024.
	MaxAttributes int `mapstructure:"max_attributes"`
	// MaxElements is the number of elements of an array or a map in a value, of
	// buckets of a histogram, of quantiles of a summary and of exemplars of a
	// data point. A histogram with more buckets keeps its count and sum only; an
	// exponential histogram is dropped. The default is 8192.
	MaxElements int `mapstructure:"max_elements"`
	// MaxEvents is the number of events of a span. Those beyond it are dropped.
	// The default is 1024.
	MaxEvents int `mapstructure:"max_events"`
	// MaxLinks is the number of links of a span. Those beyond it are dropped.
	// The default is 1024.
	MaxLinks int `mapstructure:"max_links"`
	// MaxItems is the number of resources, scopes, spans, events, links, log
	// records, metrics, data points and exemplars of a request, all together.
	// Those beyond it are dropped. The default is 100000: requests of 4 MiB with more have
	// less than 42 bytes for each. A scrape may need a higher limit.
	MaxItems int `mapstructure:"max_items"`
}

// Default returns the limits that apply where nothing is configured.
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

// Validate reports values that are not allowed, with their keys.
func (c *Config) Validate() error {
	const most = 1 << 30
	var errs []error
	for _, limit := range []struct {
		key         string
		value       int
		least, most int
	}{
		// The recursion over a value and the components behind ml_guard take
		// stack by depth.
		{"max_depth", c.MaxDepth, 1, 1000},
		{"max_value_bytes", c.MaxValueBytes, 64, most},
		{"max_name_bytes", c.MaxNameBytes, 64, most},
		{"max_item_bytes", c.MaxItemBytes, 64, most},
		{"max_attributes", c.MaxAttributes, 1, most},
		{"max_elements", c.MaxElements, 1, most},
		{"max_events", c.MaxEvents, 1, most},
		{"max_links", c.MaxLinks, 1, most},
		{"max_items", c.MaxItems, 1, most},
	} {
		if limit.value < limit.least || limit.value > limit.most {
			errs = append(errs, fmt.Errorf("%q is %d; it must be between %d and %d", limit.key, limit.value, limit.least, limit.most))
		}
	}
	return errors.Join(errs...)
}
