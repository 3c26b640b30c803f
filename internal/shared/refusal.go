package shared

import (
	"sync/atomic"
	"time"
)

// lastRefusal is when the process last refused data, in nanoseconds since 1970.
var lastRefusal atomic.Int64

// Refused notes that this process has refused data that its sender may send again.
// What then does not arrive says nothing about the sender.
func Refused(at time.Time) { lastRefusal.Store(at.UnixNano()) }

// LastRefusal returns when this process last refused data, the zero time if it never
// has.
func LastRefusal() time.Time {
	if at := lastRefusal.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
