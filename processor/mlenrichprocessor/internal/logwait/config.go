package logwait

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of the configuration. maxWait is less than what is remembered of a
// trace, and the others bound the memory of waiting records.
const (
	maxWait = 5 * time.Minute
	// minWait refuses a number without a unit, which is one of nanoseconds.
	minWait  = time.Millisecond
	minBytes = 1 << 10
	maxBytes = 1 << 30
)

// Config is the configuration of waiting log records.
type Config struct {
	// Wait is how long a log record waits for the spans of the trace that it
	// names, whose session, run and request it then gets. A record goes on as
	// soon as there is a key for it, at the latest after this time, and at once
	// if it can learn nothing. While it waits it is in memory only. The default
	// is 0s: no record waits. Others must be from 1ms to 5m.
	Wait time.Duration `mapstructure:"log_wait"`

	// MaxBytes is the memory in bytes that the waiting records of one logs
	// pipeline may take: the encoded size and 512 bytes for each record, and
	// for each resource and scope of a request, and the size of the sender's
	// metadata. A record that would exceed it goes on at once and is counted.
	// It has no effect while log_wait is zero. It must be from 1024 to
	// 1073741824. The default is 67108864, 64 MiB.
	MaxBytes int `mapstructure:"max_waiting_bytes"`
}

// DefaultConfig returns the default configuration: no record waits.
func DefaultConfig() Config { return Config{MaxBytes: 64 << 20} }

// Check reports everything that is wrong with the configuration. It is not named
// Validate: confmap would report a key for this struct, which users do not have.
func (c *Config) Check() error {
	var errs []error
	if c.Wait != 0 && c.Wait < minWait || c.Wait > maxWait {
		errs = append(errs, fmt.Errorf(`"log_wait": %v, must be 0s or from %v to %v`, c.Wait, minWait, maxWait))
	}
	if c.MaxBytes < minBytes || c.MaxBytes > maxBytes {
		errs = append(errs, fmt.Errorf(`"max_waiting_bytes": %d, must be from %d to %d`, c.MaxBytes, minBytes, maxBytes))
	}
	return errors.Join(errs...)
}
