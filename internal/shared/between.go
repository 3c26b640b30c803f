package shared

import (
	"fmt"
	"time"
)

// Between returns an error for the value of a configuration's key that is out of bounds.
func Between[T int | int64 | time.Duration](key string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%q is %v; it must be between %v and %v", key, value, least, most)
	}
	return nil
}
