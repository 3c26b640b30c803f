package shared

import (
	"fmt"
	"time"
)

// Between returns an error for the value of a configuration's key that is out of bounds.
func Between[T int | int64 | time.Duration](key string, value, least, most T) error {
	return Check(value >= least && value <= most, "%q is %v; it must be between %v and %v", key, value, least, most)
}

// Check returns an error with a text by the format unless something holds that a
// configuration must keep to.
func Check(holds bool, format string, values ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, values...)
}
