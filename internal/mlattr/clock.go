package mlattr

import "time"

// The time of a metric point is wrong if it is further ahead of the collector's, or
// further behind, than this. Points wait in queues, hence the difference.
const (
	ClockAhead  = time.Minute
	ClockBehind = 10 * time.Minute
)
